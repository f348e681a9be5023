/** A codec and a fake carrier's end joined without a socket: each message arrives in the turn in which it is sent. */
import type {
  CarrierCodec,
  CarrierEvent,
  CarrierName,
  Wire,
} from "../../../../src/protocol/carrier/carrier.ts";
import { bytesPerMs } from "../../../../src/protocol/carrier/carrier-format.ts";
import { DIALECTS } from "../../../../src/protocol/carrier/index.ts";
import { FakeClock } from "../../../helpers/fake-clock.ts";
import { fakeCall, fakePeer, fakePlayer } from "../../../kit/carriers/fake-carrier.ts";
import type { FakeCall, FakePeer } from "../../../kit/carriers/peer.ts";
import type { VirtualPlayer } from "../../../kit/carriers/virtual-player.ts";

export interface WiredOptions {
  readonly call?: Partial<FakeCall>;
  readonly control?: "plain" | "json";
  readonly query?: Readonly<Record<string, string>>;
}

export class WiredCall {
  readonly clock = new FakeClock();
  readonly call: FakeCall;
  readonly player: VirtualPlayer;
  readonly peer: FakePeer;
  readonly codec: CarrierCodec;
  readonly violations: string[] = [];
  readonly events: CarrierEvent[] = [];
  /** Called with each event in its turn. */
  onEvent: (event: CarrierEvent) => void = () => undefined;

  constructor(carrier: CarrierName, { call, control, query = {} }: WiredOptions = {}) {
    this.call = fakeCall(carrier, call);
    this.player = fakePlayer(carrier, this.call.format, this.clock);
    this.codec = DIALECTS[carrier].open({ query: new Map(Object.entries(query)), headers: new Map() });
    const link = {
      call: this.call,
      player: this.player,
      send: (message: Wire) => this.deliver(message),
      violate: (what: string) => {
        this.violations.push(what);
      },
    };
    this.peer = fakePeer(carrier, link, control);
    for (const message of this.peer.opening()) this.deliver(message);
  }

  /** 20 ms in what the carrier wants to be sent. */
  get frameBytes(): number {
    return bytesPerMs(this.call.format) * 20;
  }

  deliver(message: Wire): void {
    for (const event of this.codec.read(message)) {
      // Audio is good until the next message only.
      const kept = event.kind === "media" ? { ...event, audio: event.audio.slice() } : event;
      this.events.push(kept);
      this.onEvent(kept);
    }
  }

  audio(frames: readonly Uint8Array[]): void {
    this.#send(this.codec.audio(frames));
  }

  mark(name: string): void {
    const mark = this.codec.mark(name);
    if (mark !== null) this.#send([mark]);
  }

  clear(): void {
    this.#send(this.codec.clear());
  }

  flush(): void {
    this.#send(this.codec.flush());
  }

  /** The names of the marks that were played so far. */
  get played(): readonly string[] {
    return this.events.flatMap((event) => (event.kind === "played" ? [event.name] : []));
  }

  get odd(): readonly string[] {
    return this.events.flatMap((event) => (event.kind === "odd" ? [event.what] : []));
  }

  #send(messages: readonly Wire[]): void {
    for (const message of messages) this.peer.take(message);
  }
}

/** All ways of wiring that are worth a test: each carrier, and the formats and controls that differ. */
export const WIRINGS: readonly (readonly [string, CarrierName, WiredOptions])[] = [
  ["twilio", "twilio", {}],
  ["signalwire PCMU", "signalwire", {}],
  ["signalwire L16", "signalwire", { call: { format: "pcm_24000" } }],
  ["telnyx PCMU", "telnyx", {}],
  ["telnyx PCMA", "telnyx", { call: { format: "alaw_8000" }, query: { codec: "PCMA" } }],
  ["telnyx L16", "telnyx", { call: { format: "pcm_16000" }, query: { codec: "L16", sample_rate: "16000" } }],
  ["plivo mu-law", "plivo", {}],
  ["plivo L16", "plivo", { call: { format: "pcm_16000" } }],
  ["vonage 16 kHz", "vonage", {}],
  ["vonage 8 kHz", "vonage", { call: { format: "pcm_8000" } }],
  ["exotel 8 kHz", "exotel", {}],
  ["exotel 24 kHz", "exotel", { call: { format: "pcm_24000" } }],
  ["exotel mu-law", "exotel", { call: { format: "ulaw_8000" } }],
  ["jambonz", "jambonz", {}],
  [
    "jambonz 8 to 24 kHz",
    "jambonz",
    { call: { format: "pcm_24000", callerFormat: "pcm_8000" }, query: { sample_rate: "24000" } },
  ],
  ["asterisk plain", "asterisk", {}],
  ["asterisk JSON slin16", "asterisk", { call: { format: "pcm_16000" }, control: "json" }],
];
