/**
 * One timer for every session of the process: wakes at most once per slot and runs what is due. A thousand
 * sessions that each wake every 100 ms cost a thousand calls in twenty slots, not a thousand timers.
 */
import type { Clock, Timer } from "../kit/clock.ts";

/** Width of a slot, ms: how late a wake may be by design. */
const SLOT_MS = 4;

export interface Paced {
  /** Called at or up to a slot after the time asked for: makes what is due; must not throw. */
  tick(nowMs: number): void;
  /** Called when every session of the wake has made its own: sends it; must not throw. */
  send(): void;
}

/** Handle of one session in the pacer; asking again moves the wake, it never adds a second one. */
export interface PacedEntry {
  wakeAt(atMs: number): void;
  /** No wake any more. Idempotent. */
  cancel(): void;
}

class Entry implements PacedEntry {
  slot = -1;
  readonly #pacer: Pacer;
  readonly paced: Paced;

  constructor(pacer: Pacer, paced: Paced) {
    this.#pacer = pacer;
    this.paced = paced;
  }

  wakeAt(atMs: number): void {
    this.#pacer.enqueue(this, atMs);
  }

  cancel(): void {
    this.slot = -1;
  }
}

export class Pacer {
  readonly #clock: Clock;
  readonly #slots = new Map<number, Entry[]>();
  #timer: Timer | null = null;
  #timerSlot = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  register(paced: Paced): PacedEntry {
    return new Entry(this, paced);
  }

  enqueue(entry: Entry, atMs: number): void {
    const slot = Math.ceil(atMs / SLOT_MS);
    if (entry.slot === slot) return;
    entry.slot = slot;
    const bucket = this.#slots.get(slot);
    if (bucket === undefined) this.#slots.set(slot, [entry]);
    else bucket.push(entry);
    if (slot < this.#timerSlot) this.#arm(slot);
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#timerSlot = Number.POSITIVE_INFINITY;
    this.#slots.clear();
  }

  #arm(slot: number): void {
    this.#timer?.cancel();
    this.#timerSlot = slot;
    this.#timer = this.#clock.at(slot * SLOT_MS, () => this.#fire());
  }

  #fire(): void {
    this.#timer = null;
    this.#timerSlot = Number.POSITIVE_INFINITY;
    const nowMs = this.#clock.nowMs();
    const dueSlot = Math.floor(nowMs / SLOT_MS);
    const woken: Paced[] = [];
    for (const slot of [...this.#slots.keys()].filter((key) => key <= dueSlot).sort((a, b) => a - b)) {
      const bucket = this.#slots.get(slot) ?? [];
      this.#slots.delete(slot);
      for (const entry of bucket) {
        // An entry that moved on since stands in another slot, too: only its latest wish counts.
        if (entry.slot !== slot) continue;
        entry.slot = -1;
        entry.paced.tick(nowMs);
        woken.push(entry.paced);
      }
    }
    // All sends in a row: the kernel's and the readers' code stays warm, and on one machine the readers stay awake.
    for (const paced of woken) paced.send();
    let next = Number.POSITIVE_INFINITY;
    for (const slot of this.#slots.keys()) if (slot < next) next = slot;
    if (next < this.#timerSlot) this.#arm(next);
  }
}
