/**
 * A crowd of requests through a governor to an upstream with a limit, in simulated time: how long all of them take, and
 * why places at the upstream stood empty meanwhile. Nothing in it is measured: the same input gives the same figures.
 *
 * The upstream answers as the vendor does: headers with how many are open and may be, 429 above that.
 */

import type { Governor, Permit, Wanted } from "../../../src/upstream/governor.ts";
import type { ResponseHeaders } from "../../../src/upstream/headers.ts";
import { informPermit, turnedAwayDelayMs } from "../../../src/upstream/transport/concurrency-answers.ts";

/** All times in ms. */
export interface SimulatedUpstream {
  /** Requests that it lets through at once. */
  readonly limit: number;
  /** What others with the same key have open all the time; default 0. */
  readonly others?: number;
  /** Whether its answers say how many are open and may be; default true. */
  readonly hasHeaders?: boolean;
  /** From the arrival of the request `index` to the headers of its answer, and to its last byte. */
  readonly headMs: (index: number) => number;
  readonly wholeMs: (index: number) => number;
  /** How much later than the last byte its place is free; default 0. */
  readonly lateFreeMs?: number;
  /** One way; by the number of the try, since requests overtake one another. */
  readonly wayMs: (tries: number) => number;
  /** What the client and the upstream each work on a request that is begun, one after the other; default 0. */
  readonly startCostMs?: number;
}

/** Empty places at the upstream while requests were not done, in ms times places. */
export interface IdlePlaces {
  /** A request is on its way there, or being begun. */
  readonly going: number;
  /** A last byte is on its way back, or its place is not free yet. */
  readonly coming: number;
  /** Requests wait in the governor, which lets none go. */
  readonly heldBack: number;
  /** None waits there: all that are left wait out a 429. */
  readonly backingOff: number;
  /** None is left that was not begun: the last wave is not full. */
  readonly remainder: number;
}

export interface SimulatedRun {
  readonly makespanMs: number;
  readonly idle: IdlePlaces;
  /** Answers with 429. */
  readonly turnedAway: number;
}

/** All come at once. */
export interface SimulatedCrowd {
  readonly requests: number;
  readonly wanted: Wanted;
}

/** Runs until every request has its whole answer. Throws where that never comes. */
export async function simulate(
  governor: Governor,
  crowd: SimulatedCrowd,
  upstream: SimulatedUpstream,
): Promise<SimulatedRun> {
  const simulation = new Simulation(governor, crowd, upstream);
  return await simulation.run();
}

/** More steps than any crowd here needs. */
const MAX_STEPS = 100_000;

class Simulation {
  readonly #governor: Governor;
  readonly #crowd: SimulatedCrowd;
  readonly #upstream: Required<SimulatedUpstream>;
  #nowMs = 0;
  #due: { readonly atMs: number; readonly action: () => void }[] = [];
  #clientFreeMs = 0;
  #upstreamFreeMs = 0;
  #open = 0;
  #going = 0;
  #coming = 0;
  #backingOff = 0;
  #tries = 0;
  #turnedAway = 0;
  #done = 0;
  #lastEndMs = 0;
  readonly #idle = { going: 0, coming: 0, heldBack: 0, backingOff: 0, remainder: 0 };

  constructor(governor: Governor, crowd: SimulatedCrowd, upstream: SimulatedUpstream) {
    this.#governor = governor;
    this.#crowd = crowd;
    this.#upstream = { others: 0, hasHeaders: true, lateFreeMs: 0, startCostMs: 0, ...upstream };
  }

  async run(): Promise<SimulatedRun> {
    const { requests } = this.#crowd;
    for (let index = 0; index < requests; index += 1) this.#at(0, () => this.#ask(index, 0));
    for (let step = 0; this.#done < requests; step += 1) {
      const next = this.#due.shift();
      if (next === undefined || step > MAX_STEPS)
        throw new Error(`Stuck: ${this.#done} of ${requests} requests are done`);
      this.#countIdle(next.atMs - this.#nowMs);
      this.#nowMs = next.atMs;
      next.action();
      // Grants come in microtasks.
      await Promise.resolve();
    }
    return {
      makespanMs: this.#lastEndMs,
      idle: this.#idle,
      turnedAway: this.#turnedAway,
    };
  }

  #ask(index: number, timesBefore: number): void {
    const grant = (): void => {
      this.#going += 1;
      const { wayMs, startCostMs } = this.#upstream;
      this.#clientFreeMs = Math.max(this.#clientFreeMs, this.#nowMs) + startCostMs;
      this.#tries += 1;
      const arrivesMs = this.#clientFreeMs + wayMs(this.#tries);
      this.#at(arrivesMs, () => {
        this.#upstreamFreeMs = Math.max(this.#upstreamFreeMs, this.#nowMs) + startCostMs;
        this.#at(this.#upstreamFreeMs, () => this.#arrive(index, timesBefore, permit));
      });
    };
    const turnOut = (): void => {
      throw new Error("The governor has turned one out that nobody took the place of");
    };
    const permit: Permit | null = this.#governor.request(this.#crowd.wanted, { grant, turnOut });
    if (permit === null) throw new Error("The governor takes no more: expected room for the whole crowd");
  }

  #arrive(index: number, timesBefore: number, permit: Permit | null): void {
    const { limit, others, hasHeaders, headMs, wholeMs, lateFreeMs, wayMs } = this.#upstream;
    this.#going -= 1;
    const back = wayMs(this.#tries);
    if (this.#open + others >= limit) {
      this.#turnedAway += 1;
      // Not open, and not yet backing off: its place in the governor is still taken.
      this.#at(this.#nowMs + back, () => this.#backOff(index, timesBefore, permit));
      return;
    }
    this.#open += 1;
    const counts: ResponseHeaders = {
      "current-concurrent-requests": String(this.#open + others),
      "maximum-concurrent-requests": String(limit),
    };
    this.#at(this.#nowMs + headMs(index) + back, () => informPermit(permit, 200, hasHeaders ? counts : {}));
    this.#at(this.#nowMs + wholeMs(index), () => {
      this.#coming += 1;
      this.#at(this.#nowMs + lateFreeMs, () => {
        this.#open -= 1;
      });
      this.#at(this.#nowMs + back, () => {
        this.#coming -= 1;
        this.#done += 1;
        this.#lastEndMs = this.#nowMs;
        permit?.release();
      });
    });
  }

  #backOff(index: number, timesBefore: number, permit: Permit | null): void {
    informPermit(permit, 429, {});
    permit?.release();
    this.#backingOff += 1;
    this.#at(this.#nowMs + turnedAwayDelayMs({}, timesBefore), () => {
      this.#backingOff -= 1;
      this.#ask(index, timesBefore + 1);
    });
  }

  /** Each empty place of the time that passes has one cause, the nearest to being over. */
  #countIdle(ms: number): void {
    const { limit, others } = this.#upstream;
    let empty = Math.max(0, limit - others - this.#open);
    const count = (cause: keyof IdlePlaces, most: number): void => {
      const places = Math.min(empty, most);
      this.#idle[cause] += places * ms;
      empty -= places;
    };
    count("going", this.#going);
    count("coming", this.#coming);
    count("heldBack", this.#governor.waiting);
    count("backingOff", this.#backingOff);
    count("remainder", empty);
  }

  #at(atMs: number, action: () => void): void {
    const entry = { atMs, action };
    // In order of time, those of one time in the order they were entered.
    const place = this.#due.findLastIndex((other) => other.atMs <= atMs);
    this.#due.splice(place + 1, 0, entry);
  }
}
