/** A connection that comes back: how it says who it was and what it has, and what the session remembers of it. */
import { randomUUID } from "node:crypto";
import { GatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Participant } from "./participant.ts";

/** With the token of its `hello`, and where it likes with the exact position; server-sent events: the id of the last one. */
export type ReturnRequest =
  | {
      readonly kind: "token";
      readonly token: string;
      /** Number of the last event that it got; null: the last that was written to it. */
      readonly seq: number | null;
      /** End of the audio that it has, ms on the timeline; null: all that was written to it. */
      readonly atMs: number | null;
    }
  | { readonly kind: "event"; readonly epoch: string; readonly seq: number };

/** Clients know times in whole microseconds, and add to them. */
const ROUNDING_MS = 0.001;

const TOKEN = /^[A-Za-z0-9_-]{1,64}$/;
const SEQ = /^\d{1,15}$/;
const AT_MS = /^\d{1,15}(?:\.\d{1,20})?$/;
const EVENT_ID = /^([A-Za-z0-9]{1,64}):(\d{1,15})$/;

/** `resume`, `seq` and `at_ms` of a socket's address; null where it does not come back. Throws invalid_field. */
export function parseReturn(query: URLSearchParams): ReturnRequest | null {
  const token = query.get("resume");
  if (token === null) return null;
  if (!TOKEN.test(token)) throw invalid("resume", token, "the resume_token of hello");
  const seq = numberOf(query, { key: "seq", form: SEQ, expected: "the seq of an event" });
  const atMs = numberOf(query, { key: "at_ms", form: AT_MS, expected: "milliseconds on the timeline" });
  return { kind: "token", token, seq, atMs };
}

/** `{epoch}:{seq}`, as server-sent events are numbered. Throws invalid_field. */
export function parseLastEventId(id: string): ReturnRequest {
  const [, epoch, seq] = EVENT_ID.exec(id) ?? [];
  if (epoch === undefined) throw invalid("last_event_id", id, "{epoch}:{seq}, the id of an event");
  return { kind: "event", epoch, seq: Number(seq) };
}

function numberOf(
  query: URLSearchParams,
  { key, form, expected }: { readonly key: string; readonly form: RegExp; readonly expected: string },
): number | null {
  const text = query.get(key);
  if (text === null) return null;
  if (!form.test(text)) throw invalid(key, text, expected);
  return Number(text);
}

function invalid(field: string, value: string, expected: string): GatewayError {
  const got = JSON.stringify(value.slice(0, 40));
  return new GatewayError("invalid_field", `Query ${field} is ${got}, expected ${expected}`, { field });
}

/** What was written to a connection. */
export interface Written {
  /** Whose connection it was. */
  readonly holder: string;
  readonly listenerId: string;
  /** Number of the last event. */
  readonly seq: number;
  /** End of the audio; null where it got none. */
  readonly ticks: number | null;
}

/** So long a connection that is gone is remembered, ms. */
const MAX_AWAY_MS = 600_000;

/** Whose token is whose: of the connections that are there, and of those that are gone. */
export class ReturnTokens {
  readonly #clock: Clock;
  readonly #maxGone: number;
  readonly #present = new Map<string, Participant>();
  /** In the order in which they went. */
  readonly #gone = new Map<string, { readonly written: Written; readonly untilMs: number }>();

  /** Where more than `maxGone` are gone, who went first is forgotten. */
  constructor({ clock, maxGone }: { readonly clock: Clock; readonly maxGone: number }) {
    this.#clock = clock;
    this.#maxGone = maxGone;
  }

  /** 122 random bits. */
  static next(): string {
    return randomUUID();
  }

  joined(participant: Participant): void {
    this.#present.set(participant.returnToken, participant);
  }

  left(participant: Participant, written: Written): void {
    this.#present.delete(participant.returnToken);
    const nowMs = this.#clock.nowMs();
    this.#gone.set(participant.returnToken, { written, untilMs: nowMs + MAX_AWAY_MS });
    for (const [token, { untilMs }] of this.#gone) {
      if (this.#gone.size <= this.#maxGone && untilMs > nowMs) break;
      this.#gone.delete(token);
    }
  }

  /** The connection where it seems to be there still, what it was sent where it is gone; null for a token of nobody's. */
  find(token: string): Participant | Written | null {
    const present = this.#present.get(token);
    if (present !== undefined) return present;
    const gone = this.#gone.get(token);
    return gone !== undefined && gone.untilMs > this.#clock.nowMs() ? gone.written : null;
  }
}

/** What a connection has already. */
export interface ReturnPoint {
  readonly seq: number;
  /** Null: up to the last event's place. */
  readonly ticks: number | null;
  /** The listener that comes back; null where the token names none. */
  readonly listenerId: string | null;
}

interface ReturnFacts {
  readonly epoch: string;
  /** Number of the session's latest event. */
  readonly seq: number;
  /** End of the audio that any listener was sent, ms on the timeline. */
  readonly sentMs: number;
  /** What was written to the token's connection; null for a token that is unknown. */
  readonly written: Written | null;
}

/** Why it can't go on where it was, for people; null where it can. */
export function returnRefusal(request: ReturnRequest, facts: ReturnFacts): string | null {
  if (request.kind === "event" && request.epoch !== facts.epoch) {
    return "the epoch is another one: the session was closed and opened again, or it is another session's";
  }
  if (request.kind === "token" && facts.written === null) {
    return "the token is not known: the session was closed and opened again, it is another session's, or it has expired";
  }
  const { seq } = request;
  if (seq !== null && seq > facts.seq)
    return `event ${seq} has not been sent yet: the latest is ${facts.seq}`;
  const atMs = request.kind === "token" ? request.atMs : null;
  if (atMs !== null && atMs > facts.sentMs + ROUNDING_MS) {
    return `audio up to ${atMs} ms was not sent yet: it ends at ${facts.sentMs} ms`;
  }
  return null;
}
