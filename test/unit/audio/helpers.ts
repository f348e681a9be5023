/** Signals, splits and measurements for the tests of src/audio. */
import { spawnSync } from "node:child_process";
import fc from "fast-check";

/** The upstream's formats whose bytes are samples. */
export const SAMPLED_FORMATS = [
  ...["ulaw_8000", "alaw_8000", "pcm_8000", "pcm_16000", "pcm_22050"],
  ...["pcm_24000", "pcm_32000", "pcm_44100", "pcm_48000"],
] as const;

export interface Tone {
  readonly hz: number;
  readonly rate: number;
  readonly samples: number;
  /** Of 32768; default 12000. */
  readonly amplitude?: number;
}

export function tone({ hz, rate, samples, amplitude = 12_000 }: Tone): Int16Array {
  return Int16Array.from({ length: samples }, (_, at) =>
    Math.round(amplitude * Math.sin((2 * Math.PI * hz * at) / rate)),
  );
}

/** Deterministic noise over the whole 16-bit range. */
export function noise(samples: number, seed = 1): Int16Array {
  const pcm = new Int16Array(samples);
  let state = seed;
  for (let at = 0; at < samples; at += 1) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    pcm[at] = (state >> 15) - 0x8000;
  }
  return pcm;
}

/** Pieces that cut an array of that length anywhere, empty ones included. */
export function splits(length: number, maxCuts = 12): fc.Arbitrary<number[]> {
  return fc
    .array(fc.integer({ min: 0, max: length }), { maxLength: maxCuts })
    .map((cuts) => [0, ...cuts.sort((a, b) => a - b), length]);
}

/** Few pieces, many, or one of each byte. */
export function anySplits(length: number): fc.Arbitrary<number[]> {
  return fc.oneof(
    { weight: 8, arbitrary: splits(length) },
    { weight: 4, arbitrary: splits(length, 200) },
    { weight: 1, arbitrary: fc.constant(Array.from({ length: length + 1 }, (_, at) => at)) },
  );
}

/** The pieces between cuts, in order; each a copy of its own at an address that is not the whole's. */
export function pieces<T extends Uint8Array | Int16Array>(whole: T, cuts: readonly number[]): T[] {
  return cuts.slice(1).map((end, index) => whole.slice(cuts[index] ?? 0, end) as T);
}

