/** Caption files of cues, as the gateway writes them cue by cue. */
import { srtCue, VTT_HEADER, type VttOptions, vttCue } from "../../src/protocol/captions.ts";
import type { Cue } from "../../src/timing/cues/cue-builder.ts";

export function toVtt(cues: readonly Cue[], options: VttOptions = {}): string {
  return VTT_HEADER + cues.map((cue) => vttCue(cue, options)).join("");
}

export function toSrt(cues: readonly Cue[]): string {
  return cues.map((cue, index) => srtCue(cue, index + 1)).join("");
}
