/** Cutting speech: receipts say what was heard, frames that were not sent are dropped, other utterances are said again. */
import type { LoggedEvent } from "../../delivery/event-log.ts";
import { GatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import type { Heard } from "../../protocol/events.ts";
import type { ListenersHeard, Playout } from "../connections/playout.ts";
import type { EventWriter } from "../events/event-writer.ts";
import { writeFinished, writeInterrupted, writeSoundInterrupted } from "../events/utterance-events.ts";
import type { ComingAudio } from "../heard-share.ts";
import type { OutputRouter } from "../output/output-router.ts";
import type { SessionDeps } from "../ports.ts";
import { cutOf, type HeardPlace, type Receipt, receiptOf } from "../receipts.ts";
import { entering } from "../tape/tape.ts";
import type { UnderSounds } from "../under/under-sounds.ts";
import type { PlaybackClock } from "./playback-clock.ts";
import type { PlaybackQueue } from "./playback-queue.ts";
import type { Utterance } from "./utterance.ts";

/** Receipts of single listeners in one event. */
const MAX_RECEIPTS = 16;
/** Interruptions with `keep_ms` that wait for their moment. */
const MAX_WAITING = 16;

/** What POST /interrupt answers with; the same is in the `interrupted` event. */
interface InterruptReceipt {
  readonly utterance_id: string;
  readonly heard: Heard;
  readonly unheard_text: string;
  readonly resumable: boolean;
}

export interface InterruptionsOptions {
  readonly deps: SessionDeps;
  readonly output: OutputRouter;
  readonly queue: PlaybackQueue;
  readonly writer: EventWriter;
  readonly clock: PlaybackClock;
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
  readonly #clock: PlaybackClock;
  /** Interruptions that wait, each with what it is to cut. */
  readonly #waiting: WaitingCuts;
  #isClosed = false;

  constructor(options: InterruptionsOptions) {
    this.#options = options;
    this.#queue = options.queue;
    this.#clock = options.clock;
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
      const receipts = this.#interrupt(utteranceId, keepMs);
      this.#queue.endWithSpeech();
      return receipts;
    });
  }

  #interrupt(utteranceId: string | undefined, keepMs: number): InterruptReceipt[] | null {
    const { under } = this.#options;
    this.#queue.emitPlayed(this.#clock.playheadTicks);
    if (utteranceId !== undefined && !under.has(utteranceId))
      return this.interruptSpeech(utteranceId, keepMs);
    if (!under.hasSounds) return this.interruptSpeech(undefined, keepMs);
    const isSpeechMeant = utteranceId === undefined && this.#cuttable.length > 0;
    const receipts = isSpeechMeant ? this.interruptSpeech(undefined, keepMs) : [];
    const ended = under.interrupt(utteranceId, this.#clock.playheadTicks);
    // Speech that is cut has the answer.
    const own = isSpeechMeant ? [] : ended.map((sound) => this.#reportSound(sound));
    this.#queue.endStopped();
    this.#clock.advance();
    return receipts === null ? null : [...receipts, ...own];
  }

  #reportSound({ id, heardTicks }: { readonly id: string; readonly heardTicks: number }): InterruptReceipt {
    const sound = { id, heardTicks, atTicks: this.#clock.playheadTicks };
    const heard = writeSoundInterrupted(this.#options.writer, sound);
    return { utterance_id: id, heard, unheard_text: "", resumable: false };
  }

  /** As `interrupt`; sounds under speech go on. */
  interruptSpeech(utteranceId: string | undefined, keepMs: number): InterruptReceipt[] | null {
    this.#queue.emitPlayed(this.#clock.playheadTicks);
    const cuttable = this.#cuttable;
    const target = cuttable.find(({ id }) => id === utteranceId);
    if (utteranceId !== undefined && target === undefined) throw unknownUtterance(utteranceId, "interrupt");
    if (cuttable.length === 0) {
      this.#clock.advance();
      throw new GatewayError("nothing_to_interrupt", "Nothing to interrupt: nothing is speaking or queued");
    }
    const nowMs = this.#options.deps.clock.nowMs();
    // Utterances that are queued from now on are not cut.
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
    this.#waiting.close();
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
    this.#waiting.add(cutMs, targets, (left) => {
      this.#cutAt(cutMs, left);
      this.#queue.endWithSpeech();
    });
    return null;
  }

  #cut(wanted: readonly Utterance[]): InterruptReceipt[] {
    this.#waiting.forget(wanted);
    const nowMs = this.#options.deps.clock.nowMs();
    this.#queue.emitPlayed(this.#clock.playheadTicks);
    const cuttable = new Set(this.#cuttable);
    const targets = wanted.filter((target) => cuttable.has(target));
    const startTicks = firstStart(targets);
    if (startTicks !== null) this.#clock.sendBefore(startTicks);
    const heard = this.#options.playout.heard();
    const receipts = interruptSpeech({ ...this.#options, targets, heard });
    for (const target of wanted) this.#options.onGone(target);
    this.#clock.advance(nowMs);
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

/** One cut. */
interface Interruption extends InterruptionsOptions {
  /** In the order in which they are spoken; none of them is over. */
  readonly targets: readonly Utterance[];
  /** Where the listeners are. */
  readonly heard: ListenersHeard;
}

/** What all receipts of an interruption share. */
interface Shared {
  readonly writeTicks: number;
  /** Where the first one begins that has begun; 0 where none has. */
  readonly startTicks: number;
  readonly nextTicks: number | null;
  readonly isResumable: boolean;
  /** Audio that has come of its segment that was being rendered. */
  readonly coming: ComingAudio | null;
}

function interruptSpeech(cut: Interruption): InterruptReceipt[] {
  const { queue, output, targets } = cut;
  const firstTicks = Math.min(...targets.map((target) => target.startTicks ?? Number.POSITIVE_INFINITY));
  const { writeTicks } = queue;
  const coming = new Map(targets.map((target) => [target, queue.comingOf(target)]));
  // The one that is heard can go on later. Of those behind it nothing was heard: their receipts have all their text.
  const heardOne = targets.find((target) => target.startTicks !== null);
  const keptOne = heardOne ?? targets.find((target) => target.resumption !== null);
  const startTicks = heardOne?.startTicks ?? null;
  const heardTicks = Math.max(cut.heard.place.ticks, startTicks ?? 0);
  const nextTicks = startTicks === null ? null : output.cut({ writeTicks, startTicks, heardTicks });
  // What was rendered and never sent, as part of a frame, was not heard.
  const sentTicks = nextTicks ?? writeTicks;
  const isResumable = keptOne !== undefined && queue.interrupt(keptOne, Math.min(heardTicks, sentTicks));
  for (const target of targets) if (target !== keptOne) queue.interrupt(target, null);
  // Utterances that were rendered behind the cut go with its audio and are said again from their beginning.
  const others =
    heardOne === undefined
      ? []
      : queue.unplayed.filter((utterance) => (utterance.startTicks ?? -1) >= firstTicks);
  if (nextTicks !== null) {
    withdrawFuture([...targets, ...others], cut);
    queue.restart(nextTicks, others);
    cut.clock.stopAt(nextTicks);
  }
  const receipts = targets.map((target) =>
    reportCut(target, cut, {
      writeTicks,
      startTicks: startTicks ?? 0,
      nextTicks,
      coming: coming.get(target) ?? null,
      isResumable: isResumable && target === keptOne,
    }),
  );
  queue.openNext();
  return receipts;
}

function withdrawFuture(utterances: readonly Utterance[], cut: Interruption): void {
  const ids = new Set(utterances.map((utterance) => utterance.id));
  cut.output.log.withdraw(
    (entry: LoggedEvent) =>
      entry.utteranceId !== null && ids.has(entry.utteranceId) && entry.positionTicks > cut.heard.place.ticks,
  );
}

function reportCut(utterance: Utterance, cut: Interruption, shared: Shared): InterruptReceipt {
  const { place } = cut.heard;
  const { startTicks } = utterance;
  // Never behind the frames: an event there would wait for audio that does not come. Nor before what else is cut, or
  // it would leave with that, ahead of frames that an encoder still has.
  const fromTicks = Math.max(place.ticks, startTicks ?? shared.startTicks);
  const atTicks = Math.min(fromTicks, shared.nextTicks ?? shared.writeTicks);
  const facts = cutOf(utterance, shared.coming);
  const writeTicks = utterance.endTicks ?? shared.writeTicks;
  const heardAt = (heard: HeardPlace): Receipt =>
    startTicks === null
      ? receiptOf(facts, { ...heard, ticks: 0, boundMs: 0 })
      : receiptOf(facts, {
          ...heard,
          ticks: Math.max(startTicks, Math.min(heard.ticks, writeTicks)),
        });
  const receipt = heardAt({ ...place, ticks: atTicks });
  cut.deps.counters.utterancesInterrupted += 1;
  if (startTicks !== null) cut.deps.counters.histograms.observeReceipt(receipt.source, receipt.bound_ms);
  writeInterrupted(cut.writer, {
    utterance,
    receipt,
    atTicks,
    nextTicks: startTicks === null ? null : shared.nextTicks,
    listeners: startTicks === null ? [] : listenersThatDiffer(cut.heard, heardAt),
    isResumable: shared.isResumable,
  });
  writeFinished(cut.writer, cut.deps, {
    utterance,
    outcome: "interrupted",
    atTicks,
    error: null,
    heardEnd: receipt.end,
    heardSource: receipt.source,
  });
  const { unheardText, ...heard } = receipt;
  return {
    utterance_id: utterance.id,
    heard,
    unheard_text: unheardText,
    resumable: shared.isResumable,
  };
}

/** Each listener's own receipt, where not all have heard the same. */
function listenersThatDiffer(heard: ListenersHeard, heardAt: (place: HeardPlace) => Receipt) {
  const receipts = heard.listeners.map(({ listenerId, place }) => {
    const { unheardText: _, ...own } = heardAt(place);
    return { listener_id: listenerId, ...own };
  });
  const isSame = receipts.every((receipt) => receipt.end === receipts[0]?.end);
  if (isSame) return [];
  if (receipts.length <= MAX_RECEIPTS) return receipts;
  // Those that have heard least: the receipt is theirs.
  return receipts.sort((a, b) => a.end - b.end).slice(0, MAX_RECEIPTS);
}

/** Where the first of those that are rendered begins. */
function firstStart(targets: readonly Utterance[]): number | null {
  return targets.find((target) => target.startTicks !== null)?.startTicks ?? null;
}

export function unknownUtterance(utteranceId: string, what: string): GatewayError {
  return new GatewayError("unknown_utterance", `No such utterance to ${what}: ${utteranceId}`, {
    field: "utterance_id",
  });
}
