/**
 * Who may ask the upstream now. At most so many requests are open in all, and of one group (a model: plans limit
 * concurrency by model) no more than the upstream lets through, as its answers say:
 *
 *   nothing yet                          a few, and more with every answer that says nothing of limits
 *   an answer with concurrency headers   limit = its maximum, less what others with the same key have open
 *   a 429                                limit = one less than are open
 *   an answer without headers            after a 429 the limit creeps up again
 *
 * Of services that never say their limit (`isAdditive`) it is felt for, from one that is known to be let through:
 *
 *   an answer, where the limit was used  one more for each round of answers
 *   turned away for too many             half of it, once for all that were open together
 *
 * The rest wait, and only so many may. A place that comes free goes to the subject that holds the fewest, of several to the
 * one that has waited longest since it last got or gave back one. Within a subject those of a higher priority go first, then
 * first come, first served. Where no more may wait, somebody who has fewer waiting takes a place from who has the most.
 *
 * What others have open no answer says. It counts the requests that were open when this one began. Ours among them were
 * at most those that were open when this one was granted, or are open now: what is above that is taken for others'.
 */

import type { Payer } from "../ledger/entries.ts";

export interface GovernorOptions {
  /** Most requests open at once, 1 or more. */
  readonly max: number;
  /** Most requests that wait, 0 or more. */
  readonly maxWaiting: number;
  /** Requests of one group open at once while nothing is known of its limit; default 32. */
  readonly startLimit?: number;
  /** Answers never say the limit. Default false. */
  readonly isAdditive?: boolean;
}

/** For whom something is asked. */
export interface Subject {
  readonly id: string;
  /** Most places at once, 1 or more; Infinity: all that nobody else waits for. */
  readonly maxPlaces: number;
  /** Who pays for it; default: nobody is known. */
  readonly payer?: Payer | undefined;
}

export interface Wanted {
  /** Requests of one group share one limit; null: of no group, bounded by `max` alone, whatever the answers say. */
  readonly group: string | null;
  /** Among requests of one subject the higher goes first. */
  readonly priority: number;
  /** Default: the gateway itself. */
  readonly subject?: Subject | undefined;
}

export interface Answers {
  /** The place is there. */
  grant(): void;
  /** It waits no more: its place in the queue is somebody's who has fewer. */
  turnOut(): void;
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
  /** When it was halved last: a number of the count that orders tickets. */
  halvedAt: number;
  /** What waits, by subject; each sorted: the last one is next. */
  readonly lines: Map<Share, Ticket[]>;
}

/** What one subject has. */
interface Share {
  held: number;
  waiting: number;
  /** When it began to wait, or last got or gave back a place: a number of the count that orders tickets. */
  since: number;
}

type TicketState = "waiting" | "granted" | "released";

interface Ticket {
  readonly answers: Answers;
  readonly group: Group;
  readonly subject: Subject;
  readonly share: Share;
  readonly priority: number;
  readonly order: number;
  state: TicketState;
  /** Open requests of its group when it was granted, itself included; and when that was, by the count that orders tickets. */
  openAtGrant: number;
  grantedAt: number;
}

export class Governor {
  readonly #options: GovernorOptions;
  /** This node's share of `max`, where all nodes have it together. */
  #max: number;
  readonly #groups = new Map<string | null, Group>();
  /** By subject; of those that hold a place or wait. */
  readonly #shares = new Map<string, Share>();
  #held = 0;
  #waiting = 0;
  #refused = 0;
  #order = 0;

  constructor(options: GovernorOptions) {
    this.#options = options;
    this.#max = options.max;
  }

  get held(): number {
    return this.#held;
  }
  /** Most that may be held now. */
  get max(): number {
    return this.#max;
  }
  get waiting(): number {
    return this.#waiting;
  }
  /** So many were not let wait, or had to stop waiting, since no more may. */
  get refused(): number {
    return this.#refused;
  }

  /** From now on so many may be open, 1 or more, and never more than `max`. What is open goes on. */
  limit(max: number): void {
    this.#max = Math.min(this.#options.max, max);
    this.#grantWaiting();
  }

