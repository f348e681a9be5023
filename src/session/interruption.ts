/** Cutting speech: what was heard is told, what was not sent is forgotten, what was not meant is said anew. */
import type { LogEntry } from "../fanout/event-log.ts";
import type { Counters } from "../metrics/counters.ts";
import type { InterruptedEvent } from "../protocol/vocabulary.ts";
import type { Audience } from "./audience.ts";
import type { EventWriter } from "./event-writer.ts";
import { receiptOf } from "./receipts.ts";
import type { Speech } from "./speech.ts";
import type { Utterance } from "./utterance.ts";
import { writeFinished, writeInterrupted } from "./utterance-events.ts";

export interface Interruption {
  readonly speech: Speech;
  readonly audience: Audience;
  readonly writer: EventWriter;
  readonly counters: Counters;
  /** Only this one; undefined = all. */
  readonly utteranceId: string | undefined;
  /** Where the listeners are. */
  readonly at: { readonly ticks: number; readonly source: "ack" | "estimate"; readonly boundMs: number };
  readonly stopPlayhead: (ticks: number) => void;
}

/** What POST /interrupt answers with; the same is in the `interrupted` event. */
export interface InterruptReceipt {
  readonly utterance_id: string;
  readonly heard: InterruptedEvent["heard"];
  readonly unheard_text: string;
}

export function interruptSpeech(cut: Interruption): InterruptReceipt[] {
  const { speech, audience } = cut;
  const targets = speech.unplayed.filter(
    (utterance) => cut.utteranceId === undefined || utterance.id === cut.utteranceId,
  );
  const firstTicks = Math.min(...targets.map((target) => target.startTicks ?? Number.POSITIVE_INFINITY));
  const isAudible = targets.some((utterance) => utterance.startTicks !== null);
  const edgeTicks = speech.edgeTicks;
  for (const target of targets) speech.remove(target);
  // Utterances that were made behind the cut go with its audio and are said again from their beginning.
  const others = isAudible
    ? speech.unplayed.filter((utterance) => (utterance.startTicks ?? -1) >= firstTicks)
    : [];
  let nextTicks: number | null = null;
  if (isAudible) {
    nextTicks = audience.cut(edgeTicks);
    withdrawFuture([...targets, ...others], cut);
    speech.restart(nextTicks, others);
    cut.stopPlayhead(nextTicks);
  }
  const receipts = targets.map((target) => tellCut(target, { cut, edgeTicks, nextTicks }));
  speech.openNext();
  return receipts;
}

function withdrawFuture(utterances: readonly Utterance[], cut: Interruption): void {
  const ids = new Set(utterances.map((utterance) => utterance.id));
  cut.audience.log.withdraw(
    (entry: LogEntry) =>
      entry.utteranceId !== null && ids.has(entry.utteranceId) && entry.positionTicks > cut.at.ticks,
  );
}

function tellCut(
  utterance: Utterance,
  context: { readonly cut: Interruption; readonly edgeTicks: number; readonly nextTicks: number | null },
): InterruptReceipt {
  const { cut } = context;
  const wasStarted = utterance.startTicks !== null;
  const heardTicks = wasStarted ? Math.max(cut.at.ticks, utterance.startTicks ?? 0) : cut.at.ticks;
  // Never behind the frames: what is told there would wait for audio that is not to come.
  const atTicks = Math.min(heardTicks, context.nextTicks ?? context.edgeTicks);
  const receipt = receiptOf({
    text: utterance.text,
    characters: utterance.heard,
    startTicks: utterance.startTicks,
    edgeTicks: utterance.endTicks ?? context.edgeTicks,
    atTicks: wasStarted ? atTicks : 0,
    source: cut.at.source,
    boundMs: wasStarted ? cut.at.boundMs : 0,
  });
  cut.counters.utterancesInterrupted += 1;
  writeInterrupted(cut.writer, { utterance, receipt, atTicks, nextTicks: context.nextTicks });
  writeFinished(cut.writer, {
    utterance,
    outcome: "interrupted",
    atTicks,
    error: null,
    heardEnd: receipt.end,
  });
  const { unheardText, ...heard } = receipt;
  return { utterance_id: utterance.id, heard, unheard_text: unheardText };
}
