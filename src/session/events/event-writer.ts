/** Numbers the session's events and puts them in the log. */
import { EventBytes } from "../../delivery/event-bytes.ts";
import { type EventPlace, LoggedEvent } from "../../delivery/logged-event.ts";
import type { Event } from "../../protocol/events.ts";
import { msOfTicks } from "../../timing/ticks.ts";

/** Makes the event once its number is known. Offsets count UTF-16 code units. */
export type EventBuilder = (base: { readonly seq: number; readonly at_ms: number }) => Event;

export class EventWriter {
  readonly #append: (entry: LoggedEvent) => void;
  readonly #store = new EventBytes();
  #seq = 0;

  constructor(append: (entry: LoggedEvent) => void) {
    this.#append = append;
  }

  /** The number of the latest event. */
  get seq(): number {
    return this.#seq;
  }

  write(place: EventPlace, build: EventBuilder): void {
    this.#seq += 1;
    const event = build({ seq: this.#seq, at_ms: msOfTicks(place.positionTicks) });
    this.#append(new LoggedEvent(event, place, this.#store));
  }
}
