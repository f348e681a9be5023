/** The workspace's webhooks: their records, the events that they get, and the courier that brings those. */
import { type Clock, systemClock } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import type { StoreDatabase } from "../store/database.ts";
import {
  type Enqueued,
  type RequestHeaders,
  type Webhook,
  type WebhookChanges,
  WebhookStore,
} from "../store/webhooks.ts";
import { Courier, type CourierStats } from "./courier.ts";
import { type EventData, type EventName, type EventType, envelopeOf } from "./events.ts";
import { newSecret } from "./signature.ts";
import { parseTarget, type Resolve } from "./target.ts";

/** Webhooks of one workspace. */
export const MAX_WEBHOOKS = 50;
/** Longest body of a delivery. With the bounds of webhooks and of their queues it bounds all: 1.3 GB at the worst. */
const MAX_EVENT_BYTES = 262_144;

export interface WebhooksOptions {
  readonly log: Logger;
  /** Lets webhooks lead to private addresses and over plain HTTP: tests, and receivers on premises. Default false. */
  readonly allowPrivate?: boolean;
  /** Certificates (PEM) to trust in the place of the well-known ones. */
  readonly certificates?: string;
  /** For tests. Default: the system's. */
  readonly clock?: Clock;
  /** For tests: milliseconds since 1970. Default: the system's. */
  readonly timeMs?: () => number;
  /** For tests: 0 to below 1. */
  readonly random?: () => number;
  /** For tests: names to addresses. Default: the system's. */
  readonly resolve?: Resolve;
}

interface WebhooksStats extends CourierStats {
  /** Events that were not enqueued, as too many waited already; since the start of this process. */
  readonly dropped: number;
}

/** Thrown where an event has more than MAX_EVENT_BYTES, or is nested too deeply to be written. */
export class EventTooLarge extends Error {
  constructor(message: string) {
    super(message);
    this.name = "EventTooLarge";
  }
}

export class Webhooks {
  readonly allowPrivate: boolean;
  readonly #store: WebhookStore;
  readonly #courier: Courier;
  readonly #log: Logger;
  readonly #timeMs: () => number;
  #dropped = 0;

  constructor(database: StoreDatabase, options: WebhooksOptions) {
    const {
      log,
      allowPrivate = false,
      clock = systemClock,
      timeMs = Date.now,
      random = Math.random,
    } = options;
    const { resolve, certificates } = options;
    this.allowPrivate = allowPrivate;
    this.#log = log;
    this.#timeMs = timeMs;
    this.#store = new WebhookStore(database);
    this.#courier = new Courier(this.#store, {
      log,
      allowPrivate,
      clock,
      timeMs,
      random,
      resolve,
      certificates,
    });
  }

  get stats(): WebhooksStats {
    return { ...this.#courier.stats, dropped: this.#dropped };
  }

  /** Begins to deliver, first what an earlier process left. Idempotent. */
  start(): void {
    this.#courier.start();
  }

  /** Ends requests under way and timers; what was not delivered stays in the store. Before the store is closed. Idempotent. */
  close(): Promise<void> {
    return this.#courier.close();
  }

  /** Newest first. */
  list(): Webhook[] {
    return this.#store.list();
  }

  get(id: string): Webhook | undefined {
    return this.#store.get(id);
  }

  /** Deliveries of it that wait. */
  pending(id: string): number {
    return this.#store.pending(id);
  }

  get isFull(): boolean {
    return this.#store.count >= MAX_WEBHOOKS;
  }

  /** With a secret of its own. Throws TargetRefused for a URL that may not be one. */
  create(given: {
    readonly name: string;
    readonly url: string;
    readonly requestHeaders: RequestHeaders | null;
  }): Webhook {
    parseTarget(given.url, this);
    const createdAtUnix = Math.floor(this.#timeMs() / 1000);
    return this.#store.create({ ...given, secret: newSecret(), createdAtUnix });
  }

  /** What waited while it was off is delivered once it is on. False where it is not there. */
  update(id: string, changes: WebhookChanges): boolean {
    const isThere = this.#store.update(id, changes);
    if (isThere) this.#courier.wake();
    return isThere;
  }

  /** Deletes it with what waits for it, and ends its request. False where it is not there. */
  delete(id: string): boolean {
    const isThere = this.#store.delete(id);
    this.#courier.forget(id);
    return isThere;
  }

  /**
   * Tells every webhook that is on and subscribed to `name`. It is in the store when this returns, and delivered later. Throws
   * EventTooLarge.
   */
  emit<Name extends EventName>(name: Name, type: EventType<Name>, data: EventData): Enqueued {
    const nowMs = this.#timeMs();
    const body = writeEvent(type, data, nowMs);
    const enqueued = this.#store.enqueue(name, body, nowMs);
    this.#dropped += enqueued.dropped;
    if (enqueued.dropped > 0) {
      this.#log.warn(
        { event: name, dropped: enqueued.dropped },
        "Webhooks have too much waiting: an event was dropped",
      );
    }
    this.#courier.wake();
    return enqueued;
  }
}

function writeEvent(type: EventType, data: EventData, nowMs: number): string {
  let body: string;
  try {
    body = envelopeOf(type, data, nowMs);
  } catch (thrown) {
    // JSON.stringify goes down the nesting on the stack, JSON.parse does not: data can come in that can't go out.
    if (thrown instanceof RangeError) throw new EventTooLarge("The event is nested too deeply");
    throw thrown;
  }
  if (Buffer.byteLength(body) <= MAX_EVENT_BYTES) return body;
  throw new EventTooLarge(`The event is larger than ${MAX_EVENT_BYTES} bytes`);
}
