/**
 * What a connection has got of its session's events: the place from which a new socket is to go on, and which of the
 * events that come on it are repetitions. Events for one connection only repeat the session's latest `seq` and are
 * never repetitions.
 */
import type { Event, HelloEvent } from "../protocol/events.ts";

/**
 * To one connection only (docs/protocol.md). `error` is either: an answer to a command, or about an utterance; so is
 * `warning`, and one about an utterance has a number of its own.
 */
const PRIVATE_TYPES: ReadonlySet<Event["type"]> = new Set([
  "hello",
  "configured",
  "utterance.queued",
  "paused",
  "resumed",
  "gap",
  "pong",
  "refreshed",
] as const);

/** The keys of an address with which a connection comes back; null: the key is left out. */
export interface ReturnQuery {
  /** `resume_token` of its latest hello. */
  readonly resume: string;
  readonly seq: number;
  /** Ms on the timeline. */
  readonly at_ms: number | null;
}

export class ReturnPoint {
  #hello: HelloEvent;
  /** Latest event that everybody got; null before the first. */
  #seq: number | null = null;
  /** Events up to here came on an earlier socket. */
  #floorSeq = -1;

  constructor(hello: HelloEvent) {
    this.#hello = hello;
  }

  /** What the address says; `endMs`: end of the audio that has come, null without audio. */
  value(endMs: number | null): ReturnQuery {
    return {
      resume: this.#hello.resume_token,
      // What was logged before our hello and was still to be sent counts as come: there is no better number.
      seq: this.#seq ?? this.#hello.seq,
      at_ms: endMs === null ? null : Math.round(endMs * 1000) / 1000,
    };
  }

  /** A new socket has joined; returns whether it is on the same timeline. */
  rejoin(hello: HelloEvent): boolean {
    const isSame = hello.epoch === this.#hello.epoch;
    this.#floorSeq = isSame ? (this.#seq ?? -1) : -1;
    if (!isSame) this.#seq = null;
    this.#hello = hello;
    return isSame;
  }

  /** Notes an event; false where it came before. */
  take(event: Event): boolean {
    if (isPrivate(event)) return true;
    if (event.seq < this.#floorSeq) return false;
    // An error with the latest number may answer a command of this very socket.
    if (event.type === "error") return true;
    if (event.seq === this.#floorSeq) return false;
    // A joiner gets `utterance.started` of what speaks under the session's latest number, ahead of events that are still to come.
    const isCopy = event.type === "utterance.started" && event.seq === this.#hello.seq;
    if (!isCopy) this.#seq = event.seq;
    return true;
  }

  /** Whether an event is older than the latest socket. */
  isReplayed(event: Event): boolean {
    return this.#hello.resumed === true && event.seq <= this.#hello.seq;
  }
}

function isPrivate(event: Event): boolean {
  if (event.type === "warning") return event.utterance_id === undefined;
  return PRIVATE_TYPES.has(event.type);
}
