/** Recordings that were edited and signed again, run as `voicewire replay` does. */

import { Chain } from "../../../src/recording/chain.ts";
import { RecordingReader } from "../../../src/recording/format.ts";
import { replay } from "../../../src/recording/player.ts";
import { recordedLines } from "../../unit/recording/recording-rig.ts";
import { linesOf, type Target } from "../target.ts";

/** Lines without their hashes, which the target puts before them: only so does an edit reach the player. */
const SEED = (await recordedLines()).map((line) => line.slice(17)).join("\n");

const replays: Target = {
  words: [
    ..."open join leave command speak interrupt textChanged captions send acknowledge drain noise restore".split(
      " ",
    ),
    ..."timer#1 tick#2 null [] {} -1 1e15 1e309 settings".split(" "),
  ],
  seeds: [SEED],
  run: (input) => {
    const [signing, reading] = [new Chain(), new Chain()];
    const reader = new RecordingReader((json) => reading.next(json));
    // A line that is no JSON ends the reading: without it the edits of the others reach the player.
    for (const line of linesOf(input).filter(isJson)) reader.line(signing.sign(line));
    const recording = reader.done();
    const { entries } = replay(recording);
    if (entries > recording.entries.length) throw new Error("more than there is");
  },
};

function isJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}

export const REPLAY_TARGETS: Readonly<Record<string, Target>> = { "recording-replays": replays };
