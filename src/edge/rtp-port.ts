/**
 * One RTP peer on a UDP port of its own (RFC 3550, 3551): every G.711 endpoint, Asterisk's externalMedia. It sends and
 * listens on the same port; the peer is the address that was named, else the first that sends RTP (symmetric RTP).
 * Packets of anybody else are counted and dropped.
 */
import { randomInt } from "node:crypto";
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { frameSamples } from "../audio/formats.ts";
import { RtpPacketizer, rtpPayloadType } from "../audio/rtp.ts";
import { parseRtp, RtpSequence, TelephoneEvents } from "../audio/rtp-reader.ts";
import type { Call } from "../calls/call.ts";
import type { CallLine } from "../calls/call-sink.ts";
import type { Calls } from "../calls/calls.ts";
import { NEWS, PACED_LEAD_MS, PACED_MARK_MS, PacedCodec } from "../calls/paced-codec.ts";
import type { PacedFrame } from "../calls/paced-player.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Pacer } from "../fanout/pacer.ts";
import type { SendResult } from "../fanout/sink.ts";
import type { Clock, Timer } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import type { CarrierDialect, CarrierEvent } from "../protocol/carrier/carrier.ts";
import { lookUp, type RtpPeer, rtpFamily } from "./rtp-peer.ts";

const FRAME_MS = 20;
/** How long a peer that was not named may take to send its first packet, ms. */
const PEER_WAIT_MS = 60_000;
/** A peer that has sent and sends nothing for so long has gone, ms: RTP has no good-bye. */
const SILENT_PEER_MS = 60_000;

export type RtpFormat = "ulaw_8000" | "alaw_8000";

export interface RtpCall {
  readonly callId: string;
  /** What the call begins with: `session`, `text`, `voice_id`. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly format: RtpFormat;
  /** null: the first that sends. */
  readonly peer: RtpPeer | null;
  /** Payload type of telephone events (RFC 4733). */
  readonly eventType: number;
}

export interface RtpPortOptions {
  readonly call: RtpCall;
  readonly calls: Calls;
  readonly pacer: Pacer;
  readonly clock: Clock;
  readonly log: Logger;
  readonly host: string;
  /** Called once, when the port is closed. */
  readonly onClosed: () => void;
}

export class RtpPort implements CallLine {
  readonly #options: RtpPortOptions;
  readonly #socket: Socket;
  readonly #codec = new PacedCodec((packet) => this.#read(packet));
  readonly #packets: RtpPacketizer;
  readonly #sequence = new RtpSequence();
  readonly #keys = new TelephoneEvents();
  readonly ssrc = randomInt(2 ** 32);
  #peer: RtpPeer | null;
  #call: Call | null = null;
  #timer: Timer | null = null;
  #heardMs = 0;
  #strangers = 0;
  /** What the call could not begin for. */
  #refusal: GatewayError | null = null;
  #isClosed = false;

