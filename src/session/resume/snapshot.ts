/** What is kept of an utterance that was interrupted, so that `resume` can go on with it. */
import type { Timing } from "../../protocol/vocabulary.ts";
import type { Segment } from "../../text/segmenter.ts";
import type { ReplayAttempt } from "./replay-attempt.ts";

export interface Snapshot {
  /** Audio that had come, in its order: it is spoken first. Empty: all is asked for again. */
  readonly replays: readonly ReplayAttempt[];
  /** Offset in the spoken text where it goes on. */
  readonly spokenStart: number;
  /** Where on the former timeline it goes on. */
  readonly fromTicks: number;
  /** Text behind the replays that was asked for and did not come. */
  readonly rest: readonly Segment[];
  /** How that place in the text is known. */
  readonly timing: Timing;
}
