/** What brings the audio of a segment. An upstream's attempt may make several tries; one that replays makes none. */
import type { GatewayError } from "../../errors.ts";
import type { Timing } from "../../protocol/vocabulary.ts";
import type { SynthesisChunk } from "../../upstream/types.ts";
import type { StagedSegment } from "../playback/segment-queue.ts";

/** Speech for one segment, wherever it comes from: an upstream, or audio that was kept when it was interrupted. */
export interface Attempt {
  readonly segment: StagedSegment;
  readonly sourceFormat: string;
  /** Everything has come (or it failed). */
  readonly isComplete: boolean;
  readonly error: GatewayError | null;
  readonly hasChunk: boolean;
  readonly waitingBytes: number;
  readonly requestId: string | null;
  /** Whether its text is to be timed, by estimate where nothing else comes. */
  readonly wantsTiming: boolean;
  /** The best that its timing can be called, once anything has come. */
  readonly timing: Timing;
  /** Its times need no repair, once anything has come; default false. */
  readonly hasSteadyTimes?: boolean;
  /** No times will come; default false: they may. */
  readonly hasNoTimes?: boolean;
  /** The voice of another upstream that speaks in the place of the one that was asked for; default: none does. */
  readonly standIn?: string | null;
  /** Its audio was brought to the loudness that is asked for, or is to stay as it is. */
  readonly isLevelled: boolean;
  /** Where reading can wait. */
  hold?(): void;
  readOn?(): void;
  /** The oldest chunk. Its audio may be good only until the next is taken. */
  take(): SynthesisChunk | undefined;
  /** No more of it is taken ahead of what is rendered, ms; default: as much as there may be. */
  readonly mostAheadMs?: number;
  /** What is said behind it has come. */
  giveWay?(): void;
  abort(): void;
}
