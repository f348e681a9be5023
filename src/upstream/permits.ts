/** At most so many holders at once; the rest wait first come, first served, and only so many may wait. */

/** Gives the permit back, or leaves the queue when it was not granted yet. Idempotent. */
export type Release = () => void;

export interface PermitsOptions {
  /** Most permits held at once, 1 or more. */
  readonly max: number;
  /** Most requests that wait, 0 or more. */
  readonly maxWaiting: number;
}

type TicketState = "waiting" | "granted" | "released";

/** A node of the queue: doubly linked, so that an aborted waiter leaves from the middle at no cost. */
interface Ticket {
  readonly grant: () => void;
  state: TicketState;
  previous: Ticket | null;
  next: Ticket | null;
}

export class Permits {
  readonly #options: PermitsOptions;
  #held = 0;
  #waiting = 0;
  #first: Ticket | null = null;
  #last: Ticket | null = null;

  constructor(options: PermitsOptions) {
    this.#options = options;
  }

  get held(): number {
    return this.#held;
  }
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Asks for a permit. `grant` is called in a microtask once it is there, never before this returns and never after
   * the release; null = it would have to wait and no more may wait.
   */
  request(grant: () => void): Release | null {
    const ticket: Ticket = { grant, state: "waiting", previous: null, next: null };
    if (this.#held < this.#options.max) this.#grant(ticket);
    else if (this.#waiting < this.#options.maxWaiting) this.#append(ticket);
    else return null;
    return () => this.#release(ticket);
  }

  #release(ticket: Ticket): void {
    const before = ticket.state;
    ticket.state = "released";
    if (before === "waiting") this.#unlink(ticket);
    if (before !== "granted") return;
    this.#held -= 1;
    const next = this.#first;
    if (next === null) return;
    this.#unlink(next);
    this.#grant(next);
  }

  #grant(ticket: Ticket): void {
    ticket.state = "granted";
    this.#held += 1;
    // Not at once: the release that made room may run deep inside undici's parser.
    queueMicrotask(() => {
      if (ticket.state === "granted") ticket.grant();
    });
  }

  #append(ticket: Ticket): void {
    ticket.previous = this.#last;
    if (this.#last === null) this.#first = ticket;
    else this.#last.next = ticket;
    this.#last = ticket;
    this.#waiting += 1;
  }

  #unlink(ticket: Ticket): void {
    if (ticket.previous === null) this.#first = ticket.next;
    else ticket.previous.next = ticket.next;
    if (ticket.next === null) this.#last = ticket.previous;
    else ticket.next.previous = ticket.previous;
    this.#waiting -= 1;
  }
}
