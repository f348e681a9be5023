/** Numbers the session's events and puts them in the log. */
import type { EventLog, EventPlace } from "../../delivery/event-log.ts";
import type { Counters } from "../../metrics/counters.ts";
import type { Event } from "../../protocol/events.ts";
import { msOfTicks } from "../../timing/ticks.ts";
import type { CueRecords } from "../captions/cue-records.ts";
import type { SessionHistory } from "../live-view/session-history.ts";

/** Makes the event once its number is known. Offsets count UTF-16 code units. */
export type EventBuilder = (base: { readonly seq: number; readonly at_ms: number }) => Event;

export interface EventWriterOptions {
  readonly log: EventLog;
  readonly counters: Counters;
  /** Remembers cues for files. */
  readonly cueRecords: CueRecords;
  readonly history: SessionHistory;
}

export class EventWriter {
  readonly #options: EventWriterOptions;
  #seq = 0;

  constructor(options: EventWriterOptions) {
    this.#options = options;
  }

  /** The number of the latest event. */
  get seq(): number {
    return this.#seq;
  }

  write(place: EventPlace, build: EventBuilder): void {
    this.#seq += 1;
    const event = build({ seq: this.#seq, at_ms: msOfTicks(place.positionTicks) });
    const { log, counters, cueRecords, history } = this.#options;
    const entry = log.append(event, place);
    counters.eventsMade += 1;
    cueRecords.note(entry);
    history.note(event);
  }
}
