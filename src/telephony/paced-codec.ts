/**
 * A dialect for peers that do not pace: what the call sends goes to a player of our own, and its word of what was
 * played comes back as a carrier's does. So a call is the same to its session however it is reached.
 */

import { silenceBytes } from "../audio/analysis/silence.ts";
import type { SampleCodec } from "../audio/codecs/samples.ts";
import { frameSamples } from "../audio/formats.ts";
import type { Pacer } from "../delivery/pacer.ts";
import type { Clock } from "../kit/clock.ts";
import type { CallStart, CallVia, CarrierCodec, CarrierEvent, Wire } from "../protocol/carrier/carrier.ts";
import type { CallOptions } from "./call.ts";
import { PacedPlayer, type PacedPlayerOptions } from "./paced-player.ts";

/**
 * How far ahead of playout the session sends to the player, so that a busy process leaves no gap. It costs no delay: what
 * waits is ours to throw away when speech is cut.
 */
const PACED_LEAD_MS = 300;
/** How often a mark is asked for, ms of audio. */
const PACED_MARK_MS = 100;
/** Says to a call that its codec has news of its own, which `read` gives. */
export const NEWS: Wire = "";

/** Options of a call over `line`, where the peer sends nothing before the call begins. */
export function pacedCall(
  name: CallVia,
  { codec, ...call }: Pick<CallOptions, "line" | "rights"> & { readonly codec: PacedCodec },
): CallOptions {
  const dialect = {
    name,
    subprotocols: [],
    leadMs: PACED_LEAD_MS,
    markMs: PACED_MARK_MS,
    open: () => codec,
  };
  return { ...call, hello: { query: new Map(), headers: new Map() }, dialectOf: () => dialect };
}

/** How a call is played to its peer. */
interface PacedOutput extends Pick<PacedPlayerOptions, "send" | "onSkipped"> {
  readonly pacer: Pacer;
  readonly clock: Clock;
  /** What the call's format is made of. */
  readonly silence: SampleCodec;
  /** There is something to be read: the call is to be given `NEWS`. */
  readonly onNews: () => void;
}

export class PacedCodec implements CarrierCodec {
  readonly #readPeer: (bytes: Uint8Array) => readonly CarrierEvent[];
  #player: PacedPlayer | null = null;
  #news: CarrierEvent[] = [];

  /** `readPeer` reads what the peer sends, and throws carrier_protocol. */
  constructor(readPeer: (bytes: Uint8Array) => readonly CarrierEvent[]) {
    this.#readPeer = readPeer;
  }

  /** The call has begun: `read` says so with the next message. From the next beat on its peer is played to. Once. */
  begin(call: CallStart, { pacer, clock, silence, onNews, ...output }: PacedOutput): void {
    const player = new PacedPlayer({
      ...output,
      frameMs: call.frameMs,
      silence: silenceBytes(silence, frameSamples(call.format, call.frameMs)),
      register: (paced) => pacer.register(paced, "first"),
      nowMs: () => clock.nowMs(),
      onPlayed: (name) => {
        this.#news.push({ kind: "played", name });
        onNews();
      },
    });
    this.#player = player;
    this.#news.push({ kind: "started", call });
    player.start();
  }

  read(message: Wire): readonly CarrierEvent[] {
    const events = typeof message === "string" ? [] : this.#readPeer(message);
    const news = this.#news;
    this.#news = [];
    // What the peer says first may be what the call begins with.
    return [...news, ...events];
  }

  audio(frames: readonly Uint8Array[]): readonly Wire[] {
    this.#player?.push(frames);
    return [];
  }

  mark(name: string): null {
    this.#player?.mark(name);
    return null;
  }

  clear(): readonly Wire[] {
    this.#player?.clear();
    return [];
  }

  flush(): readonly Wire[] {
    return [];
  }

  /** Idempotent. */
  hangUp(): readonly Wire[] {
    this.#player?.stop();
    return [];
  }
}
