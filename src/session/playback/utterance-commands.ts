/**
 * The commands that change what is said: admit, cancel, replace, resume; `interrupt.ts` has the one that cuts. PlaybackQueue
 * owns the utterances; here is who may come in.
 */
import { GatewayError } from "../../errors.ts";
import type { Replace } from "../../protocol/vocabulary.ts";
import { TICKS_PER_MS } from "../../timing/ticks.ts";
import type { EventWriter } from "../events/event-writer.ts";
import type { SessionDeps } from "../session-deps.ts";
import { entering } from "../tape/tape.ts";
import type { UnderSounds } from "../under/under-sounds.ts";
import { type Interruptions, unknownUtterance } from "./interrupt.ts";
import type { PlaybackClock } from "./playback-clock.ts";
import type { PlaybackQueue } from "./playback-queue.ts";
import type { Utterance } from "./utterance.ts";
import { endUtterance } from "./utterance-end.ts";

/** Ids of utterances that are over but may not be used again yet. */
const REMEMBERED_IDS = 256;

export interface UtteranceCommandsOptions {
  readonly sessionId: string;
  readonly deps: SessionDeps;
  readonly queue: PlaybackQueue;
  readonly writer: EventWriter;
  readonly clock: PlaybackClock;
  readonly interruptions: Interruptions;
  /** Sounds under speech. */
  readonly under: UnderSounds;
  /** Taken out of the queue. */
  readonly onGone: (utterance: Utterance) => void;
}

export class UtteranceCommands {
  readonly #options: UtteranceCommandsOptions;
  readonly #queue: PlaybackQueue;
  readonly #clock: PlaybackClock;
  readonly #ids = new UtteranceIds();
  #isDraining = false;
  #isClosed = false;

