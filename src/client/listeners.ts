/** Typed handlers by event type; a handler that throws is reported and harms nobody else. */
import type { Event } from "../protocol/vocabulary.ts";

export type EventType = Event["type"];
export type EventOf<T extends EventType> = Extract<Event, { type: T }>;
export type Unsubscribe = () => void;

type AnyHandler = (event: Event) => void;

export class Listeners {
  readonly #byType = new Map<string, Set<AnyHandler>>();

  on<T extends EventType>(type: T, handler: (event: EventOf<T>) => void): Unsubscribe {
    // Sound because `dispatch` looks handlers up by the event's own type.
    const held = handler as AnyHandler;
    const handlers = this.#byType.get(type) ?? new Set<AnyHandler>();
    this.#byType.set(type, handlers.add(held));
    return () => {
      handlers.delete(held);
    };
  }

  dispatch(event: Event): void {
    for (const handler of [...(this.#byType.get(event.type) ?? [])]) contained(() => handler(event));
  }
}

/** Runs a callback of the caller's; what it throws surfaces as an uncaught error of its own, outside our loop. */
export function contained(call: () => void): void {
  try {
    call();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
