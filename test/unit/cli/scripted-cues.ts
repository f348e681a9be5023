/** `cue` events as a gateway emits them. */
import type { CueEvent } from "../../../src/protocol/events.ts";

export interface CueFacts {
  readonly utteranceId?: string;
  /** On the timeline: each word takes 100 ms, or what `wordMs` says. */
  readonly startMs: number;
  readonly wordMs?: number;
  /** Default: the end of its last word. */
  readonly endMs?: number;
  /** Where in the utterance's text it begins. */
  readonly start?: number;
  readonly speaker?: string;
}

/** A cue of one line; its words are those of `text`. */
export function cueEvent(text: string, facts: CueFacts): CueEvent {
  const { utteranceId = "u1", startMs, wordMs = 100, start = 0, speaker } = facts;
  const words = [...text.matchAll(/\w+/g)].map((match, index) => ({
    text: match[0],
    start_ms: startMs + index * wordMs,
    end_ms: startMs + (index + 1) * wordMs,
    start: start + match.index,
    end: start + match.index + match[0].length,
  }));
  return {
    type: "cue",
    seq: 0,
    at_ms: startMs,
    utterance_id: utteranceId,
    start_ms: startMs,
    end_ms: facts.endMs ?? words.at(-1)?.end_ms ?? startMs,
    start,
    end: words.at(-1)?.end ?? start,
    ...(speaker === undefined ? {} : { voice_id: "a", speaker }),
    lines: [{ text, words }],
  };
}
