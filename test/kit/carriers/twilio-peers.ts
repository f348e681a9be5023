/** Twilio's end of a call, and SignalWire's, which took after it. */
import type { Wire } from "../../../src/protocol/carrier/carrier.ts";
import { base64, JsonPeer, json } from "./json-peer.ts";
import { factsOf, hasOnly, type Json } from "./peer.ts";

/** Twilio; SignalWire leaves out `streamSid` on the top level. */
export class TwilioPeer extends JsonPeer {
  get #sid(): Json {
    return { streamSid: this.link.call.streamId };
  }

  opening(): readonly Wire[] {
    const { call } = this.link;
    const { codec, sampleRate } = factsOf(call.format);
    const encoding = codec === "ulaw" ? "audio/x-mulaw" : "audio/x-L16";
    return [
      json({ event: "connected", protocol: "Call", version: this.version }),
      json({
        event: "start",
        sequenceNumber: String(this.next()),
        start: {
          accountSid: "AC1f3b8a9e0c4d2e5f60718293a4b5c6d7",
          streamSid: call.streamId,
          callSid: call.callId,
          tracks: ["inbound"],
          mediaFormat: { encoding, sampleRate, channels: 1 },
          customParameters: call.parameters,
        },
        ...this.topLevel,
      }),
    ];
  }

  media(audio: Uint8Array): Wire {
    const chunk = this.nextChunk();
    return json({
      event: "media",
      sequenceNumber: String(this.next()),
      media: {
        track: "inbound",
        chunk: String(chunk),
        timestamp: String(chunk * 20),
        payload: base64(audio),
      },
      ...this.topLevel,
    });
  }

  digit(digit: string): Wire {
    const dtmf = { track: "inbound_track", digit };
    return json({ event: "dtmf", ...this.topLevel, sequenceNumber: String(this.next()), dtmf });
  }

  closing(): readonly Wire[] {
    const stop = { accountSid: "AC1f3b8a9e0c4d2e5f60718293a4b5c6d7", callSid: this.link.call.callId };
    return [json({ event: "stop", sequenceNumber: String(this.next()), ...this.topLevel, stop })];
  }

  protected get version(): string {
    return "1.0.0";
  }

  protected get topLevel(): Json {
    return this.#sid;
  }

  protected played(name: string): Wire {
    return json({ event: "mark", sequenceNumber: String(this.next()), ...this.#sid, mark: { name } });
  }

  protected takeEvent(message: Json): void {
    if (message.streamSid !== this.link.call.streamId) {
      this.link.violate("streamSid is not the stream's");
      return;
    }
    const { link } = this;
    if (message.event === "media") {
      if (
        hasOnly(link, message, ["event", "streamSid", "media"]) &&
        hasOnly(link, message.media, ["payload"])
      ) {
        this.play(message.media.payload);
      }
    } else if (message.event === "mark") {
      if (hasOnly(link, message, ["event", "streamSid", "mark"]) && hasOnly(link, message.mark, ["name"])) {
        this.marks.add(message.mark.name);
      }
    } else if (message.event === "clear") {
      if (hasOnly(link, message, ["event", "streamSid"])) this.clearAndAnswer();
    } else {
      link.violate("an event that Twilio does not know (31924)");
    }
  }
}

export class SignalwirePeer extends TwilioPeer {
  override digit(digit: string): Wire {
    return json({ event: "dtmf", sequenceNumber: String(this.next()), dtmf: { digit, duration: 240 } });
  }

  override closing(): readonly Wire[] {
    return [json({ event: "stop", sequenceNumber: String(this.next()) })];
  }

  protected override get version(): string {
    return "0.2.0";
  }

  protected override get topLevel(): Json {
    return {};
  }
}
