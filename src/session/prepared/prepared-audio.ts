/** What was made ready before it is played. */
import type { SpeakCommand } from "../../protocol/commands.ts";
import type { Timing } from "../../protocol/vocabulary.ts";
import type { SynthesisChunk } from "../../upstream/types.ts";
import type { Sound } from "../sound.ts";

/** The answer to one segment. */
export interface PreparedSegment {
  readonly requestId: string | null;
  /** The best that its times can be called. */
  readonly timing: Timing;
  readonly hasSteadyTimes: boolean;
  readonly hasNoTimes: boolean;
  readonly standIn: string | null;
  readonly chunks: readonly SynthesisChunk[];
}

export interface PreparedAudio {
  readonly sourceFormat: string;
  readonly voiceId: string;
  readonly segments: readonly PreparedSegment[];
  readonly ms: number;
}

export interface PreparedText {
  readonly command: SpeakCommand;
  readonly audio: PreparedAudio;
}

export type Prepared = { readonly sound: Sound } | PreparedText;
