/**
 * A dialect for peers that do not pace: what the call sends goes to a player of our own, and its word of what was
 * played comes back as a carrier's does. So a call is the same to its session however it is reached.
 */
import type { CallStart, CarrierCodec, CarrierEvent, Wire } from "../protocol/carrier/carrier.ts";
import type { PacedPlayer } from "./paced-player.ts";

/**
 * How far ahead of playout the session sends to the player, so that a busy process leaves no gap. It costs no delay: what
 * waits is ours to throw away when speech is cut.
 */
export const PACED_LEAD_MS = 300;
/** How often a mark is asked for, ms of audio. */
export const PACED_MARK_MS = 100;
/** Tells a call that its codec has news of its own, which `read` gives. */
export const NEWS: Wire = "";

export class PacedCodec implements CarrierCodec {
  readonly #readPeer: (bytes: Uint8Array) => readonly CarrierEvent[];
  #player: PacedPlayer | null = null;
  #news: CarrierEvent[] = [];

  /** `readPeer` reads what the peer sends, and throws carrier_protocol. */
  constructor(readPeer: (bytes: Uint8Array) => readonly CarrierEvent[]) {
    this.#readPeer = readPeer;
  }

  /** The call has begun: told with the next message. The player is this codec's to stop. */
  begin(call: CallStart, player: PacedPlayer): void {
    this.#player = player;
    this.#news.push({ kind: "started", call });
    player.start();
  }

  /** The player has passed this mark: told with the next message. */
  notePlayed(name: string): void {
    this.#news.push({ kind: "played", name });
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
