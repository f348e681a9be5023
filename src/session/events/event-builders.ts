/** Parts of a segment's events that need nothing but what they are made of. */
import type { Word } from "../../protocol/events.ts";
import type { Cue } from "../../timing/cues/cue-builder.ts";
import { msOfTicks, TICKS_PER_SECOND } from "../../timing/ticks.ts";
import { type TimedCharacters, widestBound } from "../../timing/timed.ts";
import type { EventBuilder } from "./event-writer.ts";

/** A `cue` event. */
export function cueBuilder(cue: Cue, utterance_id: string): EventBuilder {
  return (base) => ({
    type: "cue",
    ...base,
    utterance_id,
    ...(cue.voice === undefined || cue.voice.voiceId === "" ? {} : { voice_id: cue.voice.voiceId }),
    ...(cue.voice?.speaker === undefined ? {} : { speaker: cue.voice.speaker }),
    start_ms: msAtSeconds(cue.startSeconds),
    end_ms: msAtSeconds(cue.endSeconds),
    start: cue.start,
    end: cue.end,
    lines: cue.lines.map((line) => ({
      text: line.text,
      words: line.words.map(
        (word): Word => ({
          text: word.text,
          start_ms: msAtSeconds(word.startSeconds),
          end_ms: msAtSeconds(word.endSeconds),
          start: word.start,
          end: word.end,
        }),
      ),
    })),
  });
}

/** How far off estimated times may be, as a field of their event. */
export function boundMsOf(timed: Pick<TimedCharacters, "timing" | "boundSeconds">): { bound_ms?: number } {
  const { boundSeconds } = widestBound([timed]);
  return boundSeconds === undefined ? {} : { bound_ms: Math.round(boundSeconds * 1000) };
}

/** The characters before a client's offset. */
export function charactersBefore(timed: TimedCharacters, clientEnd: number): TimedCharacters {
  if (timed.end <= clientEnd) return timed;
  let end = timed.start;
  let count = 0;
  for (const character of timed.characters) {
    if (end >= clientEnd) break;
    end += character.length;
    count += 1;
  }
  return {
    ...timed,
    end,
    characters: timed.characters.slice(0, count),
    startSeconds: timed.startSeconds.slice(0, count),
    endSeconds: timed.endSeconds.slice(0, count),
  };
}

function msAtSeconds(seconds: number): number {
  return msOfTicks(Math.round(seconds * TICKS_PER_SECOND));
}
