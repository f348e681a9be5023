/**
 * Captions of speech that is made already, in a style that somebody asks for only now: each segment that is not over is laid
 * out of the words that are known of it, as if it had been asked for before. What was played is left out.
 */
import { ClientTimes } from "../../timing/client-times.ts";
import type { Cue } from "../../timing/cues/cue-builder.ts";
import { type CueStyle, styleKey } from "../../timing/cues/cue-profiles.ts";
import { TICKS_PER_SECOND } from "../../timing/ticks.ts";
import type { TimedWord } from "../../timing/timed.ts";
import { cueBuilder } from "../events/event-builders.ts";
import type { EventWriter } from "../events/event-writer.ts";
import type { SegmentEvents } from "../events/segment-events.ts";
import type { SegmentSpan } from "../heard-share.ts";
import type { Utterance } from "../playback/utterance.ts";
import { CueTracks, type StyledCue } from "./cue-tracks.ts";

interface LateCues {
  readonly utterance: Utterance;
  /** Those that are there already stay unchanged. */
  readonly styles: readonly CueStyle[];
  /** Events of its segment that is being rendered; null: none is. */
  readonly events: SegmentEvents | null;
  /** What ends before has been played. */
  readonly heardTicks: number;
  /** Another utterance comes behind it. */
  readonly isFollowed: boolean;
  readonly writer: EventWriter;
}

/** Cues of the segment that is being rendered are left to its events. */
export function layOutLate({ utterance, styles, events, heardTicks, isFollowed, writer }: LateCues): void {
  const spans = utterance.transcript.segments.filter((span) => endOf(utterance, span) > heardTicks);
  const [first] = spans;
  if (first === undefined) return;
  const cues = utterance.transcript.withCues(() => new CueTracks(utterance));
  for (const style of styles) {
    const from = knownFrom(utterance, first);
    const track = cues.add(style, from, first.startTicks / TICKS_PER_SECOND);
    if (track === null) continue;
    const isToCome = ({ endSeconds }: Cue): boolean => endSeconds * TICKS_PER_SECOND > heardTicks;
    const styled = (cue: Cue): StyledCue => ({ cue, style: styleKey(style) });
    for (const span of spans) {
      const endTicks = endOf(utterance, span);
      const start = Math.max(from, span.start);
      if (Number.isFinite(endTicks)) {
        const made = track.push(wordsOf(utterance, { ...span, start }, true));
        // Where nothing follows, the last cue may stay longer than its sound.
        const isLast = !isFollowed && utterance.endTicks !== null && span === spans.at(-1);
        const untilTicks = isLast ? Number.POSITIVE_INFINITY : endTicks;
        made.push(...track.endSegment(span.end, untilTicks / TICKS_PER_SECOND));
        for (const cue of made.filter(isToCome)) write(styled(cue), utterance, writer);
      } else if (events !== null) {
        const end = events.cuesEnd;
        const words = wordsOf(utterance, { ...span, start }, end !== null);
        const made = track.push(words.filter((word) => word.start < events.cuedTo));
        if (end !== null) made.push(...track.endSegment(end.next, end.untilSeconds));
        for (const cue of made.filter(isToCome)) events.addCue(styled(cue));
      }
    }
  }
}

/** Where on the timeline a segment ends; infinite while it is being rendered. One that failed ends with its utterance. */
function endOf({ endTicks }: Utterance, span: SegmentSpan): number {
  return span.endTicks ?? endTicks ?? Number.POSITIVE_INFINITY;
}

/** Where the words begin that are known of a segment: those that were played long ago are forgotten. */
function knownFrom({ transcript: { words }, spoken }: Utterance, { start }: SegmentSpan): number {
  const first = words.find((word) => word.start >= start)?.start ?? start;
  return /[\p{L}\p{N}]/u.test(spoken.spoken.slice(start, first)) ? first : start;
}

/** With the client's offsets, in seconds of the timeline. `isAll`: no more are to come. */
function wordsOf(utterance: Utterance, span: SegmentSpan, isAll: boolean): TimedWord[] {
  const { spoken } = utterance.spoken;
  const words = utterance.transcript.words
    .filter(({ start }) => start >= span.start && start < span.end)
    .map(({ start, end, startTicks, endTicks, timing }) => ({
      text: spoken.slice(start, end),
      start,
      end,
      startSeconds: startTicks / TICKS_PER_SECOND,
      endSeconds: endTicks / TICKS_PER_SECOND,
      timing,
    }));
  return new ClientTimes(utterance.spoken, span.start).words(words, isAll);
}

function write({ cue, style }: StyledCue, utterance: Utterance, writer: EventWriter): void {
  const positionTicks = Math.round(cue.startSeconds * TICKS_PER_SECOND);
  const endTicks = Math.round(cue.endSeconds * TICKS_PER_SECOND);
  const build = cueBuilder(cue, utterance.id);
  utterance.transcript.cues?.note(style, { startTicks: positionTicks, endTicks }, build);
  writer.write({ positionTicks, kind: "cues", cueStyle: style, utterance }, build);
}
