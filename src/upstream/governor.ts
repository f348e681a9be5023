/**
 * Who may ask the upstream now. At most so many requests are open in all, and of one group (a model: plans limit
 * concurrency by model) no more than the upstream lets through, as its answers say:
 *
 *   nothing yet                          a few, and more with every answer that says nothing of limits
 *   an answer with concurrency headers   limit = its maximum, less what others with the same key have open
 *   a 429                                limit = one less than are open
 *   an answer without headers            after a 429 the limit creeps up again
 *
 * The rest wait, those of a higher priority first, then first come, first served; and only so many may wait.
 *
 * What others have open no answer says. It counts the requests that were open when this one began. Ours among them were
 * at most those that were open when this one was granted, or are open now: what is above that is taken for others'.
 */

export interface GovernorOptions {
  /** Most requests open at once, 1 or more. */
  readonly max: number;
  /** Most requests that wait, 0 or more. */
  readonly maxWaiting: number;
}

export interface Wanted {
  /** Requests of one group share one limit; null: of no group, bounded by `max` alone, whatever the answers say. */
  readonly group: string | null;
  /** Higher goes first. */
  readonly priority: number;
}

export interface GroupLimit {
  readonly group: string;
  /** How many of it may be open, as far as is known. */
  readonly limit: number;
}

/** A place among those that ask, waiting or open. */
export interface Permit {
  /** Gives it back, or leaves the queue when it was not granted yet. Idempotent. */
  release(): void;
  /** What the answer's headers said: requests open for this key when it began, and how many may be. */
  learn(current: number, maximum: number): void;
  /** The upstream has answered, without a word about limits. */
  succeed(): void;
  /** The upstream has turned it away for too many. */
  turnAway(): void;
}

interface Group {
  held: number;
  /** A fraction counts towards the next whole one. */
  limit: number;
  /** unknown -> known, by the first word of the upstream about it. */
  knowledge: "unlimited" | "unknown" | "known";
  /** Sorted: the last one is next. */
  readonly waiting: Ticket[];
}

type TicketState = "waiting" | "granted" | "released";

interface Ticket {
  readonly grant: () => void;
  readonly group: Group;
  readonly priority: number;
  readonly order: number;
  state: TicketState;
  /** Of its group open when it was granted, itself included. */
  openAtGrant: number;
}

export class Governor {
  readonly #options: GovernorOptions;
  readonly #groups = new Map<string | null, Group>();
  #held = 0;
  #waiting = 0;
  #order = 0;

  constructor(options: GovernorOptions) {
    this.#options = options;
  }

  get held(): number {
    return this.#held;
  }
  get waiting(): number {
    return this.#waiting;
  }

