/** A recording of steady speech, made on a clock that is turned: an hour of it takes seconds. */
import { join } from "node:path";
import type { Clock } from "../../src/kit/clock.ts";
import { Encoder } from "../../src/recording/encode.ts";
import { type EndReason, type Head, RECORDING_VERSION } from "../../src/recording/format.ts";
import { Recorder } from "../../src/recording/recorder.ts";
import { RecordingFile, recordingDisk } from "../../src/recording/recording-file.ts";
import type { SessionRecorder } from "../../src/session/sessions.ts";
import { countingUlaw, createRig, evenAlignment } from "../../test/helpers/session-rig.ts";

const UTTERANCE_MS = 10_000;
/** The disk writes between these. */
const STEP_MS = 500;
const TEXT = "The quick brown fox jumps over the lazy dog. ".repeat(4).trim();

/** Speaks to two listeners for so many minutes; the path of its file. */
export async function recordSpeech(folder: string, minutes: number): Promise<string> {
  const path = join(folder, "hour.voicewire");
  const ended: EndReason[] = [];
  let file: RecordingFile | null = null;
  const rig = createRig({}, undefined, undefined, undefined, undefined, (clock) => ({
    begin: (session) => {
      file = fileAt(path, clock, (reason) => ended.push(reason));
      return recorderIn(file, clock, session);
    },
  }));
  const { send } = rig.join("format=ulaw_8000&events=words");
  rig.join("role=listener&format=ulaw_8000&lead_ms=400");
  const alignment = evenAlignment(TEXT, UTTERANCE_MS / TEXT.length);
  for (let utterance = 0; utterance < (minutes * 60_000) / UTTERANCE_MS; utterance += 1) {
    send({ type: "speak", text: TEXT });
    await Promise.resolve();
    const request = rig.requests[utterance];
    request?.handlers.requestSent?.();
    request?.head();
    request?.chunk(countingUlaw(UTTERANCE_MS), { alignment });
    request?.handlers.end();
    for (let ms = 0; ms < UTTERANCE_MS + STEP_MS; ms += STEP_MS) {
      rig.clock.advance(STEP_MS);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  await (file as RecordingFile | null)?.close();
  if (ended.join() !== "shutdown") throw new Error(`The recording ended before its session: ${ended}`);
  return path;
}

function fileAt(path: string, clock: Clock, onEnd: (reason: EndReason) => void): RecordingFile {
  const room = { take: () => null };
  return new RecordingFile({
    path,
    disk: recordingDisk,
    clock,
    maxBytes: Number.MAX_SAFE_INTEGER,
    room,
    onEnd,
  });
}

function recorderIn(
  file: RecordingFile,
  clock: Clock,
  { id, epoch, settings, server }: Parameters<SessionRecorder["begin"]>[0],
): ReturnType<SessionRecorder["begin"]> {
  const encoder = new Encoder({ isRedacted: false });
  const head: Head = {
    voicewire_recording: RECORDING_VERSION,
    version: "bench",
    at: new Date(0).toISOString(),
    at_ms: clock.nowMs(),
    session: id,
    epoch,
    server,
    text: "kept",
    settings: encoder.value(settings),
  };
  file.line(JSON.stringify(head));
  return {
    tape: new Recorder({ clock, encoder, isRedacted: false, sink: file }),
    end: () => file.end("closed"),
  };
}
