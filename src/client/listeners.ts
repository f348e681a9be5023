/** Typed handlers by event type; a handler that throws is reported and harms nobody else. */
import type { Event, HelloEvent } from "../protocol/events.ts";
import type { Waiting } from "./reconnector.ts";

export type EventType = Event["type"];
export type EventOf<T extends EventType> = Extract<Event, { type: T }>;
export type Unsubscribe = () => void;

/** The socket broke and another one will be tried after `delayMs`; once before each try. */
export interface ReconnectingEvent extends Waiting {
  readonly type: "reconnecting";
}

/** Another socket has joined. */
export interface ReconnectedEvent {
  readonly type: "reconnected";
  /** Whether the gateway sends what was missed; otherwise events may be missing. */
  readonly resumed: boolean;
  /** Whether another node goes on with the session: with the word that was not heard, on a new timeline. */
  readonly takenOver: boolean;
  /** Audio that was missed and will not come, ms; null where the session has begun a new timeline. */
  readonly gapMs: number | null;
  readonly hello: HelloEvent;
}

/** What the gateway emits, and what the client itself emits about the connection. */
type Notice = Event | ReconnectingEvent | ReconnectedEvent;
export type NoticeType = Notice["type"];
export type NoticeOf<T extends NoticeType> = Extract<Notice, { type: T }>;

type AnyHandler = (notice: Notice) => void;

export class Listeners {
  readonly #byType = new Map<string, Set<AnyHandler>>();

  on<T extends NoticeType>(type: T, handler: (notice: NoticeOf<T>) => void): Unsubscribe {
    // Sound because `dispatch` looks handlers up by the notice's own type.
    const held = handler as AnyHandler;
    const handlers = this.#byType.get(type) ?? new Set<AnyHandler>();
    this.#byType.set(type, handlers.add(held));
    return () => {
      handlers.delete(held);
    };
  }

  dispatch(notice: Notice): void {
    for (const handler of [...(this.#byType.get(notice.type) ?? [])]) contained(() => handler(notice));
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
