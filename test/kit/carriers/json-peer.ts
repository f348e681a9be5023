/** What the carriers that speak JSON do alike, at their end of the socket. */
import type { Wire } from "../../../src/protocol/carrier/carrier.ts";
import { BasePeer } from "./base-peer.ts";
import { factsOf, hasOnly, isWhole, type Json, parseMessage, readBase64 } from "./peer.ts";

export const json = (value: Json): string => JSON.stringify(value);
export const base64 = (audio: Uint8Array): string => Buffer.from(audio).toString("base64");

/** Audio in base64, numbered messages. */
export abstract class JsonPeer extends BasePeer {
  #sequence = 0;
  #chunk = 0;

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
    const bytes = readBase64(this.link, payload);
    const audio = bytes === null ? null : this.decoded(bytes);
    if (audio !== null && isWhole(this.link, audio) && this.isLengthRight(audio.length)) {
      this.link.player.push(audio);
    }
  }

  /** What is played of a payload; null after `violate`. */
  protected decoded(payload: Uint8Array): Uint8Array | null {
    return payload;
  }

  /** Calls `violate` for a length that the carrier does not take. */
  protected isLengthRight(_bytes: number): boolean {
    return true;
  }

  protected durationMs(bytes: number): number {
    const { sampleRate, bytesPerSample } = factsOf(this.link.call.format);
    return (bytes * 1000) / (sampleRate * bytesPerSample);
  }
}

/** Twilio's events, which SignalWire, Telnyx and Exotel took over, each with its own name for the stream. */
export abstract class MediaStreamPeer extends JsonPeer {
  /** As the vendor is called in a violation. */
  protected abstract readonly vendor: string;
  /** The field that names the stream in each message to the vendor; null: none does. */
  protected abstract readonly streamField: string | null;

  protected takeEvent(message: Json): void {
    const { link, streamField } = this;
    if (streamField !== null && message[streamField] !== link.call.streamId) {
      link.violate(`${streamField} is not the stream's`);
      return;
    }
    const common = streamField === null ? ["event"] : ["event", streamField];
    if (message.event === "media") {
      if (hasOnly(link, message, [...common, "media"]) && hasOnly(link, message.media, ["payload"])) {
        this.play(message.media.payload);
      }
    } else if (message.event === "mark") {
      if (hasOnly(link, message, [...common, "mark"]) && hasOnly(link, message.mark, ["name"])) {
        this.marks.add(message.mark.name);
      }
    } else if (message.event === "clear") {
      if (hasOnly(link, message, common)) this.clearAndAnswer();
    } else {
      link.violate(`an event that ${this.vendor} does not know`);
    }
  }
}
