/** The events of an utterance's life, written from its state. */
import type { GatewayError } from "../../errors.ts";
import {
  errorBody,
  type Heard,
  type InterruptedEvent,
  type SegmentWaterfall,
  type UtteranceDoneEvent,
  type UtteranceStartedEvent,
  type Waterfall,
} from "../../protocol/events.ts";
import { msOfTicks } from "../../timing/ticks.ts";
import type { Utterance } from "../playback/utterance.ts";
import type { Receipt } from "../receipts.ts";
import type { EventWriter } from "./event-writer.ts";

/** `spokenStart`: where in the spoken text it begins, or goes on. */
export function writeStarted(writer: EventWriter, utterance: Utterance, spokenStart: number): void {
  const positionTicks = utterance.startTicks ?? 0;
  const { resumption } = utterance;
  if (resumption !== null) {
    const start = utterance.spoken.clientRange(spokenStart, spokenStart + 1).start;
    const keptEnd = Math.max(start, utterance.spoken.clientEnd(resumption.keptEnd));
    const { timing } = resumption;
    writer.write({ positionTicks, kind: null, utterance }, (base) => ({
      type: "utterance.resumed",
      ...base,
      utterance_id: utterance.id,
      start,
      start_ms: msOfTicks(positionTicks),
      kept_end: keptEnd,
      timing,
    }));
    return;
  }
  writer.write({ positionTicks, kind: null, utterance }, (base) => startedEvent(base, utterance));
}

/** Also for a listener that joins while the utterance is being heard. */
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
  {
    utterance,
    error,
    atTicks,
  }: { readonly utterance: Utterance; readonly error: GatewayError; readonly atTicks: number },
): void {
  writer.write({ positionTicks: atTicks, kind: null, utterance }, (base) => ({
    type: "error",
    ...base,
    ...errorBody(error),
    utterance_id: utterance.id,
  }));
}

/** Its upstream's response broke off, and what is behind `spokenEnd` is said again from `atTicks` on. */
export function writeRecovered(
  writer: EventWriter,
  recovery: {
    readonly utterance: Utterance;
    readonly cause: GatewayError;
    readonly spokenEnd: number;
    readonly atTicks: number;
  },
): void {
  const { utterance, cause, spokenEnd, atTicks } = recovery;
  const start = utterance.spoken.clientEnd(spokenEnd);
  writer.write({ positionTicks: atTicks, kind: null, utterance }, (base) => ({
    type: "warning",
    ...base,
    code: "speech_recovered",
    message: "The upstream's speech broke off: it goes on behind the last whole word",
    utterance_id: utterance.id,
    start,
    cause: errorBody(cause),
  }));
}

/** Its upstream can't do what these fields ask for: it is spoken without. */
export function writeIgnored(
  writer: EventWriter,
  {
    utterance,
    fields,
    atTicks,
  }: { readonly utterance: Utterance; readonly fields: readonly string[]; readonly atTicks: number },
): void {
  writer.write({ positionTicks: atTicks, kind: null, utterance }, (base) => ({
    type: "warning",
    ...base,
    code: "settings_ignored",
    message: `The voice's upstream has nothing for ${fields.join(", ")}: it speaks without`,
    utterance_id: utterance.id,
    fields: [...fields],
  }));
}

/** How an utterance ended. */
export interface UtteranceEnd {
  readonly utterance: Utterance;
  readonly outcome: UtteranceDoneEvent["outcome"];
  /** Where the listeners are when it is emitted. */
  readonly atTicks: number;
  readonly error: GatewayError | null;
  /** Characters of the text that were heard, where not all were. */
  readonly heardEnd: number;
  /** How that is known; default: it is estimated. */
  readonly heardSource?: Heard["source"];
}

/** What is told of it beside how it ended. */
export interface UtteranceReport {
  /** Characters of the client's text. */
  readonly charactersSpoken: number;
  readonly segments: SegmentWaterfall[];
  /** How long the first segment took; null: none was heard. */
  readonly latency: Waterfall | null;
}

/** `utterance.done`. */
export function writeDone(writer: EventWriter, end: UtteranceEnd, report: UtteranceReport): void {
  const { utterance, outcome, atTicks, error } = end;
  const { charactersSpoken, segments, latency } = report;
  writer.write({ positionTicks: atTicks, kind: null, utterance }, (base) => ({
    type: "utterance.done",
    ...base,
    utterance_id: utterance.id,
    outcome,
    start_ms: msOfTicks(utterance.startTicks ?? atTicks),
    end_ms: msOfTicks(atTicks),
    pad_ms: outcome === "interrupted" ? 0 : msOfTicks(utterance.padTicks),
    characters_billed: utterance.charactersBilled,
    characters_spoken: charactersSpoken,
    timing: utterance.transcript.timing,
    latency,
    segments,
    ...(error === null ? {} : { error: errorBody(error) }),
  }));
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
    /** Where listeners differ. */
    readonly listeners: NonNullable<InterruptedEvent["listeners"]>;
    readonly isResumable: boolean;
  },
): void {
  const { unheardText, ...heard } = cut.receipt;
  const { listeners, nextTicks } = cut;
  const place = { positionTicks: cut.atTicks, kind: null, utterance: cut.utterance, nextTicks };
  writer.write(place, (base) => ({
    type: "interrupted",
    ...base,
    utterance_id: cut.utterance.id,
    heard,
    unheard_text: unheardText,
    ...(listeners.length === 0 ? {} : { listeners }),
    resumable: cut.isResumable,
    next_ms: nextTicks === null ? null : msOfTicks(nextTicks),
  }));
}

/** `interrupted` for a sound under speech, after a command that cut no speech. */
export function writeSoundInterrupted(
  writer: EventWriter,
  sound: { readonly id: string; readonly heardTicks: number; readonly atTicks: number },
): Heard {
  const heard: Heard = {
    text: "",
    end: 0,
    ms: msOfTicks(sound.heardTicks),
    source: "estimate",
    bound_ms: 0,
  };
  writer.write({ positionTicks: sound.atTicks, kind: null, utterance: null }, (base) => ({
    type: "interrupted",
    ...base,
    utterance_id: sound.id,
    heard,
    unheard_text: "",
    resumable: false,
    next_ms: null,
  }));
  return heard;
}
