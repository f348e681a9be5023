/** What a fake carrier is made of: one vendor's end of the socket, without the socket. */
import type { Wire } from "../../../src/protocol/carrier/carrier.ts";
import type { AudioFormat } from "../../../src/protocol/vocabulary.ts";
import type { VirtualPlayer } from "./virtual-player.ts";

/** What a fake caller can be heard in. */
export type SampleFormat = Exclude<AudioFormat, "opus_48000">;

/** A call as its application has set it up. */
export interface FakeCall {
  readonly callId: string;
  readonly streamId: string;
  readonly from: string;
  readonly to: string;
  readonly parameters: Readonly<Record<string, string>>;
  /** What the carrier is to be sent. */
  readonly format: AudioFormat;
  readonly callerFormat: SampleFormat;
}

export interface PeerLink {
  readonly call: FakeCall;
  readonly player: VirtualPlayer;
  send(message: Wire): void;
  /** Something that the vendor would refuse, drop or log as an error. */
  violate(what: string): void;
}

export interface FakePeer {
  /** The messages before any media. */
  opening(): readonly Wire[];
  /** One message of the caller's voice. */
  media(audio: Uint8Array): Wire;
  digit(digit: string): Wire;
  /** The last messages of a call that the caller ends. */
  closing(): readonly Wire[];
  /** Behaves as the vendor does; calls `violate` where it would not take the message. */
  take(message: Wire): void;
  /** Frees what it decodes with. */
  close(): void;
}

/** Of what is played: Opus is played as the 16-bit samples that it decodes to. */
export interface Facts {
  readonly codec: "ulaw" | "alaw" | "pcm" | "opus";
  readonly sampleRate: number;
  readonly bytesPerSample: 1 | 2;
}

export function factsOf(format: AudioFormat): Facts {
  const [codec = "", rate] = format.split("_");
  const isG711 = codec === "ulaw" || codec === "alaw";
  return {
    codec: isG711 || codec === "opus" ? codec : "pcm",
    sampleRate: Number(rate),
    bytesPerSample: isG711 ? 1 : 2,
  };
}

export type Json = Readonly<Record<string, unknown>>;

/** A text message as JSON, or null after `violate`. */
export function parseMessage(link: PeerLink, message: Wire): Json | null {
  if (typeof message !== "string") {
    link.violate(`a binary message of ${message.length} bytes`);
    return null;
  }
  const value = safeParse(message);
  if (isJson(value)) return value;
  link.violate("a message is no JSON object");
  return null;
}

function safeParse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

export function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether the object has these fields and no other; `violate` where not. */
export function hasOnly(link: PeerLink, value: unknown, fields: readonly string[]): value is Json {
  const isRight =
    isJson(value) &&
    Object.keys(value).length === fields.length &&
    fields.every((field) => Object.hasOwn(value, field));
  if (!isRight) link.violate(`expected just the fields ${fields.join(", ")}`);
  return isRight;
}

/** The bytes of strict base64, or null after `violate`. */
export function readBase64(link: PeerLink, payload: unknown): Uint8Array | null {
  if (typeof payload === "string" && payload.length > 0) {
    const bytes = Buffer.from(payload, "base64");
    if (bytes.toString("base64") === payload) return bytes;
  }
  link.violate("a payload is no base64");
  return null;
}

/** Whether it is whole samples; `violate` where not. */
export function isWhole(link: PeerLink, audio: Uint8Array): boolean {
  const isRight = audio.length > 0 && audio.length % factsOf(link.call.format).bytesPerSample === 0;
  if (!isRight) link.violate(`${audio.length} bytes are not whole samples`);
  return isRight;
}

/** Marks that the player has not reached. */
export class PeerMarks {
  readonly #link: PeerLink;
  readonly #played: (name: string) => void;
  #pending: string[] = [];

  constructor(link: PeerLink, played: (name: string) => void) {
    this.#link = link;
    this.#played = played;
  }

  get size(): number {
    return this.#pending.length;
  }

  /** Called when all that was sent before it has been played; at once where nothing waits. */
  add(name: unknown): void {
    if (typeof name !== "string" || name === "") {
      this.#link.violate("a mark without a name");
      return;
    }
    this.#pending.push(name);
    const { player } = this.#link;
    player.notify(player.endSamples, () => {
      this.#pending = this.#pending.filter((other) => other !== name);
      this.#played(name);
    });
  }

  /** Throws away what the player has not played; the marks that stood in it. */
  clear(): readonly string[] {
    this.#link.player.clear();
    const taken = this.#pending;
    this.#pending = [];
    return taken;
  }
}
