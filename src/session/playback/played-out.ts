/** Utterances whose audio is all pushed (or that failed), until the playhead has passed their end and they are told of. */
import type { GatewayError } from "../../errors.ts";
import type { EventWriter } from "../events/event-writer.ts";
import { writeFinished } from "../events/utterance-events.ts";
import type { Marks } from "../marks.ts";
import type { SessionDeps } from "../ports.ts";
import { cutOf, receiptOf } from "../receipts.ts";
import { TICKS_PER_MS } from "./playhead.ts";
import type { Utterance } from "./utterance.ts";

/** A player that is no further behind has as good as heard what the playhead has passed. */
const LATE_TICKS = 500 * TICKS_PER_MS;

interface Pushed {
  readonly utterance: Utterance;
  readonly error: GatewayError | null;
}

export interface PlayedOutOptions {
  readonly deps: SessionDeps;
  readonly writer: EventWriter;
  readonly marks: Marks;
  /** How far behind the playhead a listener plays that has said so; 0 where none has. */
  readonly behindTicks: () => number;
}

export class PlayedOut {
  readonly #options: PlayedOutOptions;
  /** The one that was told of last, where a player was late then by its own word: it may be cut yet, for that player. */
  last: Utterance | null = null;
  /** In the order of the timeline. */
  #pushed: Pushed[] = [];

  constructor(options: PlayedOutOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#pushed.length === 0;
  }
  get utterances(): Utterance[] {
    return this.#pushed.map((entry) => entry.utterance);
  }
  /** Timeline position at which the next one will have been played; null when none waits for that. */
  get nextEndTicks(): number | null {
    return this.#pushed[0]?.utterance.endTicks ?? null;
  }

  /** All its audio is pushed: `endTicks` is set. `error`: why there is no more of it. */
  add(utterance: Utterance, error: GatewayError | null): void {
    this.#pushed.push({ utterance, error });
    this.last = null;
  }

  remove(utterance: Utterance): void {
    this.#pushed = this.#pushed.filter((entry) => entry.utterance !== utterance);
    if (this.last === utterance) this.last = null;
  }

  /** Tells of every utterance that has been played when the playhead stands at `playheadTicks`. */
  tell(playheadTicks: number): void {
    for (;;) {
      const [first] = this.#pushed;
      if (first === undefined || (first.utterance.endTicks ?? 0) > playheadTicks) return;
      this.#pushed.shift();
      this.#tellOne(first);
    }
  }

  #tellOne({ utterance, error }: Pushed): void {
    const { deps, writer, marks } = this.#options;
    const atTicks = utterance.endTicks ?? 0;
    if (error === null) deps.counters.utterancesDone += 1;
    else deps.counters.utterancesFailed += 1;
    writeFinished(writer, deps, {
      utterance,
      outcome: error === null ? "done" : "failed",
      atTicks,
      error,
      heardEnd: error === null ? utterance.text.length : heardEndOf(utterance, atTicks),
    });
    for (const name of utterance.marks) marks.note(name, atTicks);
    // Where it is cut and goes on it is over twice; they have been echoed.
    utterance.marks = [];
    this.last = this.#options.behindTicks() > LATE_TICKS ? utterance : null;
  }
}

/** Of what failed: no more comes behind what was heard. */
function heardEndOf(utterance: Utterance, atTicks: number): number {
  const place = { ticks: atTicks, source: "estimate", boundMs: 0 } as const;
  return receiptOf(cutOf(utterance, null), place).end;
}
