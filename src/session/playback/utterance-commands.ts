/**
 * The commands that change what is said: admit, cancel, replace, interrupt, resume. PlaybackQueue owns the utterances;
 * here is who may come in, and what happens when something is cut.
 */
import { GatewayError } from "../../errors.ts";
import type { Replace } from "../../protocol/vocabulary.ts";
import type { Playout } from "../connections/playout.ts";
import type { EventWriter } from "../events/event-writer.ts";
import { writeFinished } from "../events/utterance-events.ts";
import type { OutputRouter } from "../output/output-router.ts";
import type { SessionDeps } from "../ports.ts";
import { type InterruptReceipt, interruptSpeech } from "./interrupt.ts";
import type { PlaybackClock } from "./playback-clock.ts";
import type { PlaybackQueue } from "./playback-queue.ts";
import type { Utterance } from "./utterance.ts";
import { UtteranceIds } from "./utterance-ids.ts";
import { WaitingCuts } from "./waiting-cuts.ts";

export interface UtteranceCommandsOptions {
  readonly sessionId: string;
  readonly deps: SessionDeps;
  readonly output: OutputRouter;
  readonly queue: PlaybackQueue;
  readonly writer: EventWriter;
  readonly clock: PlaybackClock;
  /** Where the listeners are. */
  readonly playout: Playout;
  /** Cut, or taken out of the queue. */
  readonly onGone: (utterance: Utterance) => void;
}

export class UtteranceCommands {
  readonly #options: UtteranceCommandsOptions;
  readonly #queue: PlaybackQueue;
  readonly #clock: PlaybackClock;
  readonly #ids = new UtteranceIds();
  /** With what each is to cut. */
  readonly #waitingCuts: WaitingCuts;
  #isDraining = false;
  #isClosed = false;

  constructor(options: UtteranceCommandsOptions) {
    const { deps } = options;
    this.#options = options;
    this.#queue = options.queue;
    this.#clock = options.clock;
    this.#waitingCuts = new WaitingCuts(deps.clock);
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** A fresh id, or the client's own if no other utterance has it. Throws utterance_id_taken, queue_full, draining. */
  admit(wantedId: string | undefined): string {
    const { maxQueuedUtterances } = this.#options.deps.tuning;
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
    return this.#ids.take(wantedId, (id) => this.#queue.find(id) !== undefined);
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
    const isSpeaking = this.#queue.unplayed.some((utterance) => utterance.startTicks !== null);
    const unbegunCount = this.#queue.unbegun.length;
    return isSpeaking ? unbegunCount : unbegunCount - 1;
  }

  /** Throws utterance_id_taken. */
  mustBeFree(id: string): void {
    this.#ids.mustBeFree(id, (taken) => this.#queue.find(taken) !== undefined);
  }

  /** Whether an utterance with this id was there and is over, as far as is remembered. */
  isOver(id: string): boolean {
    return this.#ids.has(id) && this.#queue.findAny(id) === undefined;
  }

  /** Takes no new utterance any more; what was accepted is spoken. */
  drain(): void {
    this.#isDraining = true;
  }

  /**
   * Takes utterances out of the queue that have not begun: one, or all.
   * Throws nothing_to_cancel, unknown_utterance.
   */
  cancel(utteranceId: string | undefined): void {
    if (utteranceId !== undefined && this.#queue.find(utteranceId) === undefined)
      throw unknown(utteranceId, "cancel");
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
      writeFinished(this.#options.writer, this.#options.deps, {
        utterance,
        outcome: "cancelled",
        atTicks,
        error: null,
        heardEnd: utterance.spoken.clientEnd(utterance.resumption?.spokenStart ?? 0),
      });
    }
    this.#queue.openNext();
    this.#clock.advance();
  }

