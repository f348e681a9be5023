/** Telnyx's end of a call, stream_bidirectional_mode rtp. */
import type { Wire } from "../../../src/protocol/carrier/carrier.ts";
import { base64, JsonPeer, json } from "./json-peer.ts";
import { factsOf, hasOnly, type Json } from "./peer.ts";

export class TelnyxPeer extends JsonPeer {
  get #id(): Json {
    return { stream_id: this.link.call.streamId };
  }

  opening(): readonly Wire[] {
    const { call } = this.link;
    const { codec, sampleRate } = factsOf(call.callerFormat);
    const encoding = { ulaw: "PCMU", alaw: "PCMA", pcm: "L16" }[codec];
    return [
      json({ event: "connected", version: "1.0.0" }),
      json({
        event: "start",
        sequence_number: String(this.next()),
        start: {
          user_id: "3e6f995f-85f7-4705-9741-53b116d28237",
          call_control_id: call.callId,
          call_session_id: "ff55a038-6f5d-11ef-9692-02420aeffb1f",
          from: call.from,
          to: call.to,
          tags: [],
          client_state: null,
          custom_parameters: call.parameters,
          media_format: { encoding, sample_rate: sampleRate, channels: 1 },
        },
        ...this.#id,
      }),
    ];
  }

  media(audio: Uint8Array): Wire {
    const chunk = this.nextChunk();
    const media = {
      track: "inbound",
      chunk: String(chunk),
      timestamp: String(chunk * 20),
      payload: base64(audio),
    };
    return json({ event: "media", sequence_number: String(this.next()), media, ...this.#id });
  }

  digit(digit: string): Wire {
    return json({ event: "dtmf", sequence_number: String(this.next()), dtmf: { digit }, ...this.#id });
  }

  closing(): readonly Wire[] {
    const stop = { user_id: "3e6f995f-85f7-4705-9741-53b116d28237", call_control_id: this.link.call.callId };
    return [json({ event: "stop", sequence_number: String(this.next()), stop, ...this.#id })];
  }

  protected played(name: string): Wire {
    return json({ event: "mark", sequence_number: String(this.next()), mark: { name }, ...this.#id });
  }

  protected takeEvent(message: Json): void {
    const { link } = this;
    if (message.event === "media") {
      if (hasOnly(link, message, ["event", "media"]) && hasOnly(link, message.media, ["payload"])) {
        this.play(message.media.payload);
      }
    } else if (message.event === "mark") {
      if (hasOnly(link, message, ["event", "mark"]) && hasOnly(link, message.mark, ["name"])) {
        this.marks.add(message.mark.name);
      }
    } else if (message.event === "clear") {
      if (hasOnly(link, message, ["event"])) this.clearAndAnswer();
    } else {
      link.violate("an event that Telnyx does not know");
    }
  }

  protected override isLengthRight(bytes: number): boolean {
    const ms = this.durationMs(bytes);
    if (ms >= 20 && ms <= 30_000) return true;
    this.link.violate(`${ms} ms in a message, expected 20 ms to 30 s`);
    return false;
  }
}
