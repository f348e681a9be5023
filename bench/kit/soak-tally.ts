/** What a soak counts, and the rules that it holds the session engine to. */
import type { Event } from "../../src/protocol/events.ts";

/** Events to everybody, in whose order `seq` rises; those to one connection repeat the latest that was made. */
const SHARED_EVENTS: ReadonlySet<Event["type"]> = new Set([
  "utterance.started",
  "utterance.done",
  "utterance.resumed",
  "characters",
  "words",
  "segment",
  "mark",
  "interrupted",
] as const);

export class SoakTally {
  /** Utterances that were accepted. */
  queued = 0;
  /** Ends, by outcome: an utterance that was resumed ends once more. */
  readonly ended = new Map<string, number>();
  readonly errors = new Map<string, number>();
  resumed = 0;
  readonly #violations = new Map<string, { count: number; readonly example: string }>();
  frames = 0;
  events = 0;
  joins = 0;
  stalls = 0;

  get ends(): number {
    let ends = 0;
    for (const count of this.ended.values()) ends += count;
    return ends;
  }

  endedAs(outcome: string): number {
    return this.ended.get(outcome) ?? 0;
  }

  noteError(code: string): void {
    this.errors.set(code, (this.errors.get(code) ?? 0) + 1);
    if (code === "internal") this.violate("an error of the gateway's own", code);
  }

  get violationCount(): number {
    let count = 0;
    for (const violation of this.#violations.values()) count += violation.count;
    return count;
  }

  /** Each rule that was broken, how often, and the first case. */
  get violations(): string[] {
    return [...this.#violations].map(([rule, { count, example }]) => `${rule}: ${count} times, ${example}`);
  }

  violate(rule: string, example: string): void {
    const known = this.#violations.get(rule);
    if (known === undefined) this.#violations.set(rule, { count: 1, example });
    else known.count += 1;
  }
}

/** The utterances of one session: each ends exactly once, and once more for each `resume` that was accepted. */
export class UtteranceBook {
  readonly #tally: SoakTally;
  readonly #live = new Set<string>();
  #seq = 0;
  /** `resume`s that were accepted and not told of. */
  #accepted = 0;

  constructor(tally: SoakTally) {
    this.#tally = tally;
  }

  get live(): ReadonlySet<string> {
    return this.#live;
  }

  resumeAccepted(): void {
    this.#accepted += 1;
    this.#tally.resumed += 1;
  }

  /** Returns the outcome of an end. */
  take(event: Event): string | null {
    if (SHARED_EVENTS.has(event.type)) {
      if (event.seq <= this.#seq)
        this.#tally.violate("seq does not rise", `${this.#seq} to ${event.seq} (${event.type})`);
      this.#seq = event.seq;
    }
    if (event.type === "utterance.queued") {
      if (this.#live.has(event.utterance_id)) this.#tally.violate("queued twice", event.utterance_id);
      this.#live.add(event.utterance_id);
      this.#tally.queued += 1;
    } else if (event.type === "utterance.resumed") {
      // Made behind a cut of another one, it is said again and told of again.
      if (!this.#live.has(event.utterance_id)) this.#accepted -= 1;
      this.#live.add(event.utterance_id);
    } else if (event.type === "error" && event.utterance_id === undefined) {
      this.#tally.noteError(event.code);
    } else if (event.type === "utterance.done") {
      // One that waits to go on may be cut before it does.
      if (!this.#live.delete(event.utterance_id) && --this.#accepted < 0)
        this.#tally.violate("ended twice", `${event.utterance_id}, ${event.outcome}`);
      this.#tally.ended.set(event.outcome, this.#tally.endedAs(event.outcome) + 1);
      return event.outcome;
    }
    return null;
  }
}
