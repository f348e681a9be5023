/** The events of one session that some listener may still have to get, oldest first, bounded in number. */
import type { LoggedEvent } from "./logged-event.ts";

export class EventLog {
  readonly #maxEntries: number;
  #entries: LoggedEvent[] = [];
  /** Index of `#entries[0]`. */
  #first = 0;
  #lastSeq = 0;
  /** The furthest place of all entries that are not withdrawn. */
  #furthestTicks = 0;
  #lastBack = -1;

  /** `maxEntries`: bound; a listener further behind than this has lost events and must be closed. */
  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  get first(): number {
    return this.#first;
  }

  get next(): number {
    return this.#first + this.#entries.length;
  }

  /** The last entry that belongs before one that was written earlier: what happens now, while audio is made ahead. */
  get lastBack(): number {
    return this.#lastBack;
  }

  append(entry: LoggedEvent): void {
    if (entry.positionTicks < this.#furthestTicks) this.#lastBack = this.next;
    else this.#furthestTicks = entry.positionTicks;
    this.#entries.push(entry);
    this.#lastSeq = entry.seq;
    // Dropping one at a time from the front of an array is linear: wait until a quarter more has gathered.
    if (this.#entries.length > this.#maxEntries * 1.25) {
      const excess = this.#entries.length - this.#maxEntries;
      this.#entries = this.#entries.slice(excess);
      this.#first += excess;
    }
  }

  entry(index: number): LoggedEvent | undefined {
    return this.#entries[index - this.#first];
  }

  /** Frees every entry before `index`. */
  trim(index: number): void {
    const count = Math.min(index - this.#first, this.#entries.length);
    if (count < 64 && count < this.#entries.length) return;
    if (count <= 0) return;
    this.#entries = this.#entries.slice(count);
    this.#first += count;
  }

  /** Marks the unsent future of these utterances as untrue. */
  withdraw(isUntrue: (entry: LoggedEvent) => boolean): void {
    this.#furthestTicks = 0;
    for (const entry of this.#entries) {
      if (isUntrue(entry)) entry.isWithdrawn = true;
      if (!entry.isWithdrawn) this.#furthestTicks = Math.max(this.#furthestTicks, entry.positionTicks);
    }
  }

  /** The first entry that `isWanted`, or the end. */
  indexWhere(isWanted: (entry: LoggedEvent) => boolean): number {
    const offset = this.#entries.findIndex(isWanted);
    return offset < 0 ? this.next : this.#first + offset;
  }

  /** Whether any entry from `index` on `isMeant`. */
  hasBehind(index: number, isMeant: (entry: LoggedEvent) => boolean): boolean {
    return this.#entries.slice(Math.max(0, index - this.#first)).some(isMeant);
  }

  /** Where a listener goes on that has had everything up to `seq`; how many events it missed are gone. */
  after(seq: number): { readonly index: number; readonly lost: number } {
    const index = this.indexWhere((entry) => entry.seq > seq);
    return { index, lost: index === this.#first ? Math.max(0, this.seqBefore(index) - seq) : 0 };
  }

  /** The number of the event before `index`, whether it is kept or not. */
  seqBefore(index: number): number {
    const entry = this.entry(index);
    return entry === undefined ? this.#lastSeq : entry.seq - 1;
  }

  /**
   * Of the events from `index` on: the first that does not belong before a place of the timeline, and where the last
   * interruption among those before it has moved the frames to.
   */
  before(index: number, ticks: number): { readonly end: number; readonly nextTicks: number | null } {
    let nextTicks: number | null = null;
    for (let end = index; ; end += 1) {
      const entry = this.entry(end);
      if (entry === undefined || (!entry.isWithdrawn && entry.positionTicks > ticks))
        return { end, nextTicks };
      if (!entry.isWithdrawn) nextTicks = entry.nextTicks ?? nextTicks;
    }
  }

  /** The place of the event with this number, where it is kept. */
  positionOf(seq: number): number | undefined {
    return this.#entries.find((entry) => entry.seq === seq)?.positionTicks;
  }

  /** The first entry at or after a timeline position. */
  indexAt(positionTicks: number): number {
    return this.indexWhere((entry) => entry.positionTicks >= positionTicks);
  }
}
