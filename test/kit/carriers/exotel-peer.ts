/** Exotel's end of a call (AgentStream, Voicebot applet). */
import type { Wire } from "../../../src/protocol/carrier/carrier.ts";
import { base64, json, MediaStreamPeer } from "./json-peer.ts";
import { factsOf, type Json } from "./peer.ts";

export class ExotelPeer extends MediaStreamPeer {
  protected readonly vendor = "Exotel";
  protected readonly streamField = "stream_sid";

  get #sid(): Json {
    return { stream_sid: this.link.call.streamId };
  }

  opening(): readonly Wire[] {
    const { call } = this.link;
    const { codec, sampleRate } = factsOf(call.format);
    return [
      json({ event: "connected" }),
      json({
        event: "start",
        sequence_number: String(this.next()),
        ...this.#sid,
        start: {
          ...this.#sid,
          call_sid: call.callId,
          account_sid: "exotel-demo1",
          from: call.from,
          to: call.to,
          custom_parameters: call.parameters,
          media_format: {
            encoding: codec === "ulaw" ? "audio/x-mulaw" : "audio/x-raw",
            sample_rate: String(sampleRate),
            bit_rate: "16",
          },
        },
      }),
    ];
  }

  media(audio: Uint8Array): Wire {
    const chunk = this.nextChunk();
    const media = { chunk: String(chunk), timestamp: String(chunk * 100), payload: base64(audio) };
    return json({ event: "media", sequence_number: String(this.next()), ...this.#sid, media });
  }

  digit(digit: string): Wire {
    const dtmf = { digit, duration: "100" };
    return json({ event: "dtmf", sequence_number: String(this.next()), ...this.#sid, dtmf });
  }

  closing(): readonly Wire[] {
    const stop = { call_sid: this.link.call.callId, account_sid: "exotel-demo1", reason: "callended" };
    return [json({ event: "stop", sequence_number: String(this.next()), ...this.#sid, stop })];
  }

  protected played(name: string): Wire {
    return json({ event: "mark", sequence_number: String(this.next()), ...this.#sid, mark: { name } });
  }

  protected override isLengthRight(bytes: number): boolean {
    if (bytes % 320 === 0 && bytes >= 3200 && bytes <= 100_000 && this.durationMs(bytes) >= 100) return true;
    this.link.violate(`${bytes} bytes, expected a multiple of 320 from 3200 to 100000, at least 100 ms`);
    return false;
  }
}
