/** A session that is recorded, with an upstream that the test speaks for. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Logger } from "../../../src/kit/log.ts";
import { replay } from "../../../src/recording/player.ts";
import { Recordings, type RecordingsOptions } from "../../../src/recording/recordings.ts";
import type { SessionSettings } from "../../../src/session/session-deps.ts";
import { readLines } from "../../helpers/recordings.ts";
import { countingUlaw, createRig, evenAlignment } from "../../helpers/session-rig.ts";
import { watchedLog } from "../../helpers/watched-log.ts";
import { MemoryDisk } from "./memory-disk.ts";

export function createRecordedRig(
  settings: Partial<SessionSettings> = {},
  options: Partial<RecordingsOptions> = {},
  log: Logger = watchedLog,
) {
  const disk = new MemoryDisk();
  let recordings: Recordings | null = null;
  const rig = createRig(settings, undefined, undefined, undefined, undefined, (clock) => {
    recordings = new Recordings({
      folder: join(tmpdir(), "voicewire-recording-test"),
      isRedacted: false,
      maxSessionMb: 16,
      maxFolderMb: 64,
      clock,
      wallMs: () => Date.UTC(2027, 0, 31),
      log,
      disk,
      ...options,
    });
    return recordings;
  });
  const opened = recordings as Recordings | null;
  if (opened === null) throw new TypeError("Nothing records");
  /** Ends all recordings, and runs one again. */
  const replayed = async (index = 0) => {
    await opened.close();
    return replay(readLines(disk.lines(index)));
  };
  return { ...rig, disk, recordings: opened, replayed };
}

/** The lines of a session that has said one sentence. */
export async function recordedLines({ isRedacted = false, utteranceId = "u" } = {}): Promise<string[]> {
  const rig = createRecordedRig({}, { isRedacted });
  const { send } = rig.join("format=ulaw_8000&events=words");
  send({ type: "speak", text: "Hello there.", utterance_id: utteranceId });
  await Promise.resolve();
  rig.requests[0]?.head();
  rig.requests[0]?.chunk(countingUlaw(600), { alignment: evenAlignment("Hello there.", 50) });
  rig.requests[0]?.handlers.end();
  rig.clock.advance(2000);
  await rig.recordings.close();
  return rig.disk.lines();
}
