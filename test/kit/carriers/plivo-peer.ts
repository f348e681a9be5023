/** Plivo's end of a call. */
import type { Wire } from "../../../src/protocol/carrier/carrier.ts";
import { base64, JsonPeer, json } from "./json-peer.ts";
import { factsOf, hasOnly, type Json } from "./peer.ts";

/** Never answers a checkpoint that a clear has taken away. */
export class PlivoPeer extends JsonPeer {
  opening(): readonly Wire[] {
    const { call } = this.link;
    const start = {
      callId: call.callId,
      streamId: call.streamId,
      accountId: "MA000000000000000001",
      tracks: ["inbound"],
      mediaFormat: { encoding: this.#contentType, sampleRate: factsOf(call.format).sampleRate },
    };
    return [json({ event: "start", sequenceNumber: this.next(), start, extra_headers: this.#extraHeaders })];
  }

  media(audio: Uint8Array): Wire {
    const media = {
      track: "inbound",
      timestamp: "1705312200000",
      chunk: this.nextChunk(),
      payload: base64(audio),
    };
    return json({ ...this.#head("media"), media, extra_headers: this.#extraHeaders });
  }

  digit(digit: string): Wire {
    return json({ ...this.#head("dtmf"), dtmf: { track: "inbound", digit, timestamp: "1705312203000" } });
  }

  closing(): readonly Wire[] {
    return [json({ ...this.#head("stop"), reason: "call ended" })];
  }

  protected played(name: string): Wire {
    return json({ ...this.#head("playedStream"), name });
  }

  protected takeEvent(message: Json): void {
    const { link } = this;
    if (message.event === "playAudio") {
      this.#takeAudio(message);
      return;
    }
    if (message.streamId !== link.call.streamId) {
      link.violate("streamId is not the stream's");
      return;
    }
    if (message.event === "checkpoint") {
      if (hasOnly(link, message, ["event", "streamId", "name"])) this.marks.add(message.name);
    } else if (message.event === "clearAudio") {
      if (!hasOnly(link, message, ["event", "streamId"])) return;
      this.marks.clear();
      link.send(json(this.#head("clearedAudio")));
    } else {
      link.violate("an event that Plivo does not know");
    }
  }

  get #contentType(): string {
    return factsOf(this.link.call.format).codec === "ulaw" ? "audio/x-mulaw" : "audio/x-l16";
  }

  get #extraHeaders(): string {
    return Object.entries(this.link.call.parameters)
      .map(([name, value]) => `${name}=${value}`)
      .join(";");
  }

  #head(event: string): Json {
    return { event, sequenceNumber: this.next(), streamId: this.link.call.streamId };
  }

  #takeAudio(message: Json): void {
    const { link } = this;
    if (!hasOnly(link, message, ["event", "media"])) return;
    if (!hasOnly(link, message.media, ["contentType", "sampleRate", "payload"])) return;
    const { contentType, sampleRate, payload } = message.media;
    const isNegotiated =
      contentType === this.#contentType && Number(sampleRate) === factsOf(link.call.format).sampleRate;
    if (!isNegotiated) {
      link.violate("contentType or sampleRate is not what was negotiated");
      return;
    }
    this.play(payload);
  }
}
