/**
 * One cut of speech, now: frames that were not heard are forgotten, what was heard is reported in receipts, and utterances
 * behind it are said again. Frames that were not sent are never sent.
 */
import type { LoggedEvent } from "../../delivery/event-log.ts";
import type { Heard } from "../../protocol/events.ts";
import type { ListenersHeard } from "../connections/playout.ts";
import type { EventWriter } from "../events/event-writer.ts";
import { writeInterrupted } from "../events/utterance-events.ts";
import type { ComingAudio } from "../heard-share.ts";
import type { OutputRouter } from "../output/output-router.ts";
import { type HeardAt, heardFactsOf, type Receipt, receiptOf } from "../receipts.ts";
import type { SessionDeps } from "../session-deps.ts";
import type { PlaybackClock } from "./playback-clock.ts";
import type { PlaybackQueue } from "./playback-queue.ts";
import type { Utterance } from "./utterance.ts";
import { endUtterance } from "./utterance-end.ts";

/** Receipts of single listeners in one event. */
const MAX_RECEIPTS = 16;

/** What POST /interrupt answers with; the same is in the `interrupted` event. */
export interface InterruptReceipt {
  readonly utterance_id: string;
  readonly heard: Heard;
  readonly unheard_text: string;
  readonly resumable: boolean;
}

/** What a cut changes, and where it is reported. */
export interface CutParts {
  readonly deps: SessionDeps;
  readonly output: OutputRouter;
  readonly queue: PlaybackQueue;
  readonly writer: EventWriter;
  readonly clock: PlaybackClock;
}

interface Cut extends CutParts {
  /** In the order in which they are spoken. Only the first may be over, where a late player still hears it. */
  readonly targets: readonly Utterance[];
  /** Where the listeners are. */
  readonly heard: ListenersHeard;
}

/** What all receipts of a cut share. */
interface Shared {
  readonly writeTicks: number;
  /** Where the first one begins that has begun; 0 where none has. */
  readonly startTicks: number;
  readonly nextTicks: number | null;
  readonly isResumable: boolean;
  /** Audio that has come of its segment that was being rendered. */
  readonly coming: ComingAudio | null;
}

/** Returns a receipt for each of the targets. */
export function cutNow(cut: Cut): InterruptReceipt[] {
  const { queue, output, targets } = cut;
  const { writeTicks } = queue;
  const coming = new Map(targets.map((target) => [target, queue.comingOf(target)]));
  // The first one that has begun can go on later. Of those behind it nothing was heard: their receipts have all their text.
  const begunTarget = targets.find((target) => target.startTicks !== null);
  const keptOne = begunTarget ?? targets.find((target) => target.resumption !== null);
  const startTicks = begunTarget?.startTicks ?? null;
  const heardTicks = Math.max(cut.heard.place.ticks, startTicks ?? 0);
  const nextTicks = startTicks === null ? null : output.cut({ writeTicks, startTicks, heardTicks });
  // What was rendered and never sent, as part of a frame, was not heard.
  const sentTicks = nextTicks ?? writeTicks;
  const isResumable = keptOne !== undefined && queue.interrupt(keptOne, Math.min(heardTicks, sentTicks));
  for (const target of targets) if (target !== keptOne) queue.interrupt(target, null);
  // Utterances that were rendered behind the cut go with its audio and are said again from their beginning.
  const others =
    startTicks === null
      ? []
      : queue.notOver.filter((utterance) => (utterance.startTicks ?? -1) >= startTicks);
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
  queue.requestNext();
  return receipts;
}

function withdrawFuture(utterances: readonly Utterance[], cut: Cut): void {
  const ids = new Set(utterances.map((utterance) => utterance.id));
  cut.output.log.withdraw(
    (entry: LoggedEvent) =>
      entry.utteranceId !== null && ids.has(entry.utteranceId) && entry.positionTicks > cut.heard.place.ticks,
  );
}

function reportCut(utterance: Utterance, cut: Cut, shared: Shared): InterruptReceipt {
  const { place } = cut.heard;
  const { startTicks } = utterance;
  // Never behind the frames: an event there would wait for audio that does not come. Nor before what else is cut, or
  // it would leave with that, ahead of frames that an encoder still has.
  const fromTicks = Math.max(place.ticks, startTicks ?? shared.startTicks);
  const atTicks = Math.min(fromTicks, shared.nextTicks ?? shared.writeTicks);
  const facts = heardFactsOf(utterance, shared.coming);
  const writeTicks = utterance.endTicks ?? shared.writeTicks;
  const heardAt = (heard: HeardAt): Receipt =>
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
  endUtterance(cut.writer, cut.deps, {
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
function listenersThatDiffer(heard: ListenersHeard, heardAt: (place: HeardAt) => Receipt) {
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
