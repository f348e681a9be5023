/** Telnyx's end of a call, stream_bidirectional_mode rtp. */
import OpusScript from "opusscript";
import type { Wire } from "../../../src/protocol/carrier/carrier.ts";
import { base64, json, MediaStreamPeer } from "./json-peer.ts";
import { factsOf, type Json } from "./peer.ts";

export class TelnyxPeer extends MediaStreamPeer {
  protected readonly vendor = "Telnyx";
  protected readonly streamField = null;
  /** Of a call with stream_bidirectional_codec OPUS, from its first packet on. */
  #opus: OpusScript | null = null;

  get #id(): Json {
    return { stream_id: this.link.call.streamId };
  }

  opening(): readonly Wire[] {
    const { call } = this.link;
    const { codec, sampleRate } = factsOf(call.callerFormat);
    const encoding = { ulaw: "PCMU", alaw: "PCMA", pcm: "L16", opus: "OPUS" }[codec];
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

  override close(): void {
    super.close();
    this.#opus?.delete();
    this.#opus = null;
  }

  /** Of Opus the payload of an RTP packet, that is, one packet (RFC 7587). */
  protected override decoded(payload: Uint8Array): Uint8Array | null {
    const { call } = this.link;
    if (call.format !== "opus_48000") return payload;
    this.#opus ??= new OpusScript(48_000, 1);
    try {
      return this.#opus.decode(Buffer.from(payload));
    } catch (error) {
      this.link.violate(`${payload.length} bytes are no Opus packet: ${String(error)}`);
      return null;
    }
  }

  protected override isLengthRight(bytes: number): boolean {
    const ms = this.durationMs(bytes);
    if (ms >= 20 && ms <= 30_000) return true;
    this.link.violate(`${ms} ms in a message, expected 20 ms to 30 s`);
    return false;
  }
}
