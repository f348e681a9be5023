/** One timer for many periodic turns, spread over the period by when each was added. */

/** Resolution, ms. */
const SLOT_MS = 10;

type Turn = () => void;

export class Wheel {
  readonly #slots: Set<Turn>[];
  readonly #originMs = performance.now();
  #lastSlot = 0;

  constructor(options: { readonly periodMs: number }) {
    const count = Math.max(1, Math.round(options.periodMs / SLOT_MS));
    this.#slots = Array.from({ length: count }, () => new Set<Turn>());
    // Not unreferenced: it keeps its fixture alive until the parent goes.
    setInterval(() => this.#advance(), SLOT_MS);
  }

  /** Its first turn comes a period from now. */
  add(turn: Turn): void {
    this.#slot(this.#now()).add(turn);
  }

  remove(turn: Turn): void {
    for (const slot of this.#slots) slot.delete(turn);
  }

  #now(): number {
    return Math.floor((performance.now() - this.#originMs) / SLOT_MS);
  }

  #slot(index: number): Set<Turn> {
    return this.#slots[index % this.#slots.length] ?? new Set();
  }

  /** A late timer makes up for the slots that it missed, at most one round. */
  #advance(): void {
    const now = this.#now();
    this.#lastSlot = Math.max(this.#lastSlot, now - this.#slots.length);
    while (this.#lastSlot < now) {
      this.#lastSlot += 1;
      for (const turn of this.#slot(this.#lastSlot)) turn();
    }
  }
}
