/** The utterances that `say` waits for: each until its `utterance.done`, its refusal, or the end of the connection. */
import type { Event, UtteranceDoneEvent } from "../protocol/events.ts";
import { VoicewireError } from "./client-error.ts";

interface Saying {
  resolve(event: UtteranceDoneEvent): void;
  reject(error: unknown): void;
}

export class Sayings {
  readonly #byId = new Map<string, Saying>();

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
    const saying = this.#remove(event.utterance_id);
    if (event.outcome === "failed") saying?.reject(new VoicewireError(event.error ?? UNEXPLAINED_FAILURE));
    else saying?.resolve(event);
  }

  failAll(error: VoicewireError): void {
    const sayings = [...this.#byId.values()];
    this.#byId.clear();
    for (const saying of sayings) saying.reject(error);
  }

  #remove(utteranceId: string): Saying | undefined {
    const saying = this.#byId.get(utteranceId);
    this.#byId.delete(utteranceId);
    return saying;
  }
}

const UNEXPLAINED_FAILURE = {
  code: "internal",
  message: "Speech: the gateway gave no reason for its failure",
  retryable: true,
} as const;
