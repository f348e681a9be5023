/** What is used of a bot's voice connection: `VoiceConnection` of @discordjs/voice has both. */
export interface VoiceSink {
  /** Sends one packet now. */
  playOpusPacket(packet: Buffer): unknown;
  setSpeaking(isSpeaking: boolean): unknown;
}

/** F8 FF FE: 20 ms of silence. */
export const SILENCE_FRAME: Buffer;

export class PacketPacer {
  constructor(sink: VoiceSink, played?: (endMs: number, isLast: boolean) => void);
  readonly dropped: number;
  push(packet: Buffer, endMs: number): void;
  cut(): void;
  close(): void;
}