  constructor(options: UtteranceCommandsOptions) {
    this.#options = options;
    this.#queue = options.queue;
    this.#clock = options.clock;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** A fresh id, or the client's own if no other utterance has it. Throws utterance_id_taken, queue_full, draining. */
  admit(wantedId: string | undefined): string {
    const { maxQueuedUtterances } = this.#options.deps.settings;
    if (this.#isClosed)
      throw new GatewayError("session_closed", `Session is closed: ${this.#options.sessionId}`);
    if (this.#isDraining) throw new GatewayError("draining", "Gateway is shutting down: no new utterances");
    if (this.#waitingCount >= maxQueuedUtterances) {
      throw new GatewayError(
        "queue_full",
        `Queue is full: ${maxQueuedUtterances} utterances wait, which is the limit`,
        { retryAfterMs: 1000 },
      );
    }
    return this.#ids.take(wantedId, (id) => this.#isInUse(id));
  }

  /** For a sound under speech, which takes no place in the queue. Throws utterance_id_taken, session_closed, draining. */
  takeId(wantedId: string | undefined): string {
    if (this.#isClosed)
      throw new GatewayError("session_closed", `Session is closed: ${this.#options.sessionId}`);
    if (this.#isDraining) throw new GatewayError("draining", "Gateway is shutting down: no new sounds");
    return this.#ids.take(wantedId, (id) => this.#isInUse(id));
  }

  /** The id of an utterance that another node had accepted. */
  readmit(id: string): string {
    return this.#ids.take(
      this.#ids.has(id) ? undefined : id,
      (taken) => this.#queue.find(taken) !== undefined,
    );
  }

  /** Utterances that wait for another one. The first of a queue that has not begun waits for its audio only. */
  get #waitingCount(): number {
    const isSpeaking = this.#queue.notOver.some((utterance) => utterance.startTicks !== null);
    const unbegunCount = this.#queue.unbegun.length;
    return isSpeaking ? unbegunCount : unbegunCount - 1;
  }

  /** Throws utterance_id_taken. */
  mustBeFree(id: string): void {
    this.#ids.mustBeFree(id, (taken) => this.#isInUse(taken));
  }

  #isInUse(id: string): boolean {
    return this.#queue.find(id) !== undefined || this.#options.under.has(id);
  }

  /** Whether an utterance with this id was there and is over, as far as is remembered. */
  isOver(id: string): boolean {
    return this.#ids.has(id) && this.#queue.findAny(id) === undefined;
  }

  /** Takes no new utterance any more; what was accepted is spoken. */
  drain(): void {
    entering(this.#options.deps.tape, { name: "drain", says: () => [] }, () => {
      this.#isDraining = true;
    });
  }

  /**
   * Takes utterances out of the queue that have not begun: one, or all.
   * Throws nothing_to_cancel, unknown_utterance.
   */
  cancel(utteranceId: string | undefined): void {
    this.#cancel(utteranceId);
    this.#queue.endWithSpeech();
  }

  #cancel(utteranceId: string | undefined): void {
    if (utteranceId !== undefined && this.#queue.find(utteranceId) === undefined)
      throw unknownUtterance(utteranceId, "cancel");
    const targets = this.#queue.unbegun.filter(
      (utterance) => utteranceId === undefined || utterance.id === utteranceId,
    );
    if (targets.length === 0) {
      throw new GatewayError(
        "nothing_to_cancel",
        utteranceId === undefined
          ? "Nothing to cancel: no utterance waits"
          : `Utterance ${utteranceId} is being spoken: interrupt it instead`,
      );
    }
    const atTicks = this.#clock.playheadTicks;
    for (const utterance of targets) {
      this.#queue.cancel(utterance);
      this.#options.deps.counters.utterancesCancelled += 1;
      this.#options.onGone(utterance);
      endUtterance(this.#options.writer, this.#options.deps, {
        utterance,
        outcome: "cancelled",
        atTicks,
        error: null,
        heardEnd: utterance.spoken.clientEnd(utterance.resumption?.spokenStart ?? 0),
      });
    }
    this.#queue.requestNext();
    this.#clock.advance();
  }

  /** Makes room for an utterance that takes the place of others. */
  replace(what: Replace): void {
    if (this.#isDraining) throw new GatewayError("draining", "Gateway is shutting down: no new utterances");
    this.#queue.endPassed(this.#clock.playheadTicks);
    if (what === "all" && !this.#queue.isIdle) this.#options.interruptions.interruptSpeech(undefined, 0);
    else if (what === "queued" && this.#queue.unbegun.length > 0) this.#cancel(undefined);
  }

  /**
   * Goes on with the utterance that was interrupted last, from the word in which it was cut.
   * Throws nothing_to_resume, resume_expired, draining.
   */
  resume(utteranceId: string | undefined): void {
    if (utteranceId !== undefined && this.#queue.find(utteranceId) !== undefined) {
      throw new GatewayError(
        "nothing_to_resume",
        `Utterance ${utteranceId} was not interrupted: it is queued or speaking`,
        { field: "utterance_id" },
      );
    }
    if (this.#isDraining) throw new GatewayError("draining", "Gateway is shutting down: nothing goes on");
    this.#queue.resume(utteranceId);
    this.#options.deps.counters.utterancesResumed += 1;
    this.#clock.advance();
  }

  /** Noise under all that is spoken, and between; null: none any more. */
  setNoise(dbfs: number | null): void {
    entering(this.#options.deps.tape, { name: "noise", says: () => [dbfs] }, () => {
      this.#options.under.setNoise(dbfs);
      this.#queue.endStopped();
      this.#clock.advance();
    });
  }

  /** Ends sounds under speech, one or all; each falls to nothing. Throws unknown_utterance. */
  stop(soundId: string | undefined, fadeMs: number | undefined): void {
    const { under } = this.#options;
    if (soundId === undefined ? !under.hasSounds : !under.has(soundId)) {
      throw new GatewayError(
        "unknown_utterance",
        `No such sound to stop: ${soundId ?? "none is played under speech"}`,
        { field: "utterance_id" },
      );
    }
    under.stop(soundId, fadeMs === undefined ? undefined : fadeMs * TICKS_PER_MS);
    this.#queue.endStopped();
    this.#clock.advance();
  }

  /** Idempotent. */
  close(): void {
    this.#isClosed = true;
  }
}

/** Ids of a session's utterances: the client's own or made up, none twice within memory. */
class UtteranceIds {
  readonly #used = new Set<string>();
  #next = 1;

  /** Whether an utterance had this id, as far as is remembered. */
  has(id: string): boolean {
    return this.#used.has(id);
  }

  /** Throws utterance_id_taken. `isInUse`: of utterances that are not over, however long ago they came. */
  mustBeFree(id: string, isInUse: (id: string) => boolean): void {
    if (!this.#used.has(id) && !isInUse(id)) return;
    throw new GatewayError("utterance_id_taken", `Utterance id is taken: ${id}, expected a new one`, {
      field: "utterance_id",
    });
  }

  /** A fresh id, or the wanted one. Throws utterance_id_taken. */
  take(wanted: string | undefined, isInUse: (id: string) => boolean): string {
    if (wanted !== undefined) this.mustBeFree(wanted, isInUse);
    let id = wanted;
    while (id === undefined || (wanted === undefined && this.#used.has(id))) id = `u${this.#next++}`;
    this.#used.add(id);
    for (const oldest of this.#used) {
      if (this.#used.size <= REMEMBERED_IDS) break;
      this.#used.delete(oldest);
    }
    return id;
  }
}
