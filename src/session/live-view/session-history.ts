/** What has happened to a session lately, for operators who look at it: counted, and the last of it with its place. */
import type { Event } from "../../protocol/events.ts";
import type { LiveMoment } from "../../protocol/live-view.ts";
import { msOfTicks } from "../../timing/ticks.ts";

/** More than is heard in the time that a view shows. Older ones are forgotten. */
const MAX_MOMENTS = 32;

export class SessionHistory {
  #underruns = 0;
  #interrupts = 0;
  readonly #moments: LiveMoment[] = [];

  get underruns(): number {
    return this.#underruns;
  }
  /** Utterances that were cut. */
  get interrupts(): number {
    return this.#interrupts;
  }
  /** The oldest first. */
  get moments(): readonly LiveMoment[] {
    return this.#moments;
  }

  /** The session has emitted it. */
  note(event: Event): void {
    if (event.type === "utterance.done") {
      const { outcome, utterance_id, start_ms, end_ms } = event;
      if (outcome === "interrupted") this.#interrupts += 1;
      this.#add({ type: outcome, at_ms: end_ms, utterance_id, start_ms });
    } else if (event.type === "warning" && event.code === "speech_recovered") {
      const { at_ms, utterance_id = "" } = event;
      this.#add({ type: "recovered", at_ms, utterance_id, start_ms: at_ms });
    }
  }

  /** Audio has run dry in the middle of an utterance. */
  ranDry(atTicks: number): void {
    this.#underruns += 1;
    const at_ms = msOfTicks(atTicks);
    this.#add({ type: "underrun", at_ms, utterance_id: "", start_ms: at_ms });
  }

  #add(moment: LiveMoment): void {
    this.#moments.push(moment);
    if (this.#moments.length > MAX_MOMENTS) this.#moments.shift();
  }
}
