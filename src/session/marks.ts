/** Named points of the timeline: echoed when they are played, and known by name to who acknowledges them. */
import { GatewayError } from "../errors.ts";
import type { EventWriter } from "./events/event-writer.ts";
import { writeMark } from "./events/utterance-events.ts";
import type { Utterance } from "./playback/utterance.ts";

export class Marks {
  readonly #writer: EventWriter;
  readonly #max: number;
  /** Where marks stood that were echoed, the latest ones. */
  readonly #ticks = new Map<string, number>();

  constructor(writer: EventWriter, max: number) {
    this.#writer = writer;
    this.#max = max;
  }

  /** Echoed when `last` has been played; at once where nothing is queued. Throws queue_full. */
  add(name: string, place: { readonly last: Utterance | undefined; readonly atTicks: number }): void {
    const { last, atTicks } = place;
    if (last === undefined) {
      writeMark(this.#writer, { name, atTicks });
      this.note(name, atTicks);
      return;
    }
    if (last.marks.length >= this.#max) {
      throw new GatewayError("queue_full", `Marks are full: ${this.#max} wait on one utterance`, {
        retryAfterMs: 1000,
      });
    }
    last.marks.push(name);
  }

  note(name: string, ticks: number): void {
    this.#ticks.delete(name);
    this.#ticks.set(name, ticks);
    for (const oldest of this.#ticks.keys()) {
      if (this.#ticks.size <= this.#max) break;
      this.#ticks.delete(oldest);
    }
  }

  ticksOf(name: string): number | undefined {
    return this.#ticks.get(name);
  }
}
