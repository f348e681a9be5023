/** What the carriers that speak JSON do alike, at their end of the socket. */
import type { Wire } from "../../../src/protocol/carrier/carrier.ts";
import {
  type FakePeer,
  factsOf,
  isWhole,
  type Json,
  type PeerLink,
  PeerMarks,
  parseMessage,
  readBase64,
} from "./peer.ts";

export const json = (value: Json): string => JSON.stringify(value);
export const base64 = (audio: Uint8Array): string => Buffer.from(audio).toString("base64");

/** What these carriers do alike: audio in base64, marks that are answered, also those that a clear takes away. */
export abstract class JsonPeer implements FakePeer {
  protected readonly link: PeerLink;
  protected readonly marks: PeerMarks;
  #sequence = 0;
  #chunk = 0;

  constructor(link: PeerLink) {
    this.link = link;
    this.marks = new PeerMarks(link, (name) => link.send(this.played(name)));
  }

  abstract opening(): readonly Wire[];
  abstract media(audio: Uint8Array): Wire;
  abstract digit(digit: string): Wire;
  abstract closing(): readonly Wire[];
  protected abstract played(name: string): Wire;
  protected abstract takeEvent(message: Json): void;

  take(message: Wire): void {
    const parsed = parseMessage(this.link, message);
    if (parsed !== null) this.takeEvent(parsed);
  }

  protected next(): number {
    this.#sequence += 1;
    return this.#sequence;
  }

  protected nextChunk(): number {
    this.#chunk += 1;
    return this.#chunk;
  }

  protected play(payload: unknown): void {
    const audio = readBase64(this.link, payload);
    if (audio !== null && isWhole(this.link, audio) && this.isLengthRight(audio.length)) {
      this.link.player.push(audio);
    }
  }

  /** Calls `violate` for a length that the carrier does not take. */
  protected isLengthRight(_bytes: number): boolean {
    return true;
  }

  /** Twilio, SignalWire, Telnyx and Exotel: the marks that are taken away come back as well. */
  protected clearAndAnswer(): void {
    for (const name of this.marks.clear()) this.link.send(this.played(name));
  }

  protected durationMs(bytes: number): number {
    const { sampleRate, bytesPerSample } = factsOf(this.link.call.format);
    return (bytes * 1000) / (sampleRate * bytesPerSample);
  }
}
