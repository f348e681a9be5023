/** One connection of a session: its settings, its seat among the listeners, and what it says. */
import { GatewayError } from "../errors.ts";
import type { Lane } from "../fanout/lane.ts";
import type { Outbox } from "../fanout/outbox.ts";
import type { Sink } from "../fanout/sink.ts";
import type { Event, ListenerSettings } from "../protocol/vocabulary.ts";
import { TICKS_PER_MS } from "./playhead.ts";
import type { Session } from "./session.ts";

/** An acknowledgement older than this says nothing of where the listener is now, ms. */
const ACK_LIFE_MS = 2000;

export interface MemberOptions {
  readonly session: Session;
  readonly sink: Sink;
  readonly settings: ListenerSettings;
  readonly seat: { readonly lane: Lane; readonly outbox: Outbox };
}

export class Member {
  readonly session: Session;
  readonly sink: Sink;
  settings: ListenerSettings;
  seat: { readonly lane: Lane; readonly outbox: Outbox };
  /** Utterances whose text it has begun and not ended; by id, because an utterance may be said anew. */
  readonly openIds = new Set<string>();
  /** The one that its `text` without an id goes to. */
  currentId: string | null = null;
  /** Unknown fields are warned of once each. */
  readonly warnedFields = new Set<string>();
  #ack: { readonly ticks: number; readonly atMs: number } | null = null;

  constructor(options: MemberOptions) {
    this.session = options.session;
    this.sink = options.sink;
    this.settings = options.settings;
    this.seat = options.seat;
  }

  /** An event to this connection alone. */
  send(event: Event): void {
    this.seat.outbox.sendText(JSON.stringify(event));
  }

  /** Throws not_a_speaker for a connection that joined to listen. */
  mustSpeak(): void {
    if (this.settings.role === "listener") {
      throw new GatewayError(
        "not_a_speaker",
        "Connection joined as a listener: join with role=both or speaker",
        {
          field: "role",
        },
      );
    }
  }

  acknowledge(atMs: number, nowMs: number): void {
    this.#ack = { ticks: atMs * TICKS_PER_MS, atMs: nowMs };
  }

  /** Where this listener is by its own word, or null when it has not said so lately. */
  ackedTicks(nowMs: number): number | null {
    if (this.#ack === null || nowMs - this.#ack.atMs > ACK_LIFE_MS) return null;
    return this.#ack.ticks + (nowMs - this.#ack.atMs) * TICKS_PER_MS;
  }

  end(error: GatewayError): void {
    this.seat.outbox.end(error);
  }
}
