/** Twilio's end of a call, and SignalWire's, which took after it. */
import type { Wire } from "../../../src/protocol/carrier/carrier.ts";
import { base64, json, MediaStreamPeer } from "./json-peer.ts";
import { factsOf, type Json } from "./peer.ts";

/** Twilio; SignalWire leaves out `streamSid` on the top level. */
export class TwilioPeer extends MediaStreamPeer {
  protected readonly vendor: string = "Twilio";
  protected readonly streamField = "streamSid";

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
}

export class SignalwirePeer extends TwilioPeer {
  protected override readonly vendor = "SignalWire";

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
