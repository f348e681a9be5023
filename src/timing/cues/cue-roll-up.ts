/** Captions that roll up: each line comes as its first word is spoken, with the line before above it. */

import type { Cue } from "./cue-builder.ts";
import type { CueLine } from "./cue-layout.ts";

export class RollUp {
  #above: { readonly line: CueLine; readonly endSeconds: number; readonly voice: Cue["voice"] } | null = null;

  /** One cue a line. `start` and `end` of each are those of the line that comes with it. */
  push(cue: Cue): Cue[] {
    const cues: Cue[] = [];
    let { startSeconds } = cue;
    cue.lines.forEach((line, index) => {
      const next = cue.lines[index + 1];
      const nextSeconds = next?.words[0]?.startSeconds ?? cue.endSeconds;
      const endSeconds = next === undefined ? cue.endSeconds : Math.min(nextSeconds, cue.endSeconds);
      const above = this.#lineAbove(startSeconds, cue.voice);
      this.#above = { line, endSeconds: Math.max(endSeconds, startSeconds), voice: cue.voice };
      // Two lines that come at once are shown at once.
      if (endSeconds <= startSeconds && next !== undefined) return;
      cues.push({
        ...cue,
        startSeconds,
        endSeconds,
        start: line.words[0]?.start ?? cue.start,
        end: line.words.at(-1)?.end ?? cue.end,
        lines: above === null ? [line] : [above, line],
      });
      startSeconds = endSeconds;
    });
    return cues;
  }

  /** The line before, unless the screen was empty between, or another voice said it. */
  #lineAbove(startSeconds: number, voice: Cue["voice"]): CueLine | null {
    const above = this.#above;
    if (above === null || startSeconds - above.endSeconds > 0.001) return null;
    return above.voice?.voiceId === voice?.voiceId && above.voice?.speaker === voice?.speaker
      ? above.line
      : null;
  }
}
