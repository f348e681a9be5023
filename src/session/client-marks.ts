/** Named points of the timeline: echoed when they are played, and known by name to who acknowledges them. */
import { GatewayError } from "../errors.ts";
import type { EventWriter } from "./events/event-writer.ts";
import { writeMark } from "./events/utterance-events.ts";
import type { Utterance } from "./playback/utterance.ts";

export class Marks {
  readonly #writer: EventWriter;
  readonly #max: number;
  /** Those that wait for an utterance to be played. Where it is cut and goes on it is over twice: they are echoed once. */
  readonly #waiting = new WeakMap<Utterance, string[]>();
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
      this.#emit(name, atTicks);
      return;
    }
    const waiting = this.#waiting.get(last) ?? [];
    if (waiting.length >= this.#max) {
      throw new GatewayError("queue_full", `Marks are full: ${this.#max} wait on one utterance`, {
        retryAfterMs: 1000,
      });
    }
    waiting.push(name);
    this.#waiting.set(last, waiting);
  }

  /** Marks that wait for the utterance to be played. */
  waitingOn(utterance: Utterance): readonly string[] {
    return this.#waiting.get(utterance) ?? [];
  }

  /** The utterance has been played: its marks are echoed. */
  emit(utterance: Utterance, atTicks: number): void {
    const waiting = this.#waiting.get(utterance) ?? [];
    this.#waiting.delete(utterance);
    for (const name of waiting) this.#emit(name, atTicks);
  }

  #emit(name: string, ticks: number): void {
    writeMark(this.#writer, { name, atTicks: ticks });
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