  /** Makes room for an utterance that takes the place of others. */
  replace(what: Replace): void {
    if (this.#isDraining) throw new GatewayError("draining", "Gateway is shutting down: no new utterances");
    this.#queue.emitPlayed(this.#clock.playheadTicks);
    if (what === "all" && !this.#queue.isIdle) this.interrupt(undefined);
    else if (what === "queued" && this.#queue.unbegun.length > 0) this.cancel(undefined);
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

  /**
   * Cuts the speech, after `keepMs` more of it, and answers every listener with a receipt. Returns the receipts,
   * or null where the cut comes later.
   * Throws nothing_to_interrupt, unknown_utterance, queue_full.
   */
  interrupt(utteranceId: string | undefined, keepMs = 0): InterruptReceipt[] | null {
    this.#queue.emitPlayed(this.#clock.playheadTicks);
    const cuttable = this.#cuttable;
    const target = cuttable.find(({ id }) => id === utteranceId);
    if (utteranceId !== undefined && target === undefined) throw unknown(utteranceId, "interrupt");
    if (cuttable.length === 0) {
      this.#clock.advance();
      throw new GatewayError("nothing_to_interrupt", "Nothing to interrupt: nothing is speaking or queued");
    }
    const nowMs = this.#options.deps.clock.nowMs();
    // What is queued from now on is not meant.
    const targets = target === undefined ? cuttable : [target];
    return this.#cutAt(nowMs + keepMs, targets);
  }

  /**
   * Utterances that are not over for every listener: before those that are not played, where none of them has begun, the one
   * that was played last, if a player says that it has not come to its end.
   */
  get #cuttable(): readonly Utterance[] {
    const { unplayed, lastPlayed } = this.#queue;
    if (lastPlayed === null || unplayed.some(({ startTicks }) => startTicks !== null)) return unplayed;
    const { ticks, source } = this.#options.playout.heard().place;
    const isHeard = source === "estimate" || ticks >= (lastPlayed.endTicks ?? 0);
    return isHeard || unplayed.includes(lastPlayed) ? unplayed : [lastPlayed, ...unplayed];
  }

  /** Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#waitingCuts.close();
  }

  /**
   * Cuts at `atMs`, or when the turn of audio comes that is rendered and not heard yet: the utterance before is heard to its
   * end. Audio may have been rendered while its cut waited, so the turn is looked at again each time.
   */
  #cutAt(atMs: number, targets: readonly Utterance[]): InterruptReceipt[] | null {
    if (this.#isClosed) return [];
    const nowMs = this.#options.deps.clock.nowMs();
    const startTicks = firstStart(targets);
    const turnMs =
      startTicks !== null && this.#options.output.demand.hasRealtime ? this.#clock.msAt(startTicks) : nowMs;
    const cutMs = Math.max(atMs, turnMs);
    if (cutMs - nowMs < 1) return this.#cut(targets);
    this.#waitingCuts.add(cutMs, targets, (left) => this.#cutAt(cutMs, left));
    return null;
  }

  #cut(wanted: readonly Utterance[]): InterruptReceipt[] {
    this.#waitingCuts.forget(wanted);
    const nowMs = this.#options.deps.clock.nowMs();
    this.#queue.emitPlayed(this.#clock.playheadTicks);
    const cuttable = new Set(this.#cuttable);
    const targets = wanted.filter((target) => cuttable.has(target));
    const startTicks = firstStart(targets);
    if (startTicks !== null) this.#clock.sendBefore(startTicks);
    const receipts = interruptSpeech({
      queue: this.#queue,
      output: this.#options.output,
      writer: this.#options.writer,
      deps: this.#options.deps,
      targets,
      heard: this.#options.playout.heard(),
      stopPlayhead: (ticks) => this.#clock.stopAt(ticks),
    });
    for (const target of wanted) this.#options.onGone(target);
    this.#clock.advance(nowMs);
    return receipts;
  }
}

/** Where the first of those that are rendered begins. */
function firstStart(targets: readonly Utterance[]): number | null {
  return targets.find((target) => target.startTicks !== null)?.startTicks ?? null;
}

function unknown(utteranceId: string, what: string): GatewayError {
  return new GatewayError("unknown_utterance", `No such utterance to ${what}: ${utteranceId}`, {
    field: "utterance_id",
  });
}
