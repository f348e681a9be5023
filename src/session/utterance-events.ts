/** The events that tell of an utterance's life, written from its state. */
import type { GatewayError } from "../errors.ts";
import { errorBody } from "../protocol/native.ts";
import type { UtteranceDoneEvent, UtteranceStartedEvent, Waterfall } from "../protocol/vocabulary.ts";
import { msOfTicks } from "../timing/ticks.ts";
import type { EventWriter } from "./event-writer.ts";
import type { Receipt } from "./receipts.ts";
import type { Utterance } from "./utterance.ts";

export function writeStarted(writer: EventWriter, utterance: Utterance): void {
  const positionTicks = utterance.startTicks ?? 0;
  writer.write({ positionTicks, kind: null, utterance }, (base) => startedEvent(base, utterance));
}

/** Also told to a listener that joins while the utterance is being heard. */
export function startedEvent(
  base: { readonly seq: number; readonly at_ms: number },
  utterance: Utterance,
): UtteranceStartedEvent {
  return {
    type: "utterance.started",
    ...base,
    utterance_id: utterance.id,
    voice_ids: utterance.voiceIds,
    ...(utterance.modelId === undefined ? {} : { model_id: utterance.modelId }),
    start_ms: msOfTicks(utterance.startTicks ?? 0),
    source_format: utterance.sourceFormat,
  };
}

export function writeError(
  writer: EventWriter,
  told: { readonly utterance: Utterance; readonly error: GatewayError; readonly atTicks: number },
): void {
  writer.write({ positionTicks: told.atTicks, kind: null, utterance: told.utterance }, (base) => ({
    type: "error",
    ...base,
    ...errorBody(told.error),
    utterance_id: told.utterance.id,
  }));
}

export interface Finish {
  readonly utterance: Utterance;
  readonly outcome: UtteranceDoneEvent["outcome"];
  /** Where the listeners are when it is told. */
  readonly atTicks: number;
  readonly error: GatewayError | null;
  /** Characters of the text that were heard; told where not all were. */
  readonly heardEnd: number;
}

/** `utterance.done`, and the marks that waited for the utterance to be played. */
export function writeFinished(writer: EventWriter, finish: Finish): void {
  const { utterance, error } = finish;
  const startTicks = utterance.startTicks ?? finish.atTicks;
  writer.write({ positionTicks: finish.atTicks, kind: null, utterance }, (base) => ({
    type: "utterance.done",
    ...base,
    utterance_id: utterance.id,
    outcome: finish.outcome,
    start_ms: msOfTicks(startTicks),
    end_ms: msOfTicks(finish.atTicks),
    pad_ms: finish.outcome === "interrupted" ? 0 : msOfTicks(utterance.padTicks),
    characters_billed: utterance.charactersBilled,
    characters_spoken: finish.outcome === "done" ? utterance.charactersSpoken : finish.heardEnd,
    timing: utterance.timing,
    latency: waterfallOf(utterance),
    ...(error === null ? {} : { error: errorBody(error) }),
  }));
  if (finish.outcome === "interrupted") return;
  for (const name of utterance.marks) writeMark(writer, { name, atTicks: finish.atTicks });
}

export function writeMark(
  writer: EventWriter,
  mark: { readonly name: string; readonly atTicks: number },
): void {
  writer.write({ positionTicks: mark.atTicks, kind: "marks", utterance: null }, (base) => ({
    type: "mark",
    ...base,
    name: mark.name,
    source: "estimate",
  }));
}

export function writeInterrupted(
  writer: EventWriter,
  cut: {
    readonly utterance: Utterance;
    readonly receipt: Receipt;
    readonly atTicks: number;
    /** null: no audio was cut. */
    readonly nextTicks: number | null;
  },
): void {
  const { unheardText, ...heard } = cut.receipt;
  writer.write({ positionTicks: cut.atTicks, kind: null, utterance: cut.utterance }, (base, offset) => ({
    type: "interrupted",
    ...base,
    utterance_id: cut.utterance.id,
    heard: { ...heard, end: offset(heard.end) },
    unheard_text: unheardText,
    next_ms: cut.nextTicks === null ? null : msOfTicks(cut.nextTicks),
  }));
}

/** The stages from accepted text to the first frame, in whole microseconds, so that they sum to the total. */
function waterfallOf(utterance: Utterance): Waterfall | null {
  const { times, firstFrameMs, acceptedMs } = utterance;
  if (times === null || firstFrameMs === null || times.firstByteMs === 0) return null;
  const queued = micros(times.requestedMs - acceptedMs);
  const headers = micros(times.headersMs - times.requestedMs);
  const firstByte = micros(times.firstByteMs - times.headersMs);
  const firstFrame = micros(firstFrameMs - times.firstByteMs);
  return {
    queued_ms: queued / 1000,
    headers_ms: headers / 1000,
    first_byte_ms: firstByte / 1000,
    first_frame_ms: firstFrame / 1000,
    total_ms: (queued + headers + firstByte + firstFrame) / 1000,
    leading_silence_ms: utterance.leadingSilenceMs,
  };
}

function micros(ms: number): number {
  return Math.round(ms * 1000);
}
