/** An event as the session logs it, without a session. */
import { EventBytes } from "../../src/delivery/event-bytes.ts";
import { LoggedEvent, type LoggedEventOptions } from "../../src/delivery/logged-event.ts";
import type { Event } from "../../src/protocol/events.ts";

export function logged(event: Event, place: Partial<Omit<LoggedEventOptions, "event">> = {}): LoggedEvent {
  return new LoggedEvent({
    positionTicks: 0,
    kind: null,
    utterance: null,
    store: new EventBytes(),
    ...place,
    event,
  });
}

export const MARK: Event = { type: "mark", seq: 1, at_ms: 0, name: "m", source: "estimate" };
