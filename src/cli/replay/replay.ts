/** `voicewire replay`: what happened in a recorded session, and whether it happens again. */
import { createReadStream } from "node:fs";
import { resolve } from "node:path";
import { bytesOf } from "../../audio/codecs/pcm.ts";
import { decodeSamples } from "../../audio/codecs/samples.ts";
import { AUDIO_FORMATS } from "../../audio/formats.ts";
import type { AudioFormat } from "../../protocol/vocabulary.ts";
import { Chain } from "../../recording/chain.ts";
import { type Course, courseOf } from "../../recording/course.ts";
import { MAX_LINE_CHARS, type Recording, RecordingReader, unreadable } from "../../recording/format.ts";
import { type Replayed, replay as runAgain } from "../../recording/player.ts";
import { VERSION } from "../../version.ts";
import { EXIT, usageError } from "../exit.ts";
import { type Flag, integerFlag, parseArguments } from "../flags.ts";
import type { CommandModule } from "../help.ts";
import type { Io } from "../io.ts";
import { type AudioFile, prepareAudioFile } from "../output/audio-file.ts";
import { audioFormat, outputFormatFor } from "../output/output-plan.ts";
import { dryMoments, eventLines, report, type Told } from "./replay-report.ts";

const FLAGS: readonly Flag[] = [
  { name: "events", about: "Also each command, event and request, with its time" },
  { name: "json", about: "One JSON object on stdout in place of tables" },
  {
    name: "out",
    short: "o",
    value: "FILE",
    about:
      "What a listener was sent, to x.wav, .ogg, .mp3, .ulaw, .alaw or .pcm; as the listener had it, G.711 also decoded",
  },
  {
    name: "connection",
    value: "NUMBER",
    about: "Whose audio --out writes, as the table numbers it; default: the first that was sent any",
  },
];

export const replay: CommandModule = {
  help: {
    name: "replay",
    usage: ["replay FILE [FLAGS]"],
    about:
      "Runs a session again that `serve --record FOLDER` has recorded: the same code, the same times, without an upstream. " +
      "Says whether every connection is sent the very same bytes, or where they first differ, and what happened to each " +
      "utterance. Fails where they differ. A recording has texts and audio of its users in it, unless it was made with " +
      "--record-text hash: then it is shown, and not run.",
    flags: FLAGS,
    examples: [
      { line: "voicewire replay call.voicewire", about: "what happened, and whether it happens again" },
      { line: "voicewire replay call.voicewire --events", about: "who did what when" },
      { line: "voicewire replay call.voicewire --out heard.wav", about: "what the first listener was sent" },
    ],
  },
  run: runReplay,
};

async function runReplay(io: Io, args: readonly string[]): Promise<number> {
  const parsed = parseArguments(args, FLAGS);
  const [file, ...more] = parsed.positionals;
  if (file === undefined || more.length > 0)
    throw usageError("Expected one recording: voicewire replay FILE", "file");
  const connection = integerFlag(parsed, "connection", { min: 0, max: 1_000_000, fallback: 0 });
  const recording = await readFile(resolve(file), io);
  const { head } = recording;
  if (head.version !== VERSION) {
    io.stderr.write(
      `voicewire: the recording is of voicewire ${head.version}, this is ${VERSION}: what was changed since may differ\n`,
    );
  }
  const course = courseOf(recording);
  const out = parsed.text("out");
  const { replayed, ms } = await play(recording, course, { io, out, connection });
  const told: Told = { recording, course, replayed, ms };
  if (parsed.has("json")) io.stdout.write(`${JSON.stringify(jsonOf(told))}\n`);
  else {
    io.stdout.write(report(told));
    if (parsed.has("events")) io.stdout.write(eventLines(course));
  }
  return replayed?.difference ? EXIT.other : EXIT.ok;
}

interface Playing {
  readonly io: Io;
  readonly out: string | undefined;
  /** 0: the first that was sent audio. */
  readonly connection: number;
}

/** `replayed` null: it has no texts and audio to run with. */
async function play(
  recording: Recording,
  course: Course,
  { io, out, connection: wanted }: Playing,
): Promise<{ readonly replayed: Replayed | null; readonly ms: number }> {
  const isHashed = recording.head.text === "hashed";
  if (isHashed && out !== undefined) throw usageError("Flag --out: the recording has no audio in it", "out");
  if (isHashed) return { replayed: null, ms: 0 };
  const heard = course.connections.find(({ number, deliveries }) =>
    wanted === 0 ? deliveries.some(({ frames }) => frames > 0) : number === wanted,
  );
  if (out !== undefined && heard === undefined)
    throw usageError("Flag --out: no such connection was sent audio", "connection");
  const audio =
    out === undefined || heard === undefined ? null : await heardFile(out, audioFormat(heard.format), io);
  const startMs = io.clock.nowMs();
  try {
    const replayed = runAgain(recording, {
      frames: (number, frames) => {
        if (number === heard?.number) for (const frame of frames) audio?.write(frame);
      },
    });
    return { replayed, ms: io.clock.nowMs() - startMs };
  } finally {
    audio?.close();
  }
}

/** Where the frames go that a listener was sent as `sent`. */
async function heardFile(
  path: string,
  sent: AudioFormat,
  { stdout }: Io,
): Promise<Pick<AudioFile, "write" | "close">> {
  const plan = outputFormatFor(path, sent);
  const file = (await prepareAudioFile({ path, stdout, ...plan }))();
  const { codec } = AUDIO_FORMATS[sent];
  if (plan.format === sent || codec === "opus" || codec === "pcm_s16le") return file;
  return { write: (frame) => file.write(bytesOf(decodeSamples(codec, frame))), close: () => file.close() };
}

function jsonOf({ recording: { head, end }, course, replayed }: Told): object {
  const { settings: _settings, ...facts } = head;
  const connections = course.connections.map(({ deliveries, ...connection }) => ({
    ...connection,
    messages: deliveries.length,
    frames: deliveries.reduce((sum, { frames }) => sum + frames, 0),
  }));
  return {
    ...facts,
    end,
    duration_ms: course.durationMs,
    replay: replayed,
    connections,
    utterances: course.utterances,
    dry: dryMoments({ course, replayed }),
    happenings: course.happenings,
  };
}

/** Throws invalid_config where the file can't be read, recording_unreadable, recording_version. */
async function readFile(file: string, io: Io): Promise<Recording> {
  const chain = new Chain();
  const reader = new RecordingReader((json) => chain.next(json));
  let rest = "";
  let lines = 0;
  try {
    for await (const piece of createReadStream(file, { encoding: "utf8", highWaterMark: 1 << 20 })) {
      const parts = (rest + String(piece)).split("\n");
      rest = parts.pop() ?? "";
      for (const line of parts) reader.line(line);
      lines += parts.length;
      if (rest.length > MAX_LINE_CHARS)
        throw unreadable(lines + 1, "the line is longer than any of a recording");
    }
  } catch (thrown) {
    if (thrown instanceof Error && "syscall" in thrown)
      throw usageError(`The recording can't be read: ${thrown.message}`, "file");
    throw thrown;
  }
  if (rest !== "") {
    if (lines === 0) reader.line(rest);
    io.stderr.write(`voicewire: line ${lines + 1} of the recording was cut off: it is passed over\n`);
  }
  const recording = reader.done();
  if (recording.end === null) {
    io.stderr.write(
      "voicewire: the recording has no last line: its gateway was killed, or still writes it\n",
    );
  }
  return recording;
}
