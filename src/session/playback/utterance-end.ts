/** The end of an utterance: counted, traced, written to the ledger and told to listeners. */
import type { HeardEntry } from "../../ledger/entries.ts";
import type { SegmentWaterfall } from "../../protocol/events.ts";
import { msOfTicks, TICKS_PER_SECOND } from "../../timing/ticks.ts";
import type { EventWriter } from "../events/event-writer.ts";
import { type UtteranceEnd, type UtteranceReport, writeDone } from "../events/utterance-events.ts";
import type { SessionDeps } from "../session-deps.ts";
import { waterfallOf } from "../synthesis/segment-stages.ts";
import type { Utterance } from "./utterance.ts";

type AccountDeps = Pick<SessionDeps, "counters" | "log" | "clock" | "ledger">;

export function endUtterance(writer: EventWriter, deps: AccountDeps, end: UtteranceEnd): void {
  const { utterance, outcome } = end;
  const charactersSpoken = outcome === "done" ? utterance.input.askedEnd : end.heardEnd;
  const segments = segmentWaterfalls(utterance);
  const report = {
    charactersSpoken,
    segments,
    latency: segments[0] === undefined ? null : withoutRange(segments[0]),
  };
  accountFor(deps, end, report);
  writeDone(writer, end, report);
}

function accountFor(
  { counters, log, clock, ledger }: AccountDeps,
  end: UtteranceEnd,
  { charactersSpoken, segments, latency }: UtteranceReport,
): void {
  const { utterance, outcome, error, atTicks } = end;
  countStages(utterance, counters);
  const traceId = utterance.trace?.traceId;
  log.debug({ utterance: utterance.id, trace_id: traceId, outcome, latency, segments }, "Utterance over");
  countHeard(utterance, counters, { end: charactersSpoken, atTicks });
  utterance.trace?.end({
    outcome,
    error,
    endMs: clock.nowMs(),
    attributes: {
      "gen_ai.request.model": utterance.modelId,
      "vw.voice_id": utterance.voiceIds[0],
      "vw.characters_spoken": charactersSpoken,
      "vw.characters_billed": utterance.charactersBilled,
      "vw.timing": utterance.transcript.timing,
    },
    stages: utterance.input.segments.stages[0],
  });
  ledger?.add(heardEntry(end, charactersSpoken));
}

/** What was heard since it began, or went on: sums of these count nothing twice. */
function heardEntry(
  { utterance, outcome, atTicks, heardSource = "estimate" }: UtteranceEnd,
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

/** Each segment once: an utterance that was cut and went on is over twice, and reports its first segments twice. */
function countStages(utterance: Utterance, counters: SessionDeps["counters"]): void {
  for (const stages of utterance.input.segments.stages) {
    const waterfall = stages.isCounted ? null : waterfallOf(stages);
    if (waterfall === null) continue;
    counters.stages.observe(waterfall);
    stages.isCounted = true;
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

function segmentWaterfalls(utterance: Utterance): SegmentWaterfall[] {
  return utterance.input.segments.stages.flatMap((stages) => {
    const waterfall = waterfallOf(stages);
    return waterfall === null ? [] : [{ ...waterfall, start: stages.start, end: stages.end }];
  });
}

function withoutRange({ start: _start, end: _end, ...waterfall }: SegmentWaterfall) {
  return waterfall;
}
