/**
 * Where voices are converted and measured: at most two requests at a time and sixteen that wait, and what was measured of
 * the embedded voices, which is the same every time. One for each service (see `workshopOf`).
 */
import type { FastifyInstance } from "fastify";
import { GatewayError } from "../../errors.ts";
import type { JobOpener } from "../http/delivery.ts";
import type { PcmPiece } from "../media/pieces.ts";
import { Seats } from "../seats.ts";
import { findVoice } from "../voice/voices.ts";
import { type ConverterHandlers, ConverterThread } from "./converter-thread.ts";
import type { ConverterTask } from "./messages.ts";
import { spokenPieces } from "./spoken-pieces.ts";
import type { VoiceProfile } from "./voice-profile.ts";

const MAX_SEATS = 2;
const MAX_WAITING = 16;
const DECORATOR = "voiceWorkshop";

export class Workshop {
  readonly #voices: JobOpener;
  readonly #seats = new Seats({ limit: MAX_SEATS, maxWaiting: MAX_WAITING });
  readonly #threads = new Set<ConverterThread>();
  /** By voice id, of embedded voices only: the catalogue bounds it. */
  readonly #profiles = new Map<string, Promise<VoiceProfile | null>>();

  constructor(voices: JobOpener) {
    this.#voices = voices;
  }

  /** Requests that work, and threads that run. */
  get load(): { readonly seats: number; readonly threads: number } {
    return { seats: this.#seats.taken, threads: this.#threads.size };
  }

  /** A seat to work on; see Seats.enter. */
  enter(signal: AbortSignal): Promise<() => void> {
    return this.#seats.enter(signal);
  }

  /** Starts a conversion; the caller stops it or hears its end. For those with a seat. */
  convert(
    source: AsyncIterable<PcmPiece>,
    options: {
      readonly target: VoiceProfile;
      readonly format: string;
      readonly removesNoise: boolean;
      readonly handlers: ConverterHandlers;
    },
  ): ConverterThread {
    const { handlers, ...task } = options;
    return this.#start({ kind: "convert", ...task }, source, handlers);
  }

  /** The profile of whoever speaks, null where nobody does. Rejects with what the source threw. */
  measure(
    source: AsyncIterable<PcmPiece>,
    { signal, removesNoise = false }: { readonly signal?: AbortSignal; readonly removesNoise?: boolean } = {},
  ): Promise<VoiceProfile | null> {
    return new Promise((resolve, reject) => {
      const settle = (): void => signal?.removeEventListener("abort", onAbort);
      const thread = this.#start({ kind: "measure", removesNoise }, source, {
        measured: (profile) => {
          settle();
          resolve(profile);
        },
        failed: (thrown) => {
          settle();
          reject(thrown);
        },
      });
      const onAbort = (): void => {
        thread.stop();
        reject(signal?.reason);
      };
      if (signal?.aborted) onAbort();
      else signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Of an embedded voice; measured once. null where there is no such voice. */
  profileOf(voiceId: string): Promise<VoiceProfile | null> {
    const known = this.#profiles.get(voiceId);
    if (known !== undefined) return known;
    if (findVoice(voiceId) === undefined) return Promise.resolve(null);
    const measured = this.measure(spokenPieces(this.#voices, voiceId));
    this.#profiles.set(voiceId, measured);
    // A failure is told to those who wait for it, and not kept.
    measured.catch(() => this.#profiles.delete(voiceId));
    return measured;
  }

  /** Ends what runs: it fails with GatewayError `draining`. */
  close(): void {
    const error = new GatewayError("draining", "The conversion ended: the service is shutting down");
    for (const thread of [...this.#threads]) thread.fail(error);
  }

  #start(task: ConverterTask, source: AsyncIterable<PcmPiece>, handlers: ConverterHandlers): ConverterThread {
    const thread: ConverterThread = new ConverterThread(task, source, {
      handlers,
      onEnd: () => this.#threads.delete(thread),
    });
    this.#threads.add(thread);
    return thread;
  }
}

/** The app's workshop: made where there is none yet, closed with the app. The sections share it, and so its limits. */
export function workshopOf(app: FastifyInstance, voices: JobOpener): Workshop {
  if (app.hasDecorator(DECORATOR)) return app.getDecorator<Workshop>(DECORATOR);
  const workshop = new Workshop(voices);
  app.decorate(DECORATOR, workshop);
  app.addHook("onClose", async () => workshop.close());
  return workshop;
}
