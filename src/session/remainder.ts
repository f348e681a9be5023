/** What is left to be asked for of a segment that was spoken in part. */
import type { Segment } from "../text/segmenter.ts";
import type { Utterance } from "./playback/utterance.ts";

const SPOKEN = /[\p{L}\p{N}]/u;

/** Whether anything of the text is spoken. */
function isSaid(text: string): boolean {
  return SPOKEN.test(text);
}

/** The text of the segment from `spokenStart` on; null where nothing of it is spoken. */
export function remainderOf(utterance: Utterance, segment: Segment, spokenStart: number): Segment | null {
  if (spokenStart >= segment.end) return null;
  let start = Math.max(segment.start, spokenStart);
  // What only ends an input of a dialogue is nothing to ask for.
  const joint = utterance.joints.find((at) => at > start) ?? start;
  if (!isSaid(segment.text.slice(start - segment.start, joint - segment.start))) start = joint;
  const text = segment.text.slice(start - segment.start);
  return isSaid(text) ? { text, start, end: segment.end } : null;
}
