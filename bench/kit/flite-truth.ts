/**
 * Speech of flite's voices with the true start of each word: that of its first phone. flite prints phones with their ends
 * (`-psdur`), but not which word they belong to: a small program that is linked with its library does. Needs `gcc` and Debian's
 * `flite1-dev` and `libasound2-dev`.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const FLITE_VOICES = ["kal", "slt", "awb", "rms"] as const;
export type FliteVoice = (typeof FLITE_VOICES)[number];

export interface TrueWord {
  /** UTF-16 offset of its first letter. */
  readonly start: number;
  readonly startSeconds: number;
}

export interface TrueSpeech {
  readonly text: string;
  readonly sampleRate: number;
  readonly samples: Int16Array;
  readonly words: readonly TrueWord[];
}

const LIBRARIES = [
  ...FLITE_VOICES.map((voice) => `-lflite_cmu_us_${voice}`),
  ...["-lflite_usenglish", "-lflite_cmulex", "-lflite", "-lasound", "-lm"],
];

/** Throws an Error that says what is missing. */
export function buildFlite(source: string, folder: string): string {
  mkdirSync(folder, { recursive: true });
  const program = join(folder, "flite-words");
  const { status, stderr } = spawnSync("gcc", ["-O2", "-o", program, source, ...LIBRARIES], {
    encoding: "utf8",
  });
  if (status !== 0)
    throw new Error(`Cannot build ${source}: install gcc, flite1-dev and libasound2-dev: ${stderr ?? ""}`);
  return program;
}

export function speakByFlite(
  program: string,
  voice: FliteVoice,
  texts: readonly string[],
  folder: string,
): TrueSpeech[] {
  const prefix = join(folder, `${voice}-`);
  const run = spawnSync(program, [voice, prefix], { input: `${texts.join("\n")}\n`, encoding: "utf8" });
  if (run.status !== 0) throw new Error(`Cannot speak with flite's ${voice}: ${run.stderr}`);
  const blocks = run.stdout.split(/^# \d+\n/m).slice(1);
  return texts.map((text, i) => ({
    text,
    ...readWav(`${prefix}${String(i).padStart(3, "0")}.wav`),
    words: wordsIn(text, blocks[i] ?? ""),
  }));
}

/** flite's tokens have no punctuation, and some of the text's words are several of them. */
function wordsIn(text: string, block: string): TrueWord[] {
  const words: TrueWord[] = [];
  let at = 0;
  for (const line of block.trim().split("\n")) {
    const space = line.lastIndexOf(" ");
    const start = text.indexOf(line.slice(0, space), at);
    if (start < 0) continue;
    const isWordStart = start === 0 || !/[\p{L}\p{N}]/u.test(text[start - 1] ?? "");
    if (isWordStart) words.push({ start, startSeconds: Number(line.slice(space + 1)) });
    at = start + space;
  }
  return words;
}

/** With the header that flite writes. */
function readWav(path: string): Pick<TrueSpeech, "sampleRate" | "samples"> {
  const file = readFileSync(path);
  const samples = new Int16Array((file.length - 44) >> 1);
  for (let i = 0; i < samples.length; i += 1) samples[i] = file.readInt16LE(44 + 2 * i);
  return { sampleRate: file.readUInt32LE(24), samples };
}
