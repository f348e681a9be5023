/**
 * Material and measure of isolation, for its test and its bench: built-in voices, noises of any level, and the gain in
 * scale-invariant signal to distortion ratio (SI-SDR, dB).
 */
import { RateConverter } from "../../src/audio/resample/rate-converter.ts";
import { createDenoiser, DENOISER_RATE } from "../../src/service/media/denoiser.ts";
import { correlation, levelOf, randomNumbers } from "./signals.ts";

export const ISOLATION_TEXT =
  "She sells sea shells by the shore, and the sea is calm today. Please pack your things tonight.";
export const NOISE_LEVELS_DB = [0, 5, 10] as const;

/** One built-in voice says the text, at 48 kHz. */
export async function isolationSpeech(serviceUrl: string, voice: string): Promise<Int16Array> {
  const response = await fetch(`${serviceUrl}/v1/text-to-speech/${voice}?output_format=pcm_44100`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text: ISOLATION_TEXT, seed: 1 }),
  });
  if (response.status !== 200) throw new Error(`Voice ${voice}: the service answered ${response.status}`);
  const converter = new RateConverter(DENOISER_RATE);
  const parts = converter.push(new Int16Array(await response.arrayBuffer()), 44_100);
  return joined([...parts, converter.flush()]);
}

type Noise = (at: number) => number;

/** Each of any level; the same numbers each time. */
const NOISES = {
  white: () => {
    const random = randomNumbers(11);
    return () => random() - 0.5;
  },
  pink: () => pinkNoise(11),
  /** The mains with its harmonics; their frequency is never quite the nominal one. */
  "bare hum": () => humOf(60.03),
  /** The same with pink noise, which is nearly twice as strong. */
  "hum and pink": () => {
    const [pink, hum] = [pinkNoise(5), humOf(50)];
    return (at) => hum(at) + pink() * 0.8;
  },
  /** A rumble that swells and fades, and a car that passes at 2.5 s. */
  street: () => {
    const [far, near] = [pinkNoise(3), randomNumbers(7)];
    let rumble = 0;
    return (at) => {
      rumble = 0.98 * rumble + far();
      const swell = 0.8 + 0.4 * Math.sin((2 * Math.PI * 0.6 * at) / DENOISER_RATE);
      const passing = Math.exp(-((at / DENOISER_RATE - 2.5) ** 2));
      return rumble * swell + (near() - 0.5) * (2 + 4 * passing);
    };
  },
} satisfies Readonly<Record<string, () => Noise>>;

export type NoiseName = keyof typeof NOISES;
export const NOISE_NAMES = Object.keys(NOISES) as readonly NoiseName[];

function humOf(hz: number): Noise {
  const orders = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20];
  const tone = (at: number, order: number) =>
    Math.sin((2 * Math.PI * hz * order * at) / DENOISER_RATE + order * order);
  return (at) => orders.reduce((sum, order) => sum + tone(at, order) / order ** 0.7, 0);
}

/** Kellet's filter: 3 dB less an octave. */
function pinkNoise(seed: number): () => number {
  const random = randomNumbers(seed);
  let [low, middle, high] = [0, 0, 0];
  return () => {
    const white = random() * 2 - 1;
    low = 0.99765 * low + white * 0.099046;
    middle = 0.963 * middle + white * 0.2965164;
    high = 0.57 * high + white * 1.0526913;
    return low + middle + high + white * 0.1848;
  };
}

export function withNoise(
  clean: Int16Array,
  name: NoiseName,
  options: { snrDb: number; fromSeconds?: number },
): Int16Array {
  const make: Noise = NOISES[name]();
  const from = (options.fromSeconds ?? 0) * DENOISER_RATE;
  const noise = Float64Array.from(clean, (_, at) => (at < from ? 0 : make(at)));
  const gain = (levelOf(clean, from) * 10 ** (-options.snrDb / 20)) / levelOf(noise, from);
  return clean.map((sample, at) =>
    Math.max(-32_768, Math.min(32_767, sample + Math.round((noise[at] ?? 0) * gain))),
  );
}

export async function denoise(pcm: Int16Array): Promise<Int16Array> {
  const denoiser = await createDenoiser();
  try {
    return joined([denoiser.push(pcm), denoiser.flush()]);
  } finally {
    denoiser.close();
  }
}

export function siSdr(clean: Int16Array, other: Int16Array, from = 0): number {
  const squared = correlation(clean, other, { from }) ** 2;
  return 10 * Math.log10(squared / (1 - squared + 1e-12));
}

/** What a recording gains in noise so many dB below it. */
export async function isolationGain(clean: Int16Array, noise: NoiseName, snrDb: number): Promise<number> {
  const noisy = withNoise(clean, noise, { snrDb });
  return siSdr(clean, await denoise(noisy)) - siSdr(clean, noisy);
}

function joined(parts: readonly Int16Array[]): Int16Array {
  const whole = new Int16Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
