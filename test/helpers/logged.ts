/** An event as the session logs it, without a session. */
import { EventBytes } from "../../src/delivery/event-bytes.ts";
import { type EventPlace, LoggedEvent } from "../../src/delivery/event-log.ts";
import type { Event } from "../../src/protocol/events.ts";

export function logged(
  event: Event,
  place: Partial<EventPlace> = {},
  store: EventBytes = new EventBytes(),
): LoggedEvent {
  return new LoggedEvent(event, placed(place), store);
}

export function placed(place: Partial<EventPlace>): EventPlace {
  return { positionTicks: 0, kind: null, utterance: null, ...place };
}

export const MARK: Event = { type: "mark", seq: 1, at_ms: 0, name: "m", source: "estimate" };
