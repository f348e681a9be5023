/** The events of an utterance's life, written from its state. */
import type { GatewayError } from "../../errors.ts";
import type { HeardEntry } from "../../ledger/entries.ts";
import {
  errorBody,
  type Heard,
  type InterruptedEvent,
  type SegmentWaterfall,
  type UtteranceDoneEvent,
  type UtteranceStartedEvent,
} from "../../protocol/events.ts";
import { msOfTicks, TICKS_PER_SECOND } from "../../timing/ticks.ts";
import type { Utterance } from "../playback/utterance.ts";
import type { Receipt } from "../receipts.ts";
import type { SessionDeps } from "../session-deps.ts";
import { waterfallOf } from "../synthesis/segment-times.ts";
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

interface Finish {
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

/** `utterance.done`. */
export function writeFinished(
  writer: EventWriter,
  { counters, log, clock, ledger }: Pick<SessionDeps, "counters" | "log" | "clock" | "ledger">,
  finish: Finish,
): void {
  const { utterance, error } = finish;
  const startTicks = utterance.startTicks ?? finish.atTicks;
  const segments = segmentWaterfalls(utterance);
  const latency = segments[0] === undefined ? null : withoutRange(segments[0]);
  countStages(utterance, counters);
  const traceId = utterance.trace?.traceId;
  log.debug(
    { utterance: utterance.id, trace_id: traceId, outcome: finish.outcome, latency, segments },
    "Utterance over",
  );
  const charactersSpoken = finish.outcome === "done" ? utterance.input.askedEnd : finish.heardEnd;
  countHeard(utterance, counters, { end: charactersSpoken, atTicks: finish.atTicks });
  utterance.trace?.end({
    outcome: finish.outcome,
    error,
    endMs: clock.nowMs(),
    attributes: {
      "gen_ai.request.model": utterance.modelId,
      "vw.voice_id": utterance.voiceIds[0],
      "vw.characters_spoken": charactersSpoken,
      "vw.characters_billed": utterance.charactersBilled,
      "vw.timing": utterance.transcript.timing,
    },
    times: utterance.input.segments.times[0],
  });
  ledger?.add(heardEntry(finish, charactersSpoken));
  writer.write({ positionTicks: finish.atTicks, kind: null, utterance }, (base) => ({
    type: "utterance.done",
    ...base,
    utterance_id: utterance.id,
    outcome: finish.outcome,
    start_ms: msOfTicks(startTicks),
    end_ms: msOfTicks(finish.atTicks),
    pad_ms: finish.outcome === "interrupted" ? 0 : msOfTicks(utterance.padTicks),
    characters_billed: utterance.charactersBilled,
    characters_spoken: charactersSpoken,
    timing: utterance.transcript.timing,
    latency,
    segments,
    ...(error === null ? {} : { error: errorBody(error) }),
  }));
}

/** What was heard since it began, or went on: sums of these count nothing twice. */
function heardEntry(
  { utterance, outcome, atTicks, heardSource = "estimate" }: Finish,
  charactersSpoken: number,
): HeardEntry {
  const { subject, identity, startTicks, resumption } = utterance;
  const before = resumption === null ? 0 : utterance.spoken.clientEnd(resumption.spokenStart);
  const isHeard = startTicks !== null && outcome !== "cancelled";
  return {
    type: "heard",
    tenant: subject?.payer?.tenant ?? "",
    key: subject?.payer?.key ?? "",
    session: identity.session ?? "",
    epoch: identity.epoch ?? "",
    utterance: utterance.id,
    model: utterance.modelId ?? "",
    voice: utterance.voiceIds[0] ?? "",
    outcome,
    chars_heard: isHeard ? Math.max(0, charactersSpoken - before) : 0,
    heard_ms: isHeard ? Math.round(Math.max(0, msOfTicks(atTicks - startTicks))) : 0,
    source: heardSource,
  };
}

function segmentWaterfalls(utterance: Utterance): SegmentWaterfall[] {
  return utterance.input.segments.times.flatMap((times) => {
    const waterfall = waterfallOf(times);
    return waterfall === null ? [] : [{ ...waterfall, start: times.start, end: times.end }];
  });
}

/** Each segment once: an utterance that was cut and went on is over twice, and reports its first segments twice. */
function countStages(utterance: Utterance, { stages }: SessionDeps["counters"]): void {
  for (const times of utterance.input.segments.times) {
    const waterfall = times.isCounted ? null : waterfallOf(times);
    if (waterfall === null) continue;
    stages.observe(waterfall);
    times.isCounted = true;
  }
}

/** Up to where its text and audio were heard. A sound has no text. */
export function countHeard(
  utterance: Utterance,
  counters: Pick<SessionDeps["counters"], "characters" | "audioHeardSeconds">,
  { end, atTicks }: { readonly end: number; readonly atTicks: number },
): void {
  const { characters, ticks } = utterance.takeNewlyHeard(end, atTicks);
  counters.characters.heard += characters;
  counters.audioHeardSeconds += ticks / TICKS_PER_SECOND;
}

function withoutRange({ start: _start, end: _end, ...waterfall }: SegmentWaterfall) {
  return waterfall;
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