  /** The groups whose limit is known, at most `most` of them: names come from clients. */
  limits(most: number): GroupLimit[] {
    const known: GroupLimit[] = [];
    for (const [name, { limit, knowledge }] of this.#groups) {
      if (known.length >= most) break;
      if (name !== null && knowledge === "known")
        known.push({ group: name, limit: Math.min(this.#max, Math.floor(limit)) });
    }
    return known;
  }

  /**
   * Asks for a permit. `grant` is called in a microtask once it is there, never before this returns and never after
   * the release; so is `turnOut`. null = it would have to wait and no more may wait.
   */
  request({ group: name, priority, subject = OWN }: Wanted, answers: Answers): Permit | null {
    const group = this.#groupOf(name);
    const share = this.#shares.get(subject.id) ?? { held: 0, waiting: 0, since: 0 };
    const ticket: Ticket = {
      answers,
      group,
      subject,
      share,
      priority,
      order: this.#nextOrder(),
      state: "waiting",
      openAtGrant: 0,
      grantedAt: 0,
    };
    if (this.#held < this.#max && hasRoom(ticket)) this.#grant(ticket);
    else if (this.#waiting < this.#options.maxWaiting || this.#makeRoom(share)) this.#enqueue(ticket);
    else {
      this.#refused += 1;
      return null;
    }
    this.#shares.set(subject.id, share);
    return {
      release: () => this.#release(ticket),
      learn: (current, maximum) => this.#learn(ticket, current, maximum),
      succeed: () => this.#succeed(ticket),
      turnAway: () => this.#turnAway(ticket),
    };
  }

  #nextOrder(): number {
    this.#order += 1;
    return this.#order;
  }

  #groupOf(name: string | null): Group {
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = {
        held: 0,
        limit: name === null ? Number.POSITIVE_INFINITY : (this.#options.startLimit ?? START_LIMIT),
        knowledge: name === null ? "unlimited" : "unknown",
        halvedAt: 0,
        lines: new Map(),
      };
      // Names come from clients: those that nothing is known or asked of are forgotten.
      if (this.#groups.size >= MAX_GROUPS) this.#forgetIdle();
      this.#groups.set(name, group);
    }
    return group;
  }

  #forgetIdle(): void {
    for (const [name, group] of this.#groups) {
      if (group.held === 0 && group.lines.size === 0) this.#groups.delete(name);
    }
  }

  #enqueue(ticket: Ticket): void {
    const { group, share } = ticket;
    const line = group.lines.get(share) ?? [];
    group.lines.set(share, line);
    // The last is next, so that it is taken at no cost; a new one goes before all that it does not go before.
    const place = line.findIndex((other) => isBefore(other, ticket));
    line.splice(place < 0 ? line.length : place, 0, ticket);
    if (share.waiting === 0) share.since = ticket.order;
    share.waiting += 1;
    this.#waiting += 1;
  }

  /** Turns out the last of who has the most waiting, where that is more than this subject will have. */
  #makeRoom({ waiting }: Share): boolean {
    let most: Share | undefined;
    for (const share of this.#shares.values())
      if (share.waiting > (most?.waiting ?? waiting + 1)) most = share;
    if (most === undefined) return false;
    const last = this.#lastOf(most);
    if (last === undefined) return false;
    this.#release(last);
    this.#refused += 1;
    queueMicrotask(() => last.answers.turnOut());
    return true;
  }

  #lastOf(share: Share): Ticket | undefined {
    let last: Ticket | undefined;
    for (const { lines } of this.#groups.values()) {
      const ticket = lines.get(share)?.[0];
      if (ticket !== undefined && (last === undefined || isBefore(last, ticket))) last = ticket;
    }
    return last;
  }

  #release(ticket: Ticket): void {
    const before = ticket.state;
    const { share, group, subject } = ticket;
    ticket.state = "released";
    if (before === "waiting") this.#leave(ticket);
    if (before === "granted") {
      this.#held -= 1;
      group.held -= 1;
      share.held -= 1;
      share.since = this.#nextOrder();
    }
    if (before !== "released" && share.held === 0 && share.waiting === 0) this.#shares.delete(subject.id);
    if (before === "granted") this.#grantWaiting();
  }