  /** The groups whose limit is known, at most `most` of them: names come from clients. */
  limits(most: number): GroupLimit[] {
    const known: GroupLimit[] = [];
    for (const [name, { limit, knowledge }] of this.#groups) {
      if (known.length >= most) break;
      if (name !== null && knowledge === "known")
        known.push({ group: name, limit: Math.min(this.#options.max, Math.floor(limit)) });
    }
    return known;
  }

  /**
   * Asks for a permit. `grant` is called in a microtask once it is there, never before this returns and never after
   * the release; null = it would have to wait and no more may wait.
   */
  request({ group: name, priority }: Wanted, grant: () => void): Permit | null {
    const group = this.#groupOf(name);
    this.#order += 1;
    const ticket: Ticket = {
      grant,
      group,
      priority,
      order: this.#order,
      state: "waiting",
      openAtGrant: 0,
    };
    const hasRoom = this.#held < this.#options.max && group.held < Math.floor(group.limit);
    if (hasRoom) this.#grant(ticket);
    else if (this.#waiting < this.#options.maxWaiting) this.#enqueue(ticket);
    else return null;
    return {
      release: () => this.#release(ticket),
      learn: (current, maximum) => this.#learn(ticket, current, maximum),
      succeed: () => this.#succeed(ticket),
      turnAway: () => this.#turnAway(ticket),
    };
  }

  #groupOf(name: string | null): Group {
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = {
        held: 0,
        limit: name === null ? Number.POSITIVE_INFINITY : START_LIMIT,
        knowledge: name === null ? "unlimited" : "unknown",
        waiting: [],
      };
      // Names come from clients: those that nothing is known or asked of are forgotten.
      if (this.#groups.size >= MAX_GROUPS) this.#forgetIdle();
      this.#groups.set(name, group);
    }
    return group;
  }

  #forgetIdle(): void {
    for (const [name, group] of this.#groups) {
      if (group.held === 0 && group.waiting.length === 0) this.#groups.delete(name);
    }
  }

  #enqueue(ticket: Ticket): void {
    const { waiting } = ticket.group;
    // The last is next, so that it is taken at no cost; a new one goes before all that it does not go before.
    const place = waiting.findIndex((other) => isBefore(other, ticket));
    waiting.splice(place < 0 ? waiting.length : place, 0, ticket);
    this.#waiting += 1;
  }

  #release(ticket: Ticket): void {
    const before = ticket.state;
    ticket.state = "released";
    if (before === "waiting") this.#leave(ticket);
    if (before !== "granted") return;
    this.#held -= 1;
    ticket.group.held -= 1;
    this.#grantWaiting();
  }

  #leave({ group }: Ticket): void {
    this.#waiting -= 1;
    const place = group.waiting.findIndex((other) => other.state === "released");
    if (place >= 0) group.waiting.splice(place, 1);
  }

  #learn(ticket: Ticket, current: number, maximum: number): void {
    const { group } = ticket;
    if (group.knowledge === "unlimited") return;
    const others = Math.max(0, current - Math.max(ticket.openAtGrant, group.held));
    group.limit = Math.max(1, maximum - others);
    group.knowledge = "known";
    this.#grantWaiting();
  }

  #succeed(ticket: Ticket): void {
    const { group } = ticket;
    if (group.knowledge === "unlimited") return;
    group.limit += group.knowledge === "known" ? 1 / group.limit : START_STEP;
    this.#grantWaiting();
  }

  #turnAway({ group }: Ticket): void {
    if (group.knowledge === "unlimited") return;
    group.limit = Math.max(1, Math.min(Math.floor(group.limit), group.held - 1));
    group.knowledge = "known";
  }

  #grantWaiting(): void {
    while (this.#held < this.#options.max) {
      const next = this.#next();
      if (next === undefined) return;
      next.group.waiting.pop();
      this.#waiting -= 1;
      this.#grant(next);
    }
  }

  /** The first of those whose group has room. */
  #next(): Ticket | undefined {
    let best: Ticket | undefined;
    for (const group of this.#groups.values()) {
      const { waiting } = group;
      const first = waiting.at(-1);
      if (first === undefined || group.held >= Math.floor(group.limit)) continue;
      if (best === undefined || isBefore(first, best)) best = first;
    }
    return best;
  }

  #grant(ticket: Ticket): void {
    ticket.state = "granted";
    this.#held += 1;
    const { group } = ticket;
    group.held += 1;
    ticket.openAtGrant = group.held;
    // Not at once: the release that made room may run deep inside undici's parser.
    queueMicrotask(() => {
      if (ticket.state === "granted") ticket.grant();
    });
  }
}

const MAX_GROUPS = 256;
/**
 * Open at once while nothing is known: what the largest plan with a published limit lets through (the vendor: 30), so
 * that the smaller ones turn few away, and only what is larger waits for the first answer.
 */
const START_LIMIT = 32;
/** How many more each answer lets go that says nothing: with the place that it frees, four times as many every round. */
const START_STEP = 3;

/** Whether `a` goes before `b`. */
function isBefore(a: Ticket | undefined, b: Ticket): boolean {
  if (a === undefined) return false;
  return a.priority !== b.priority ? a.priority > b.priority : a.order < b.order;
}
