/**
 * A carrier's end of a call over a real WebSocket: dials, starts the call, plays what it is sent on a virtual player and
 * behaves as the vendor's documentation says. What the vendor would not take is in `violations`: a test ends with
 * `expect(carrier.violations).toEqual([])`.
 */
import { randomUUID } from "node:crypto";
import WebSocket from "ws";
import { type Clock, systemClock } from "../../../src/kit/clock.ts";
import type { CarrierName, Wire } from "../../../src/protocol/carrier/carrier.ts";
import type { AudioFormat } from "../../../src/protocol/vocabulary.ts";
import { AsteriskPeer } from "./asterisk-peer.ts";
import { ExotelPeer } from "./exotel-peer.ts";
import { JambonzPeer } from "./jambonz-peer.ts";
import { type FakeCall, type FakePeer, factsOf, type PeerLink, type SampleFormat } from "./peer.ts";
import { PlivoPeer } from "./plivo-peer.ts";
import { TelnyxPeer } from "./telnyx-peer.ts";
import { SignalwirePeer, TwilioPeer } from "./twilio-peers.ts";
import { VirtualPlayer } from "./virtual-player.ts";
import { VonagePeer } from "./vonage-peer.ts";

export interface FakeCarrierOptions {
  readonly carrier: CarrierName;
  /** `ws://...`, with the query that the application would give it. */
  readonly url: string;
  readonly call?: Partial<FakeCall>;
  /** Of the upgrade request, e.g. `x-twilio-signature`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Asterisk's control messages; default plain. */
  readonly control?: "plain" | "json";
  readonly clock?: Clock;
  /** false: connects and says nothing; the test sends what it wants with `sendRaw`. Default true. */
  readonly startsCall?: boolean;
}

/** Messages that a fake keeps to be looked at. */
const MAX_KEPT_MESSAGES = 10_000;
const SUBPROTOCOLS: Partial<Record<CarrierName, string>> = {
  jambonz: "audio.jambonz.org",
  asterisk: "media",
};
const DEFAULT_FORMATS: Readonly<Record<CarrierName, SampleFormat>> = {
  twilio: "ulaw_8000",
  signalwire: "ulaw_8000",
  telnyx: "ulaw_8000",
  plivo: "ulaw_8000",
  vonage: "pcm_16000",
  exotel: "pcm_8000",
  jambonz: "pcm_16000",
  asterisk: "ulaw_8000",
};
/** jambonz plays nothing until it has so much. */
const PREBUFFER_MS: Partial<Record<CarrierName, number>> = { jambonz: 80 };

/** A call of that carrier with what a test does not care about filled in. */
export function fakeCall(carrier: CarrierName, call: Partial<FakeCall> = {}): FakeCall {
  const id = randomUUID();
  const hex = id.replaceAll("-", "");
  const isTwilio = carrier === "twilio";
  const format = call.format ?? DEFAULT_FORMATS[carrier];
  return {
    callId: isTwilio ? `CA${hex}` : id,
    streamId: isTwilio ? `MZ${hex}` : randomUUID(),
    from: "+15550100",
    to: "+15550199",
    parameters: {},
    format,
    callerFormat: format === "opus_48000" ? DEFAULT_FORMATS[carrier] : format,
    ...call,
  };
}

export function fakePlayer(carrier: CarrierName, format: AudioFormat, clock: Clock): VirtualPlayer {
  const { sampleRate, bytesPerSample } = factsOf(format);
  return new VirtualPlayer({ clock, sampleRate, bytesPerSample, prebufferMs: PREBUFFER_MS[carrier] ?? 0 });
}

export function fakePeer(carrier: CarrierName, link: PeerLink, control?: "plain" | "json"): FakePeer {
  switch (carrier) {
    case "twilio":
      return new TwilioPeer(link);
    case "signalwire":
      return new SignalwirePeer(link);
    case "telnyx":
      return new TelnyxPeer(link);
    case "plivo":
      return new PlivoPeer(link);
    case "vonage":
      return new VonagePeer(link);
    case "exotel":
      return new ExotelPeer(link);
    case "jambonz":
      return new JambonzPeer(link);
    case "asterisk":
      return new AsteriskPeer(link, control);
  }
}

export class FakeCarrier {
  readonly call: FakeCall;
  readonly player: VirtualPlayer;
  /** What the vendor would have refused, dropped or logged as an error. */
  readonly violations: string[] = [];
  /** The messages that came, the first 10,000. */
  readonly received: Wire[] = [];
  /** Close code, once the socket is closed. */
  readonly closed: Promise<number>;
  readonly #socket: WebSocket;
  readonly #peer: FakePeer;

  private constructor(socket: WebSocket, options: FakeCarrierOptions) {
    const { carrier, clock = systemClock } = options;
    this.#socket = socket;
    this.call = fakeCall(carrier, options.call);
    this.player = fakePlayer(carrier, this.call.format, clock);
    const link: PeerLink = {
      call: this.call,
      player: this.player,
      send: (message) => this.sendRaw(message),
      violate: (what) => this.violations.push(what),
    };
    this.#peer = fakePeer(carrier, link, options.control);
    this.closed = new Promise((resolve) => {
      socket.on("close", (code) => {
        this.#peer.close();
        resolve(code);
      });
    });
    socket.on("message", (data: Buffer, isBinary) => this.#take(isBinary ? data : data.toString("utf8")));
  }

  /** Dials and starts the call; rejects where the upgrade is refused (`Unexpected server response: 403`). */
  static async dial(options: FakeCarrierOptions): Promise<FakeCarrier> {
    const subprotocol = SUBPROTOCOLS[options.carrier];
    const socket = new WebSocket(options.url, subprotocol === undefined ? [] : [subprotocol], {
      headers: { ...options.headers },
      perMessageDeflate: false,
    });
    const carrier = new FakeCarrier(socket, options);
    await new Promise<void>((resolve, reject) => {
      socket.once("open", () => resolve());
      socket.once("error", reject);
    });
    // What breaks later is seen as a close.
    socket.on("error", (error) => carrier.violations.push(`the socket failed: ${error.message}`));
    if (options.startsCall !== false) for (const message of carrier.#peer.opening()) carrier.sendRaw(message);
    return carrier;
  }

  /** Samples that the caller has heard up to now, silence not counted. */
  get playedSamples(): number {
    return this.player.playedSamples;
  }

  /** Every byte that the caller has heard up to now, in the call's format. */
  heard(): Uint8Array {
    return this.player.heard();
  }

  /** The caller speaks: one message of audio in `call.callerFormat`. */
  say(audio: Uint8Array): void {
    this.sendRaw(this.#peer.media(audio));
  }

  press(digit: string): void {
    this.sendRaw(this.#peer.digit(digit));
  }

  /** Any message, right or wrong; nothing where the socket is closed. */
  sendRaw(message: Wire): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(message);
  }

  /** Stops reading the socket, as a carrier in trouble does; `resume` goes on. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** The caller hangs up: the vendor's last words, then the close. Resolves with the close code. */
  async hangUp(): Promise<number> {
    for (const message of this.#peer.closing()) this.sendRaw(message);
    this.#socket.close(1000);
    return await this.closed;
  }

  /** The connection is gone without a word. */
  async drop(): Promise<number> {
    this.#socket.terminate();
    return await this.closed;
  }

  #take(message: Wire): void {
    if (this.received.length < MAX_KEPT_MESSAGES) this.received.push(message);
    this.#peer.take(message);
    if (this.#peer instanceof AsteriskPeer && this.#peer.isHungUp) this.#socket.close(1000);
  }
}