  #leave(ticket: Ticket): void {
    const { group, share } = ticket;
    const line = group.lines.get(share) ?? [];
    const place = line.indexOf(ticket);
    if (place >= 0) line.splice(place, 1);
    if (line.length === 0) group.lines.delete(share);
    share.waiting -= 1;
    this.#waiting -= 1;
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
    if (this.#options.isAdditive === true) {
      // A limit that nobody came near says nothing of the service's own.
      if (ticket.openAtGrant < Math.floor(group.limit)) return;
      group.limit = Math.min(this.#options.max, group.limit + 1 / group.limit);
    } else group.limit += group.knowledge === "known" ? 1 / group.limit : START_STEP;
    this.#grantWaiting();
  }

  #turnAway(ticket: Ticket): void {
    const { group } = ticket;
    if (group.knowledge === "unlimited") return;
    if (this.#options.isAdditive === true) this.#halve(ticket);
    else group.limit = Math.max(1, Math.min(Math.floor(group.limit), group.held - 1));
    group.knowledge = "known";
  }

  /** Those that were open together are turned away together: it was one limit too many, not many. */
  #halve({ group, grantedAt, openAtGrant }: Ticket): void {
    if (grantedAt < group.halvedAt) return;
    group.limit = Math.max(1, Math.min(Math.floor(group.limit), openAtGrant) / 2);
    group.halvedAt = this.#nextOrder();
  }

  #grantWaiting(): void {
    while (this.#held < this.#max) {
      const next = this.#next();
      if (next === undefined) return;
      this.#leave(next);
      this.#grant(next);
    }
  }

  /** The first of those whose group and subject have room. */
  #next(): Ticket | undefined {
    let best: Ticket | undefined;
    for (const group of this.#groups.values()) {
      if (group.held >= Math.floor(group.limit)) continue;
      for (const line of group.lines.values()) {
        const first = line.at(-1);
        if (first === undefined || !hasRoom(first)) continue;
        if (best === undefined || isServedBefore(first, best)) best = first;
      }
    }
    return best;
  }

  #grant(ticket: Ticket): void {
    ticket.state = "granted";
    this.#held += 1;
    const { group, share } = ticket;
    group.held += 1;
    share.held += 1;
    share.since = this.#nextOrder();
    ticket.openAtGrant = group.held;
    ticket.grantedAt = share.since;
    // Not at once: the release that made room may run deep inside undici's parser.
    queueMicrotask(() => {
      if (ticket.state === "granted") ticket.answers.grant();
    });
  }
}

/** What the gateway asks for itself: its voices, its checks. */
const OWN: Subject = { id: "", maxPlaces: Number.POSITIVE_INFINITY };
const MAX_GROUPS = 256;
/**
 * Open at once while nothing is known: what the largest plan with a published limit lets through (the vendor: 30), so
 * that the smaller ones turn few away, and only what is larger waits for the first answer.
 */
const START_LIMIT = 32;
/** How many more each answer lets go that says nothing: with the place that it frees, four times as many every round. */
const START_STEP = 3;

/** Whether its group and its subject may have one more open. */
function hasRoom({ group, share, subject }: Ticket): boolean {
  return group.held < Math.floor(group.limit) && share.held < subject.maxPlaces;
}

/** Whether `a` gets a place before `b`, of this subject or another. */
function isServedBefore(a: Ticket, b: Ticket): boolean {
  if (a.share === b.share) return isBefore(a, b);
  return a.share.held !== b.share.held ? a.share.held < b.share.held : a.share.since < b.share.since;
}

/** Whether `a` goes before `b`, both of one subject. */
function isBefore(a: Ticket, b: Ticket): boolean {
  return a.priority !== b.priority ? a.priority > b.priority : a.order < b.order;
}
