/**
 * Marks that were asked for and have not come back. Some carriers answer a mark that a clear has taken away as if it had
 * been played: what was pending when `clear` was sent never counts as played, whenever its answer comes.
 */

import { type CarrierEvent, NO_EVENTS, odd } from "./carrier.ts";

/** More marks than this wait for no carrier: one that answers none is asked for no more. */
const MAX_PENDING_MARKS = 256;

export class PendingMarks {
  readonly #maxPending: number;
  /** In the order they were asked for. */
  #pending: string[] = [];
  /** Taken away by a clear and perhaps still to come back; with the number of that clear. */
  #cleared: { readonly name: string; readonly clearNumber: number }[] = [];
  #clears = 0;
  #confirmedClears = 0;

  constructor(maxPending: number = MAX_PENDING_MARKS) {
    this.#maxPending = Math.min(maxPending, MAX_PENDING_MARKS);
  }

  /** False where as many wait as may: the mark is not to be sent. Throws RangeError for a name that is not allowed. */
  ask(name: string): boolean {
    if (!/^[A-Za-z0-9]{1,32}$/.test(name)) throw new RangeError("A mark has 1 to 32 letters and digits");
    if (this.#pending.length >= this.#maxPending) return false;
    this.#pending.push(name);
    return true;
  }

  /**
   * What the answer means. Sockets keep the order, so that a mark that is answered settles those before it: their
   * answers were lost.
   */
  answer(name: string): "played" | "cleared" | "unknown" {
    const clearedAt = this.#cleared.findIndex((mark) => mark.name === name);
    if (clearedAt >= 0) {
      this.#cleared.splice(0, clearedAt + 1);
      return "cleared";
    }
    const pendingAt = this.#pending.indexOf(name);
    if (pendingAt < 0) return "unknown";
    this.#pending.splice(0, pendingAt + 1);
    return "played";
  }

  /** The events of an answer whose marks come back only when they are played or cleared. */
  answerEvents(name: string): readonly CarrierEvent[] {
    const answer = this.answer(name);
    if (answer === "unknown") return odd("a mark that was not asked for");
    return answer === "played" ? [{ kind: "played", name }] : NO_EVENTS;
  }

  /** A clear is sent. */
  clear(): void {
    this.#clears += 1;
    const clearNumber = this.#clears;
    this.#cleared.push(...this.#pending.map((name) => ({ name, clearNumber })));
    this.#cleared.splice(0, this.#cleared.length - MAX_PENDING_MARKS);
    this.#pending = [];
  }

  /** The carrier says that it has cleared: no mark of before this clear can come any more. */
  confirmClear(): void {
    this.#confirmedClears = Math.min(this.#confirmedClears + 1, this.#clears);
    this.#cleared = this.#cleared.filter((mark) => mark.clearNumber > this.#confirmedClears);
  }
}