export function concatPcm(parts: readonly Int16Array[]): Int16Array {
  const joined = new Int16Array(parts.reduce((total, part) => total + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

export interface Fit {
  readonly amplitude: number;
  /** Root mean square of what is not the tone. */
  readonly residue: number;
  readonly snrDb: number;
}

/** Least-squares fit of one tone to the middle of a signal. */
export function fitTone(signal: ArrayLike<number>, hz: number, rate: number): Fit {
  const from = Math.floor(signal.length * 0.2);
  const to = Math.floor(signal.length * 0.8);
  let [xs, xc, ss, cc, sc] = [0, 0, 0, 0, 0];
  for (let at = from; at < to; at += 1) {
    const x = signal[at] ?? 0;
    const s = Math.sin((2 * Math.PI * hz * at) / rate);
    const c = Math.cos((2 * Math.PI * hz * at) / rate);
    xs += x * s;
    xc += x * c;
    ss += s * s;
    cc += c * c;
    sc += s * c;
  }
  const determinant = ss * cc - sc * sc;
  const a = (xs * cc - xc * sc) / determinant;
  const b = (xc * ss - xs * sc) / determinant;
  let error = 0;
  for (let at = from; at < to; at += 1) {
    const angle = (2 * Math.PI * hz * at) / rate;
    error += ((signal[at] ?? 0) - a * Math.sin(angle) - b * Math.cos(angle)) ** 2;
  }
  const amplitude = Math.hypot(a, b);
  const residue = Math.sqrt(error / (to - from));
  return { amplitude, residue, snrDb: 20 * Math.log10(amplitude / Math.SQRT2 / residue) };
}

/** Level of a signal's middle against a full tone of `amplitude`, in dB. */
export function levelDb(signal: ArrayLike<number>, amplitude: number): number {
  const from = Math.floor(signal.length * 0.2);
  const to = Math.floor(signal.length * 0.8);
  let sum = 0;
  for (let at = from; at < to; at += 1) sum += (signal[at] ?? 0) ** 2;
  return 20 * Math.log10(Math.sqrt(sum / (to - from)) / (amplitude / Math.SQRT2) + 1e-9);
}

/** The strongest frequency of a signal's middle, in steps of 10 Hz up to 4 kHz. */
export function peakHz(signal: ArrayLike<number>, rate: number): number {
  const from = Math.floor(signal.length * 0.25);
  const to = Math.min(Math.floor(signal.length * 0.75), from + 8192);
  const windowed = Float64Array.from({ length: Math.max(0, to - from) }, (_, at) => {
    const window = 0.5 - 0.5 * Math.cos((2 * Math.PI * at) / (to - from));
    return (signal[from + at] ?? 0) * window;
  });
  let best = { hz: 0, power: 0 };
  for (let hz = 50; hz <= Math.min(4000, rate / 2 - 50); hz += 10) {
    const power = powerAt(windowed, (2 * Math.PI * hz) / rate);
    if (power > best.power) best = { hz, power };
  }
  return best.hz;
}

/** Of the frequency with so many radians a sample, by Goertzel's algorithm: with a sine for each sample it took 30 times as long. */
function powerAt(signal: Float64Array, radians: number): number {
  const factor = 2 * Math.cos(radians);
  let [last, before] = [0, 0];
  for (let at = 0; at < signal.length; at += 1) {
    const next = (signal[at] ?? 0) + factor * last - before;
    before = last;
    last = next;
  }
  return last * last + before * before - factor * last * before;
}

/** Largest step between neighbouring samples: a click shows as one that the tone cannot have. */
export function largestStep(signal: ArrayLike<number>, from = 0, to = signal.length): number {
  let largest = 0;
  for (let at = from + 1; at < to; at += 1) {
    largest = Math.max(largest, Math.abs((signal[at] ?? 0) - (signal[at - 1] ?? 0)));
  }
  return largest;
}

const installed = new Map<string, boolean>();

/** Whether a program is installed: tests that need it are skipped, with its name, where it is not. */
export function hasProgram(name: string): boolean {
  const isInstalled = installed.get(name) ?? spawnSync("which", [name]).status === 0;
  installed.set(name, isInstalled);
  return isInstalled;
}

/** Runs a program on bytes; returns what it wrote. */
export function run(
  program: string,
  args: readonly string[],
  input: Uint8Array,
): { stdout: Uint8Array; stderr: string; status: number | null } {
  const done = spawnSync(program, args, { input, maxBuffer: 64 * 1024 * 1024 });
  return { stdout: new Uint8Array(done.stdout), stderr: done.stderr.toString(), status: done.status };
}

/** Decodes bytes to 16-bit mono by ffmpeg, at `rate`. */
export function ffmpegDecode(
  bytes: Uint8Array,
  { rate, format = [] }: { rate: number; format?: string[] },
): Int16Array {
  const args = [
    "-v",
    "error",
    ...format,
    "-i",
    "pipe:0",
    "-f",
    "s16le",
    "-ac",
    "1",
    "-ar",
    `${rate}`,
    "pipe:1",
  ];
  const { stdout, stderr, status } = run("ffmpeg", args, bytes);
  if (status !== 0) throw new Error(`ffmpeg: ${stderr}`);
  return new Int16Array(stdout.buffer, stdout.byteOffset, stdout.length >> 1);
}

/** Waits until a condition holds, up to a deadline. */
export async function until(condition: () => boolean, deadlineMs = 10_000): Promise<void> {
  const end = performance.now() + deadlineMs;
  while (!condition()) {
    if (performance.now() > end) throw new Error("Condition not reached in time");
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Copies of the frames that stand in a row. */
export function split(bytes: Uint8Array, frameBytes: number): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += frameBytes) frames.push(bytes.slice(at, at + frameBytes));
  return frames;
}