  constructor(options: RtpPortOptions) {
    this.#options = options;
    const { format, peer } = options.call;
    this.#peer = peer;
    this.#packets = new RtpPacketizer({
      payloadType: rtpPayloadType(format),
      samplesPerFrame: frameSamples(format, FRAME_MS),
      ssrc: this.ssrc,
      sequence: randomInt(2 ** 16),
      timestamp: randomInt(2 ** 32),
    });
    this.#socket = createSocket({ type: rtpFamily(options.host) === 6 ? "udp6" : "udp4", lookup: lookUp });
    this.#socket.on("message", (packet, from) => this.#onPacket(packet, from));
  }

  /**
   * Resolves with the port that it has. `port` 0: one that is free. Rejects with port_in_use, and with what a call that
   * begins at once was refused for.
   */
  bind(port: number): Promise<number> {
    const { host, log, clock } = this.#options;
    return new Promise((resolve, reject) => {
      this.#socket.once("error", (cause) => {
        this.close();
        reject(new GatewayError("port_in_use", `Can't take RTP on ${host}:${port}`, { cause }));
      });
      this.#socket.bind(port, host, () => {
        this.#socket.removeAllListeners("error");
        this.#socket.on("error", (thrown) => log.debug({ detail: thrown.message }, "RTP port broke"));
        // Asked before the call begins: one that is refused closes the socket.
        const taken = this.#socket.address().port;
        if (this.#peer !== null) this.#beginIfRoom();
        else this.#timer = clock.at(clock.nowMs() + PEER_WAIT_MS, () => this.close());
        if (this.#isClosed) reject(this.#refusal ?? endedAtOnce());
        else resolve(taken);
      });
    });
  }

  /** Packets that came from an address that is not the peer's. */
  get strangerCount(): number {
    return this.#strangers;
  }

  // ---- CallLine --------------------------------------------------------------------------------------------------

  /** The player sends; the call has nothing to say itself. */
  send(): SendResult {
    return "sent";
  }

  bufferedBytes(): number {
    return this.#isClosed ? 0 : this.#socket.getSendQueueSize();
  }

  end(): void {
    this.close();
  }

  /** Idempotent. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#codec.hangUp();
    this.#socket.close();
    this.#call?.closed();
    this.#options.onClosed();
  }

  // ---- inside ----------------------------------------------------------------------------------------------------

  #onPacket(packet: Buffer, from: RemoteInfo): void {
    if (this.#isClosed) return;
    const isRtp = parseRtp(packet) !== null;
    if (this.#peer === null && isRtp) {
      this.#peer = { address: from.address, port: from.port };
      this.#beginIfRoom();
    }
    const peer = this.#peer;
    if (peer === null || from.address !== peer.address || from.port !== peer.port) {
      this.#strangers += 1;
      return;
    }
    this.#heardMs = this.#options.clock.nowMs();
    this.#call?.receive(packet);
  }

  #read(bytes: Uint8Array): readonly CarrierEvent[] {
    const packet = parseRtp(bytes);
    if (packet === null) return [odd("a packet that is not RTP")];
    const { format, eventType } = this.#options.call;
    const verdict = this.#sequence.note(packet);
    if (verdict.kind === "stale") return [odd("a packet came twice or late")];
    const events = verdict.missing > 0 ? [odd(`${verdict.missing} packets are missing`)] : [];
    if (packet.payloadType === rtpPayloadType(format)) {
      return packet.payload.length === 0 ? events : [...events, { kind: "media", audio: packet.payload }];
    }
    if (packet.payloadType !== eventType) return [...events, odd("a packet of another payload type")];
    const key = this.#keys.push(packet);
    return key === null ? events : [...events, { kind: "dtmf", ...key }];
  }

  /** There was room when the port was taken, which may be a minute ago. */
  #beginIfRoom(): void {
    const { calls, log } = this.#options;
    try {
      calls.mustHaveRoom();
    } catch (thrown) {
      const error = toGatewayError(thrown);
      this.#refusal = error;
      log.warn({ carrier: "rtp", code: error.code }, "Call refused");
      calls.stats.of("rtp").refused += 1;
      this.close();
      return;
    }
    this.#begin();
  }

  #begin(): void {
    const { call, calls, pacer, clock } = this.#options;
    this.#timer?.cancel();
    const dialect: CarrierDialect = {
      name: "rtp",
      subprotocols: [],
      leadMs: PACED_LEAD_MS,
      markMs: PACED_MARK_MS,
      open: () => this.#codec,
    };
    const taken = calls.take({
      line: this,
      hello: { query: new Map(), headers: new Map() },
      dialectOf: () => dialect,
    });
    this.#call = taken;
    const { callId, parameters, format } = call;
    this.#codec.begin(
      { callId, streamId: callId, parameters, callerFormat: format, format, frameMs: FRAME_MS },
      {
        pacer,
        clock,
        silence: format === "ulaw_8000" ? "ulaw" : "alaw",
        send: (frame) => this.#write(frame),
        onSkipped: (frames) => this.#packets.skip(frames),
        onNews: () => taken.receive(NEWS),
      },
    );
    taken.receive(NEWS);
    this.#refusal = taken.refusal;
    if (!this.#isClosed) this.#watchPeer();
  }

  /** Only a peer that has sent can fall silent: some only listen. */
  #watchPeer(): void {
    const { clock } = this.#options;
    this.#timer = clock.at(clock.nowMs() + SILENT_PEER_MS, () => {
      if (this.#heardMs > 0 && clock.nowMs() - this.#heardMs >= SILENT_PEER_MS) this.close();
      else this.#watchPeer();
    });
  }

  #write({ bytes, isTalkspurtStart }: PacedFrame): void {
    const peer = this.#peer;
    if (this.#isClosed || peer === null) return;
    this.#socket.send(this.#packets.wrap(bytes, isTalkspurtStart), peer.port, peer.address);
  }
}

function endedAtOnce(): GatewayError {
  return new GatewayError("session_closed", "Call could not begin: its session ended it at once");
}

function odd(what: string): CarrierEvent {
  return { kind: "odd", what };
}
