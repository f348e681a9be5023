/** Interruptions: which utterances are cut, and when; what a cut does is in cut.ts. */
import { GatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import type { Playout } from "../connections/playout.ts";
import { writeSoundInterrupted } from "../events/utterance-events.ts";
import { entering } from "../tape/tape.ts";
import type { UnderSounds } from "../under/under-sounds.ts";
import { type CutParts, cutNow, type InterruptReceipt } from "./cut.ts";
import type { PlaybackClock } from "./playback-clock.ts";
import type { PlaybackQueue } from "./playback-queue.ts";
import type { Utterance } from "./utterance.ts";

/** Interruptions with `keep_ms` that wait for their moment. */
const MAX_WAITING = 16;

export interface InterruptionsOptions extends CutParts {
  /** Where the listeners are. */
  readonly playout: Playout;
  /** Sounds under speech. */
  readonly under: UnderSounds;
  /** It is cut. */
  readonly onGone: (utterance: Utterance) => void;
}

export class Interruptions {
  readonly #options: InterruptionsOptions;
  readonly #queue: PlaybackQueue;
  readonly #playbackClock: PlaybackClock;
  /** Interruptions that wait, each with what it is to cut. */
  readonly #waiting: WaitingCuts;
  #isClosed = false;

  constructor(options: InterruptionsOptions) {
    this.#options = options;
    this.#queue = options.queue;
    this.#playbackClock = options.clock;
    this.#waiting = new WaitingCuts(options.deps.clock);
  }

  /**
   * Cuts the speech, after `keepMs` more of it, and answers every listener with a receipt. Returns the receipts,
   * or null where the cut comes later. What is under speech ends as well, or what is named of it alone.
   * Throws nothing_to_interrupt, unknown_utterance, queue_full.
   */
  interrupt(utteranceId: string | undefined, keepMs = 0): InterruptReceipt[] | null {
    const says = (): readonly unknown[] => [utteranceId ?? null, keepMs];
    return entering(this.#options.deps.tape, { name: "interrupt", says }, () => {
      const receipts = this.#interruptWithUnder(utteranceId, keepMs);
      this.#queue.endWithSpeech();
      return receipts;
    });
  }

  #interruptWithUnder(utteranceId: string | undefined, keepMs: number): InterruptReceipt[] | null {
    const { under } = this.#options;
    this.#queue.endPassed(this.#playbackClock.playheadTicks);
    if (utteranceId !== undefined && !under.has(utteranceId))
      return this.interruptSpeech(utteranceId, keepMs);
    if (!under.hasSounds) return this.interruptSpeech(undefined, keepMs);
    const isSpeechMeant = utteranceId === undefined && this.#cuttable.length > 0;
    const receipts = isSpeechMeant ? this.interruptSpeech(undefined, keepMs) : [];
    const ended = under.interrupt(utteranceId, this.#playbackClock.playheadTicks);
    // Speech that is cut has the answer.
    const own = isSpeechMeant ? [] : ended.map((sound) => this.#reportSound(sound));
    this.#queue.endStopped();
    this.#playbackClock.advance();
    return receipts === null ? null : [...receipts, ...own];
  }

  #reportSound({ id, heardTicks }: { readonly id: string; readonly heardTicks: number }): InterruptReceipt {
    const sound = { id, heardTicks, atTicks: this.#playbackClock.playheadTicks };
    const heard = writeSoundInterrupted(this.#options.writer, sound);
    return { utterance_id: id, heard, unheard_text: "", resumable: false };
  }

  /** As `interrupt`; sounds under speech go on. */
  interruptSpeech(utteranceId: string | undefined, keepMs: number): InterruptReceipt[] | null {
    this.#queue.endPassed(this.#playbackClock.playheadTicks);
    const cuttable = this.#cuttable;
    const target = cuttable.find(({ id }) => id === utteranceId);
    if (utteranceId !== undefined && target === undefined) throw unknownUtterance(utteranceId, "interrupt");
    if (cuttable.length === 0) {
      this.#playbackClock.advance();
      throw new GatewayError("nothing_to_interrupt", "Nothing to interrupt: nothing is speaking or queued");
    }
    const nowMs = this.#options.deps.clock.nowMs();
    // Utterances that are queued from now on are not cut.
    const targets = target === undefined ? cuttable : [target];
    return this.#cutAt(nowMs + keepMs, targets);
  }

  /**
   * Utterances that are not over for every listener: those that are not played. Where none of them has begun, and a player
   * says that it still hears the one that was played last, that comes before them.
   */
  get #cuttable(): readonly Utterance[] {
    const { notOver, lastPlayed } = this.#queue;
    if (lastPlayed === null || notOver.some(({ startTicks }) => startTicks !== null)) return notOver;
    const { ticks, source } = this.#options.playout.heard().place;
    const isHeard = source === "estimate" || ticks >= (lastPlayed.endTicks ?? 0);
    return isHeard || notOver.includes(lastPlayed) ? notOver : [lastPlayed, ...notOver];
  }

  /** Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#waiting.close();
  }

  /**
   * Cuts at `atMs`; if the first target's audio is rendered but its turn has not come, when it comes, so that the utterance
   * before it is heard whole. Audio may be rendered while its cut waits, so the turn is looked at again each time.
   */
  #cutAt(atMs: number, targets: readonly Utterance[]): InterruptReceipt[] | null {
    if (this.#isClosed) return [];
    const nowMs = this.#options.deps.clock.nowMs();
    const startTicks = firstStart(targets);
    const turnMs =
      startTicks !== null && this.#options.output.demand.hasRealtime
        ? this.#playbackClock.msAt(startTicks)
        : nowMs;
    const cutMs = Math.max(atMs, turnMs);
    if (cutMs - nowMs < 1) return this.#cut(targets);
    this.#waiting.add(cutMs, targets, (left) => {
      this.#cutAt(cutMs, left);
      this.#queue.endWithSpeech();
    });
    return null;
  }

  #cut(wanted: readonly Utterance[]): InterruptReceipt[] {
    this.#waiting.forget(wanted);
    const nowMs = this.#options.deps.clock.nowMs();
    this.#queue.endPassed(this.#playbackClock.playheadTicks);
    const cuttable = new Set(this.#cuttable);
    const targets = wanted.filter((target) => cuttable.has(target));
    const startTicks = firstStart(targets);
    if (startTicks !== null) this.#playbackClock.sendBefore(startTicks);
    const heard = this.#options.playout.heard();
    const receipts = cutNow({ ...this.#options, targets, heard });
    for (const target of wanted) this.#options.onGone(target);
    this.#playbackClock.advance(nowMs);
    return receipts;
  }
}

/** Interruptions that wait for their moment: bounded, and each for the utterances that it was given for. */
class WaitingCuts {
  readonly #clock: Clock;
  readonly #waiting = new Map<Timer, Set<Utterance>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `cut` at `atMs` with those of the targets that were not cut meanwhile. Throws queue_full. */
  add(atMs: number, targets: readonly Utterance[], cut: (targets: readonly Utterance[]) => void): void {
    if (this.#waiting.size >= MAX_WAITING) {
      throw new GatewayError("queue_full", `Interruptions are full: ${MAX_WAITING} wait for their moment`, {
        retryAfterMs: Math.ceil(atMs - this.#clock.nowMs()),
      });
    }
    const waiting = new Set(targets);
    const timer = this.#clock.at(atMs, () => {
      this.#waiting.delete(timer);
      cut([...waiting]);
    });
    this.#waiting.set(timer, waiting);
  }

  /** These were cut: interruptions that wait do not cut them again once they are resumed. */
  forget(targets: readonly Utterance[]): void {
    for (const waiting of this.#waiting.values()) for (const target of targets) waiting.delete(target);
  }

  /** Idempotent. */
  close(): void {
    for (const timer of this.#waiting.keys()) timer.cancel();
    this.#waiting.clear();
  }
}

/** Where the first of those that have begun begins. */
function firstStart(targets: readonly Utterance[]): number | null {
  return targets.find((target) => target.startTicks !== null)?.startTicks ?? null;
}

export function unknownUtterance(utteranceId: string, what: string): GatewayError {
  return new GatewayError("unknown_utterance", `No such utterance to ${what}: ${utteranceId}`, {
    field: "utterance_id",
  });
}
