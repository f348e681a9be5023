/** The utterances that `say` waits for: each until its `utterance.done`, its refusal, or the end of the connection. */
import type { Event, UtteranceDoneEvent } from "../protocol/events.ts";
import { VoicewireError } from "./client-error.ts";

interface PendingUtterance {
  resolve(event: UtteranceDoneEvent): void;
  reject(error: unknown): void;
}

export class PendingUtterances {
  readonly #byId = new Map<string, PendingUtterance>();

  /** `accepted` rejects where the utterance is refused. The rejection may go unobserved. */
  until(utteranceId: string, accepted: Promise<unknown>): Promise<UtteranceDoneEvent> {
    const done = new Promise<UtteranceDoneEvent>((resolve, reject) => {
      this.#byId.set(utteranceId, { resolve, reject });
    });
    done.catch(() => undefined);
    accepted.catch((error: unknown) => this.#remove(utteranceId)?.reject(error));
    return done;
  }

  take(event: Event): void {
    if (event.type !== "utterance.done") return;
    const pending = this.#remove(event.utterance_id);
    if (event.outcome === "failed") pending?.reject(new VoicewireError(event.error ?? UNEXPLAINED_FAILURE));
    else pending?.resolve(event);
  }

  failAll(error: VoicewireError): void {
    this.failOthers(new Set(), error);
  }

  /** All but those with these ids. */
  failOthers(ids: ReadonlySet<string>, error: VoicewireError): void {
    for (const id of [...this.#byId.keys()]) if (!ids.has(id)) this.#remove(id)?.reject(error);
  }

  #remove(utteranceId: string): PendingUtterance | undefined {
    const pending = this.#byId.get(utteranceId);
    this.#byId.delete(utteranceId);
    return pending;
  }
}

const UNEXPLAINED_FAILURE = {
  code: "internal",
  message: "Speech: the gateway gave no reason for its failure",
  retryable: true,
} as const;
