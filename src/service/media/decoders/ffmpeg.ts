/**
 * M4A and MP4 uploads, and Matroska's tracks of other codecs, by the ffmpeg of the machine where there is one: AAC has no
 * decoder here. It is a process of its own, with one format, its two pipes and no other file or address, and it is ended
 * where it takes too long or too much.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { PcmAligner } from "../../../audio/codecs/pcm.ts";
import type { ApiError } from "../../api-error.ts";
import type { PcmPiece } from "../pieces.ts";
import { invalidAudio, unknownFormat } from "./decoder.ts";

/** What ffmpeg makes of every file. */
const SAMPLE_RATE = 48_000;
/** Without a sample for so long it is ended. Where the samples are not asked for, the time stands. */
const STALL_MS = 20_000;
/** Processor time for one upload: an hour of sound, the most there is, takes a minute. */
const MAX_CPU_SECONDS = 300;
/** Address space of the process; ffmpeg itself maps 200 MB. */
const MAX_MEMORY_BYTES = 1_073_741_824;
const MAX_BLOCK_BYTES = 67_108_864;

/** Where programs are looked for: those of the machine, whatever the environment says. */
const FOLDERS = ["/usr/local/bin", "/usr/bin", "/opt/homebrew/bin"] as const;

function argumentsFor(demuxer: string): readonly string[] {
  return [
    ...["-nostdin", "-hide_banner", "-v", "quiet", "-threads", "1", "-max_alloc", String(MAX_BLOCK_BYTES)],
    ...["-protocol_whitelist", "pipe", "-f", demuxer, "-i", "pipe:0"],
    ...["-map", "0:a:0", "-vn", "-sn", "-dn", "-map_metadata", "-1"],
    ...["-ac", "1", "-ar", String(SAMPLE_RATE), "-f", "s16le", "pipe:1"],
  ];
}

/** A container that ffmpeg opens: no other. */
export interface FfmpegContainer {
  readonly demuxer: "mov" | "matroska";
  /** In the words of an error. */
  readonly name: string;
  /** What a machine without ffmpeg answers. */
  readonly refusal: () => ApiError;
}

export const MP4: FfmpegContainer = {
  demuxer: "mov",
  name: "MP4 or M4A",
  refusal: () =>
    unknownFormat("it is an MP4 or M4A file, for which this service needs ffmpeg, and the machine has none"),
};

/**
 * `source`: its index first. Rejects with the container's refusal where the machine has no ffmpeg, with ApiError
 * `invalid_audio` where the file holds no sound that it decodes. Leaving the loop early ends the process.
 */
export async function* decodedByFfmpeg(
  source: AsyncIterable<Uint8Array>,
  container: FfmpegContainer,
  { folders = FOLDERS }: { readonly folders?: readonly string[] } = {},
): AsyncGenerator<PcmPiece> {
  const child = await startFfmpeg(container, folders);
  const feeding = feed(child.stdin, source);
  const ended = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code)));
  const aligner = new PcmAligner();
  const chunks = child.stdout[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  try {
    while (true) {
      const next = await withinStall(chunks.next(), container);
      if (next.done === true) break;
      yield { pcm: aligner.push(next.value), sampleRate: SAMPLE_RATE };
    }
    const code = await withinStall(ended, container);
    const fault = await feeding;
    if (fault !== null) throw fault;
    if (code !== 0)
      throw invalidAudio(`the ${container.name} file is broken, or holds no sound that is known`);
  } finally {
    child.kill("SIGKILL");
    child.stdin.destroy();
    child.stdout.destroy();
    await feeding;
  }
}

type Child = ChildProcessByStdio<Writable, Readable, null>;

/** Under prlimit, which bounds its memory and its time, where the machine has that. */
async function startFfmpeg(
  { demuxer, refusal }: FfmpegContainer,
  folders: readonly string[],
): Promise<Child> {
  const limits = [`--as=${MAX_MEMORY_BYTES}`, `--cpu=${MAX_CPU_SECONDS}`, "--core=0"];
  const program = await pathOf("ffmpeg", folders);
  const limiter = await pathOf("prlimit", folders);
  if (program === null) throw refusal();
  const wanted = argumentsFor(demuxer);
  return limiter === null
    ? await started(program, wanted)
    : await started(limiter, [...limits, program, ...wanted]);
}

/** null where there is no such program. */
async function pathOf(program: string, folders: readonly string[]): Promise<string | null> {
  for (const folder of folders) {
    const path = join(folder, program);
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return path;
  }
  return null;
}

function started(program: string, parameters: readonly string[]): Promise<Child> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, parameters, { stdio: ["pipe", "pipe", "ignore"], cwd: "/", env: {} });
    // What it does not want to read is seen by its end.
    child.stdin.on("error", () => child.stdin.destroy());
    child.once("error", reject);
    child.once("spawn", () => resolve(child));
  });
}

/** What was wrong with the source; null where nothing was, and where ffmpeg had enough. */
async function feed(stdin: Writable, source: AsyncIterable<Uint8Array>): Promise<unknown> {
  try {
    for await (const bytes of source) {
      if (stdin.destroyed) return null;
      if (stdin.write(bytes)) continue;
      await new Promise<void>((resolve) => {
        const go = (): void => {
          stdin.off("drain", go).off("close", go);
          resolve();
        };
        stdin.once("drain", go).once("close", go);
      });
    }
    return null;
  } catch (thrown) {
    return thrown;
  } finally {
    stdin.end();
  }
}

async function withinStall<T>(step: Promise<T>, { name }: FfmpegContainer): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const stalled = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(invalidAudio(`the ${name} file takes too long to decode`)), STALL_MS);
  });
  try {
    return await Promise.race([step, stalled]);
  } finally {
    clearTimeout(timer);
  }
}
