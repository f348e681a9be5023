/**
 * Which answer belongs to which command. Commands carry no number: the gateway takes them in order, answers `speak`
 * and `dialogue` with `utterance.queued` under the utterance's id, `interrupt` with `interrupted`, `resume` with
 * `utterance.resumed`, `configure` with `configured`, `ping` with `pong`, and any of them with `error` instead.
 */
import type { ErrorEvent, Event } from "../protocol/events.ts";
import { type ClientErrorCode, clientError, VoicewireError } from "./client-error.ts";
import type { EventOf, EventType } from "./listeners.ts";

interface Waiting {
  readonly kind: EventType;
  /** The utterance or ping id that the answer will carry; undefined = any answer of this kind. */
  readonly id: string | number | undefined;
  resolve(event: Event): void;
  reject(error: VoicewireError): void;
}

/** Errors that answer one kind of command only. */
const OWN_ERRORS: Readonly<Record<string, EventType | null>> = {
  nothing_to_interrupt: "interrupted",
  // Nobody waits for the answer to `cancel`.
  nothing_to_cancel: null,
  nothing_to_resume: "utterance.resumed",
  resume_expired: "utterance.resumed",
};
/** What a command about an utterance that was accepted before can be refused with besides; other errors are no answer. */
const REFUSALS: ReadonlySet<string> = new Set(["unknown_utterance", "invalid_field", "not_a_speaker"]);

function isAboutEarlier(kind: EventType): boolean {
  return kind === "interrupted" || kind === "utterance.resumed";
}

export class Replies {
  #waiting: Waiting[] = [];

  /** Resolves with the next event of this kind (and id); the rejection may go unobserved, `error` events carry it too. */
  expect<T extends EventType>(kind: T, id?: string | number): Promise<EventOf<T>> {
    const answer = new Promise<EventOf<T>>((resolve, reject) => {
      // Sound because `take` resolves an entry only with an event of its own kind.
      this.#waiting.push({ kind, id, resolve: resolve as (event: Event) => void, reject });
    });
    answer.catch(() => undefined);
    return answer;
  }

  take(event: Event): void {
    if (event.type === "error") {
      this.#takeError(event);
      return;
    }
    const id = idOf(event);
    const index = this.#waiting.findIndex((entry) => entry.kind === event.type && (entry.id ?? id) === id);
    if (index >= 0) this.#remove(index)?.resolve(event);
  }

  failAll(code: ClientErrorCode, message: string): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const entry of waiting) entry.reject(clientError(code, message));
  }

  #takeError(event: ErrorEvent): void {
    const index = this.#indexOfCulprit(event);
    if (index >= 0) this.#remove(index)?.reject(new VoicewireError(event));
  }

  /** What is prepared is waited for while other commands are answered: an error without an id is another's, where one waits. */
  #indexOfCulprit(event: ErrorEvent): number {
    const others = this.#waiting.filter(({ kind }) => kind !== "prepared");
    const index = this.#indexAmong(others, event);
    const culprit = index < 0 ? this.#waiting[this.#indexAmong(this.#waiting, event)] : others[index];
    return culprit === undefined ? -1 : this.#waiting.indexOf(culprit);
  }

  #indexAmong(waiting: readonly Waiting[], event: ErrorEvent): number {
    const id = event.utterance_id ?? event.prepared_id;
    return waiting.findIndex((entry) => {
      const own = OWN_ERRORS[event.code];
      if (own !== undefined) return entry.kind === own && (id === undefined || (entry.id ?? id) === id);
      if (isAboutEarlier(entry.kind) && !REFUSALS.has(event.code)) return false;
      // Without an id it is the oldest that waits: commands are answered in order. With one, an error about an
      // utterance that was accepted long ago finds no entry and answers no command.
      return id === undefined || entry.id === id;
    });
  }

  #remove(index: number): Waiting | undefined {
    return this.#waiting.splice(index, 1)[0];
  }
}

function idOf(event: Event): string | number | undefined {
  if (event.type === "pong") return event.id;
  if (event.type === "prepared") return event.prepared_id;
  return "utterance_id" in event ? event.utterance_id : undefined;
}
