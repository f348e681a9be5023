/**
 * One RTP peer on a UDP port of its own (RFC 3550, 3551): every G.711 endpoint, Asterisk's externalMedia. It sends and
 * listens on the same port; the peer is the address that was named, else the first that sends RTP (symmetric RTP).
 * Packets of anybody else are counted and dropped.
 *
 * A peer consents to what it gets by sending RTP itself. One that was named is sent a little before that and no more; one
 * that falls silent, or whose port is closed, loses its call.
 */
import { randomInt } from "node:crypto";
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { type LookupOptions, lookup as lookUpName } from "node:dns";
import { isIP } from "node:net";
import { RtpPacketizer, rtpPayload } from "../../audio/containers/rtp.ts";
import { parseRtp, type RtpPacket, RtpSequence, TelephoneEvents } from "../../audio/containers/rtp-reader.ts";
import { AUDIO_FORMATS, frameSamples } from "../../audio/formats.ts";
import type { SendResult } from "../../delivery/listener.ts";
import type { Pacer } from "../../delivery/pacer.ts";
import { GatewayError, toGatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import type { CarrierEvent } from "../../protocol/carrier/carrier.ts";
import type { RtpFormat } from "../../protocol/carrier/rtp-request.ts";
import type { Call, CallRights } from "../../telephony/call.ts";
import type { Calls } from "../../telephony/calls.ts";
import type { CallLine } from "../../telephony/carrier-listener.ts";
import { NEWS, PacedCodec, pacedCall } from "../../telephony/paced-codec.ts";
import type { PacedFrame } from "../../telephony/paced-player.ts";
import type { PeerRule } from "./rtp-networks.ts";

const FRAME_MS = 20;
/** How long a peer that was not named may take to send its first packet, ms. */
const PEER_WAIT_MS = 60_000;
/** A peer that sends nothing for so long has gone, ms: RTP has no good-bye. */
const SILENT_PEER_MS = 30_000;
/** Packets to a named peer before its first one: 5 s. */
const MAX_UNANSWERED = 250;
/**
 * The peer may change its SSRC (a transfer, a re-INVITE) once its stream has been silent for so long, ms: longer than
 * jitter, and short, as what comes meanwhile is lost.
 */
const STREAM_CHANGE_MS = 500;

/** What each format is made of. */
const CODECS = { ulaw_8000: "ulaw", alaw_8000: "alaw" } as const satisfies Record<RtpFormat, string>;

export interface RtpPeer {
  /** An IP address as packets that come from it name it. */
  readonly address: string;
  readonly port: number;
}

export interface RtpCall {
  readonly callId: string;
  /** What the call begins with: `session`, `text`, `voice_id`. */
  readonly parameters: Readonly<Record<string, string>> & { readonly session: string };
  readonly rights: CallRights;
  readonly format: RtpFormat;
  /** null: the first that sends from an address that may be a peer. */
  readonly peer: RtpPeer | null;
  /** The peer never sends, and is sent to all the same. */
  readonly isListenOnly: boolean;
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
  /** Who may be the peer. */
  readonly rule: PeerRule;
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
  #isConnected = false;
  #call: Call | null = null;
  #timer: Timer | null = null;
  /** The stream that is listened to; null: the peer has sent nothing. */
  #peerSsrc: number | null = null;
  /** When it sent last, else when the call began, ms. */
  #lastPacketMs = 0;
  /** Packets sent to a peer that had sent nothing yet. */
  #unanswered = 0;
  /** The last packets were not sent, as the peer has sent nothing. */
  #isHeldBack = false;
  /** What the call could not begin for. */
  #refusal: GatewayError | null = null;
  #isClosed = false;
  /** One for all packets. An error of the socket comes with the next packet or by the socket's event, not by both. */
  readonly #onSent = (thrown: Error | null): void => {
    if (thrown !== null) this.#onError(thrown);
  };

  constructor(options: RtpPortOptions) {
    this.#options = options;
    const { format, peer } = options.call;
    this.#peer = peer;
    this.#packets = new RtpPacketizer({
      ...rtpPayload(format),
      samplesPerFrame: frameSamples(format, FRAME_MS),
      ssrc: this.ssrc,
      sequence: randomInt(2 ** 16),
      timestamp: randomInt(2 ** 32),
    });
    this.#socket = createSocket({ type: rtpFamily(options.host) === 6 ? "udp6" : "udp4", lookup: lookUp });
    this.#socket.on("message", (packet, from) => this.#onPacket(packet, from));
  }

  /**
   * Resolves with the port that it has. `port` 0: one that is free. Rejects with port_in_use; with a named peer also with
   * invalid_field where no packet can get to it, and with what the call was refused for.
   */
  async bind(port: number): Promise<number> {
    await this.#listen(port);
    if (this.#isClosed) throw endedAtOnce();
    const taken = this.#socket.address().port;
    const { clock } = this.#options;
    if (this.#peer === null) {
      this.#timer = clock.at(clock.nowMs() + PEER_WAIT_MS, () => this.close());
      return taken;
    }
    await this.#connectNamed(this.#peer);
    if (!this.#isClosed) this.#beginIfRoom();
    if (this.#isClosed) throw this.#refusal ?? endedAtOnce();
    return taken;
  }

  get sessionId(): string {
    return this.#options.call.parameters.session;
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

  /** `reason`: for the call's last event. Idempotent. */
  close(reason?: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#codec.hangUp();
    this.#socket.close();
    this.#call?.closed(reason);
    this.#options.onClosed();
  }

  // ---- inside ----------------------------------------------------------------------------------------------------

  #listen(port: number): Promise<void> {
    const { host } = this.#options;
    return new Promise((resolve, reject) => {
      this.#socket.once("error", (cause) => {
        this.close();
        reject(new GatewayError("port_in_use", `Can't take RTP on ${host}:${port}`, { cause }));
      });
      this.#socket.bind(port, host, () => {
        this.#socket.removeAllListeners("error");
        this.#socket.on("error", (thrown) => this.#onError(thrown));
        resolve();
      });
    });
  }

  async #connectNamed(peer: RtpPeer): Promise<void> {
    const thrown = await new Promise<Error | undefined>((resolve) => this.#connect(peer, resolve));
    if (thrown === undefined) return;
    this.close();
    const why = `RTP leaves from ${this.#options.host}, which can't reach it (${codeOf(thrown)})`;
    throw new GatewayError(
      "invalid_field",
      `Field remote can't be used: ${why}; expected a peer that can be reached from there, or another setting host`,
      { field: "remote", cause: thrown },
    );
  }

  /**
   * Only a connected socket learns that the peer's port is closed (ICMP), and strangers' packets end in the kernel. Bound
   * to several addresses it stays open to all, as the peer may send to another of them. `onDone` comes before the next beat.
   */
  #connect({ address, port }: RtpPeer, onDone: (thrown?: Error) => void): void {
    if (!this.#options.rule.hasOneOwnAddress(address)) {
      onDone();
      return;
    }
    this.#socket.connect(port, address, (thrown?: Error) => {
      this.#isConnected = thrown === undefined;
      onDone(thrown);
    });
  }

  #onPacket(packet: Buffer, from: RemoteInfo): void {
    if (this.#isClosed) return;
    if (this.#peer === null && parseRtp(packet) !== null) this.#latch(from);
    const peer = this.#peer;
    // Connected or not: what came before is still in the socket's queue.
    if (peer === null || from.address !== peer.address || from.port !== peer.port) {
      this.#options.calls.stats.of("rtp").strangers += 1;
      return;
    }
    this.#call?.receive(packet);
  }

  /** The first that sends RTP is the peer, where it may be one. */
  #latch({ address, port }: RemoteInfo): void {
    const { rule, log } = this.#options;
    if (rule.refusal(address) !== null) return;
    const peer = { address, port };
    this.#peer = peer;
    this.#connect(peer, (thrown) => {
      if (thrown !== undefined) log.debug({ detail: thrown.message }, "RTP port stays open to all");
    });
    this.#beginIfRoom();
  }

  #onError(thrown: Error): void {
    if (this.#isClosed) return;
    this.#options.log.debug({ detail: thrown.message }, "RTP port broke");
    if (codeOf(thrown) === "ECONNREFUSED") this.close("peer unreachable");
  }

  /** A datagram from the address of the peer. */
  #read(bytes: Uint8Array): readonly CarrierEvent[] {
    const packet = parseRtp(bytes);
    if (packet === null) return [odd("a packet that is not RTP")];
    if (!this.#isOfStream(packet)) return [odd("a packet of another stream")];
    this.#lastPacketMs = this.#options.clock.nowMs();
    this.#peerSsrc = packet.ssrc;
    const { format, eventType } = this.#options.call;
    const verdict = this.#sequence.note(packet);
    if (verdict.kind === "stale") return [odd("a packet came twice or late")];
    const events = verdict.missing > 0 ? [odd(`${verdict.missing} packets are missing`)] : [];
    if (packet.payloadType === AUDIO_FORMATS[format].rtpPayloadType) {
      return packet.payload.length === 0 ? events : [...events, { kind: "media", audio: packet.payload }];
    }
    if (packet.payloadType !== eventType) return [...events, odd("a packet of another payload type")];
    const key = this.#keys.push(packet);
    return key === null ? events : [...events, { kind: "dtmf", ...key }];
  }

  #isOfStream({ ssrc }: RtpPacket): boolean {
    // What comes back of our own (RFC 3550 section 8.2) is no consent: a service that echoes would give it.
    if (ssrc === this.ssrc) return false;
    if (this.#peerSsrc === null || ssrc === this.#peerSsrc) return true;
    return this.#options.clock.nowMs() - this.#lastPacketMs >= STREAM_CHANGE_MS;
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
    this.#lastPacketMs = clock.nowMs();
    const taken = calls.take(pacedCall("rtp", { line: this, codec: this.#codec, rights: call.rights }));
    this.#call = taken;
    const { callId, parameters, format } = call;
    this.#codec.begin(
      { callId, streamId: callId, parameters, callerFormat: format, format, frameMs: FRAME_MS },
      {
        pacer,
        clock,
        silence: CODECS[format],
        send: (frame) => this.#write(frame),
        onSkipped: (frames) => this.#packets.skip(frames),
        onNews: () => taken.receive(NEWS),
      },
    );
    taken.receive(NEWS);
    this.#refusal = taken.refusal;
    if (!this.#isClosed && !call.isListenOnly) this.#watchPeer();
  }

  #watchPeer(): void {
    const { clock } = this.#options;
    const goneMs = this.#lastPacketMs + SILENT_PEER_MS;
    this.#timer = clock.at(goneMs, () => {
      if (clock.nowMs() - this.#lastPacketMs >= SILENT_PEER_MS) this.close("peer silent");
      else this.#watchPeer();
    });
  }

  get #hasConsent(): boolean {
    return this.#options.call.isListenOnly || this.#peerSsrc !== null;
  }

  /** Whether one more may be sent to a peer that has sent nothing. */
  #countUnanswered(): boolean {
    if (this.#unanswered === MAX_UNANSWERED) return false;
    this.#unanswered += 1;
    if (this.#unanswered === MAX_UNANSWERED) {
      const { log, call } = this.#options;
      log.warn(
        { carrier: "rtp", session: call.parameters.session },
        "RTP peer has sent nothing: nothing more is sent to it until it does",
      );
    }
    return true;
  }

  #write({ bytes, isTalkspurtStart }: PacedFrame): void {
    const peer = this.#peer;
    if (this.#isClosed || peer === null) return;
    if (!this.#hasConsent && !this.#countUnanswered()) {
      this.#packets.skip(1);
      this.#isHeldBack = true;
      return;
    }
    // The first behind packets that were not sent begins a talkspurt for a jitter buffer, whatever is in it.
    const packet = this.#packets.wrap(bytes, isTalkspurtStart || this.#isHeldBack);
    this.#isHeldBack = false;
    if (this.#isConnected) this.#socket.send(packet, this.#onSent);
    else this.#socket.send(packet, peer.port, peer.address, this.#onSent);
  }
}

function endedAtOnce(): GatewayError {
  return new GatewayError("session_closed", "Call could not begin: its session ended it at once");
}

function odd(what: string): CarrierEvent {
  return { kind: "odd", what };
}

function codeOf(thrown: Error): string {
  return "code" in thrown && typeof thrown.code === "string" ? thrown.code : thrown.message;
}

/** IP version of the ports of a gateway with this host. */
export function rtpFamily(host: string): 4 | 6 {
  return host.includes(":") ? 6 : 4;
}

/** For `dgram`: a peer is an address already, and what is not looked up leaves at once and not a turn of the loop later. */
function lookUp(
  name: string,
  options: LookupOptions | number,
  done: (error: NodeJS.ErrnoException | null, address: string, family: number) => void,
): void {
  const family = isIP(name);
  if (family !== 0) done(null, name, family);
  else lookUpName(name, typeof options === "number" ? { family: options } : { ...options, all: false }, done);
}
