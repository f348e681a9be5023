/**
 * One timer for every session of the process: wakes at most once per slot and runs what is due. A thousand
 * sessions that each wake every 100 ms cost a thousand calls in twenty slots, not a thousand timers. Where phones are
 * played to, many that are due together are woken in groups, with a turn of the event loop between.
 *
 * A timer comes to its turn when all sockets have been read that had something: with a thousand answers on the way that
 * is 50 to 130 ms later (bench p4). So whoever reads calls `wakeOverdue` between two pieces.
 */
import type { Clock, Timer } from "../kit/clock.ts";

/** Width of a slot, ms: how late a wake may be by design. */
const SLOT_MS = 4;
/**
 * So long is made for sessions in one turn of the event loop, ms, where phones are played to; sending takes about as long
 * again. The sessions are sent ahead and can wait, but a phone's next frame that has to wait for all of them is heard. With
 * a thousand sessions, turns between cost 5 to 20 % of the CPU (bench p1): batches are no longer sent in a row, and what
 * the upstream sends is read in smaller pieces. So nobody pays for them where there is no such phone.
 */
const MAX_MAKE_MS = 6;
/** A phone that was woken so long ago is played to no more, ms. */
const PHONE_MS = 1000;

/** While all is held it is looked again so often, ms. */
export const HELD_MS = 20;

export interface Paced {
  /** Called at or up to a slot after the time asked for: makes what is due; must not throw. */
  tick(nowMs: number): void;
  /** Called when every session of the wake has made its own: sends it; must not throw. */
  send(): void;
}

/**
 * Who is woken before whom in one wake: `first` those whose frames are heard the moment they are sent (a phone without a
 * buffer), and they have sent before anything is made for the others, who are sent ahead and can wait for some ms.
 */
type WakeOrder = "first" | "after";

/** Handle of one session in the pacer; asking again moves the wake, it never adds a second one. */
export interface PacedEntry {
  wakeAt(atMs: number): void;
  /** No wake any more. Idempotent. */
  cancel(): void;
}

/** In no slot. */
const NONE = -1;
/** Taken out of its slot, to be woken now. */
const DUE = -2;

class Entry implements PacedEntry {
  slot = NONE;
  readonly #pacer: Pacer;
  readonly paced: Paced;
  readonly order: WakeOrder;

  constructor(pacer: Pacer, paced: Paced, order: WakeOrder) {
    this.#pacer = pacer;
    this.paced = paced;
    this.order = order;
  }

  wakeAt(atMs: number): void {
    this.#pacer.enqueue(this, atMs);
  }

  cancel(): void {
    this.slot = NONE;
  }
}

export class Pacer {
  /** Whether nothing may be said at all: whoever sends without being woken asks. */
  readonly isHeld: (nowMs: number) => boolean;
  readonly #clock: Clock;
  readonly #slots = new Map<number, Entry[]>();
  #timer: Timer | null = null;
  #timerSlot = Number.POSITIVE_INFINITY;
  /** Due, and not woken yet, in their order. */
  readonly #waiting: Entry[] = [];
  /** The turn in which they go on; null: none waits. */
  #turn: NodeJS.Immediate | null = null;
  /** When one of `first` was woken last, ms. */
  #phoneMs = Number.NEGATIVE_INFINITY;

  /** `isHeld`: nobody is woken while this holds. */
  constructor(clock: Clock, isHeld: (nowMs: number) => boolean = () => false) {
    this.#clock = clock;
    this.isHeld = isHeld;
  }

  register(paced: Paced, order: WakeOrder = "after"): PacedEntry {
    return new Entry(this, paced, order);
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

  /** Wakes what is due if the timer should have fired by now; a comparison where it should not. Never inside a wake. */
  wakeOverdue(): void {
    if (this.#timer === null || this.#clock.nowMs() < this.#timerSlot * SLOT_MS) return;
    this.#timer.cancel();
    this.#fire();
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#timerSlot = Number.POSITIVE_INFINITY;
    this.#slots.clear();
    if (this.#turn !== null) clearImmediate(this.#turn);
    this.#turn = null;
    this.#waiting.length = 0;
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
    if (this.isHeld(nowMs)) {
      this.#arm(Math.ceil((nowMs + HELD_MS) / SLOT_MS));
      return;
    }
    const { first, after } = this.#takeDue(Math.floor(nowMs / SLOT_MS));
    if (first.length > 0) this.#phoneMs = nowMs;
    for (let at = 0; at < first.length; ) at = this.#wake(first, at);
    this.#waiting.push(...after);
    // What an earlier wake has left goes on in its own turn, and these behind it.
    if (this.#turn === null) this.#wakeWaiting();
    let next = Number.POSITIVE_INFINITY;
    for (const slot of this.#slots.keys()) if (slot < next) next = slot;
    if (next < this.#timerSlot) this.#arm(next);
  }

  /** As many as there is time for now; the others after whatever the sockets have brought meanwhile. */
  #wakeWaiting(): void {
    this.#turn = null;
    const woken = this.#wake(this.#waiting, 0);
    this.#waiting.splice(0, woken);
    if (this.#waiting.length > 0) this.#turn = setImmediate(() => this.#wakeWaiting());
  }

  /** Takes out what stands in slots up to this one, in their order. */
  #takeDue(dueSlot: number): Readonly<Record<WakeOrder, readonly Entry[]>> {
    const due: Record<WakeOrder, Entry[]> = { first: [], after: [] };
    for (const slot of [...this.#slots.keys()].filter((key) => key <= dueSlot).sort((a, b) => a - b)) {
      const bucket = this.#slots.get(slot) ?? [];
      this.#slots.delete(slot);
      for (const entry of bucket) {
        // An entry that moved on since stands in another slot, too: only its latest wish counts.
        if (entry.slot !== slot) continue;
        entry.slot = DUE;
        due[entry.order].push(entry);
      }
    }
    return due;
  }

  /** Wakes entries from this one on while there is time for it, one at least, and lets them send. Returns where to go on. */
  #wake(entries: readonly Entry[], from: number): number {
    let nowMs = this.#clock.nowMs();
    const endMs = nowMs - this.#phoneMs > PHONE_MS ? Number.POSITIVE_INFINITY : nowMs + MAX_MAKE_MS;
    const woken: Paced[] = [];
    let at = from;
    for (; at < entries.length && (at === from || nowMs < endMs); at += 1) {
      const entry = entries[at];
      // One that was woken before it may have cancelled or moved it.
      if (entry?.slot !== DUE) continue;
      entry.slot = NONE;
      entry.paced.tick(nowMs);
      woken.push(entry.paced);
      if (endMs < Number.POSITIVE_INFINITY) nowMs = this.#clock.nowMs();
    }
    // All sends in a row: the kernel's and the readers' code stays warm, and on one machine the readers stay awake.
    for (const paced of woken) paced.send();
    return at;
  }
}
