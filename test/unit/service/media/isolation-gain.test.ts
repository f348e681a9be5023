/** What isolation does to speech, measured against the clean speech: scale-invariant signal to distortion ratio, dB. */
import { beforeAll, describe, expect, it } from "vitest";
import { RateConverter } from "../../../../src/audio/resample/rate-converter.ts";
import { createDenoiser } from "../../../../src/service/media/denoiser.ts";
import { OTHER_VOICE, startClient, VOICE } from "../../../service/client.ts";
import { concatPcm } from "../../audio/helpers.ts";
import { correlation, levelOf, RATE, randomNumbers } from "./helpers.ts";

const TEXT = "She sells sea shells by the shore, and the sea is calm today. Please pack your things tonight.";
const VOICES = [VOICE, OTHER_VOICE] as const;
const spoken = new Map<string, Int16Array>();

/** Built-in voices at 48 kHz, over HTTP. */
beforeAll(async () => {
  await using client = await startClient();
  for (const voice of VOICES) {
    const path = `/v1/text-to-speech/${voice}?output_format=pcm_44100`;
    const { body } = await client.post(path, { text: TEXT, seed: 1 });
    const converter = new RateConverter(RATE);
    const pcm = new Int16Array(new Uint8Array(body).buffer);
    spoken.set(voice, concatPcm([...converter.push(pcm, 44_100), converter.flush()]));
  }
});

type Noise = (at: number) => number;

/** Each of any level; the same numbers each time. */
const NOISES: Readonly<Record<string, () => Noise>> = {
  white: () => {
    const random = randomNumbers(11);
    return () => random() - 0.5;
  },
  pink: () => pinkNoise(11),
  /** Of the mains with its harmonics; the frequency is never quite the mains'. */
  "bare hum": () => humOf(60.03),
  /** The same with pink noise, which is nearly twice as strong. */
  hum: () => {
    const [pink, hum] = [pinkNoise(5), humOf(50)];
    return (at) => hum(at) + pink() * 0.8;
  },
  /** A rumble that swells and fades, and a car that passes at 2.5 s. */
  street: () => {
    const [far, near] = [pinkNoise(3), randomNumbers(7)];
    let rumble = 0;
    return (at) => {
      rumble = 0.98 * rumble + far();
      const swell = 0.8 + 0.4 * Math.sin((2 * Math.PI * 0.6 * at) / RATE);
      const passing = Math.exp(-((at / RATE - 2.5) ** 2));
      return rumble * swell + (near() - 0.5) * (2 + 4 * passing);
    };
  },
};

function humOf(hz: number): Noise {
  const orders = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20];
  const tone = (at: number, order: number) =>
    Math.sin((2 * Math.PI * hz * order * at) / RATE + order * order);
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

function withNoise(
  clean: Int16Array,
  name: string,
  options: { snrDb: number; fromSeconds?: number },
): Int16Array {
  const make = NOISES[name]?.() ?? (() => 0);
  const from = (options.fromSeconds ?? 0) * RATE;
  const noise = Float64Array.from(clean, (_, at) => (at < from ? 0 : make(at)));
  const gain = (levelOf(clean, from) * 10 ** (-options.snrDb / 20)) / levelOf(noise, from);
  return clean.map((sample, at) =>
    Math.max(-32_768, Math.min(32_767, sample + Math.round((noise[at] ?? 0) * gain))),
  );
}

async function denoise(pcm: Int16Array): Promise<Int16Array> {
  const denoiser = await createDenoiser();
  try {
    return concatPcm([denoiser.push(pcm), denoiser.flush()]);
  } finally {
    denoiser.close();
  }
}

function siSdr(clean: Int16Array, other: Int16Array, from = 0): number {
  const squared = correlation(clean, other, { from }) ** 2;
  return 10 * Math.log10(squared / (1 - squared + 1e-12));
}

/** What each voice gains. */
async function gainsOf(noise: string, snrDb: number): Promise<number[]> {
  const gains: number[] = [];
  for (const clean of spoken.values()) {
    const noisy = withNoise(clean, noise, { snrDb });
    gains.push(siSdr(clean, await denoise(noisy)) - siSdr(clean, noisy));
  }
  return gains;
}

describe("isolation of clean speech", () => {
  it.each(VOICES)("voice %s: keeps at least 24 dB, at its level", async (voice) => {
    const clean = spoken.get(voice) as Int16Array;
    const after = await denoise(clean);
    expect(siSdr(clean, after)).toBeGreaterThan(24);
    expect(Math.abs(20 * Math.log10(levelOf(after) / levelOf(clean)))).toBeLessThan(0.5);
  });
});

describe("isolation of clean speech whose pitch does not move", () => {
  it("keeps it: it is not taken for a tone", async () => {
    await using client = await startClient();
    const path = `/v1/text-to-speech/${VOICE}?output_format=pcm_48000`;
    const body = { text: `[deadpan] ${TEXT}`, model_id: "eleven_v3", seed: 1 };
    const clean = new Int16Array(new Uint8Array((await client.post(path, body)).body).buffer);
    expect(siSdr(clean, await denoise(clean))).toBeGreaterThan(24);
  });
});

describe("isolation of noisy speech", () => {
  // What the ideal Wiener gain of the same windows would reach is in docs/service.md: at 10 dB of pink noise about 8 dB.
  // Hum itself is subtracted: what is left of "hum" is its pink noise.
  it.each([
    ["white", 0, 11],
    ["white", 5, 9.5],
    ["white", 10, 8.6],
    ["pink", 0, 8.3],
    ["pink", 5, 6.95],
    ["pink", 10, 5.75],
    ["bare hum", 0, 17],
    ["bare hum", 5, 18],
    ["bare hum", 10, 15],
    ["hum", 0, 9],
    ["hum", 5, 7.8],
    ["hum", 10, 6.8],
    ["street", 0, 8.3],
    ["street", 5, 7.2],
    ["street", 10, 7.4],
  ])("%s noise of %d dB: gains %d dB", async (noise, snrDb, gainDb) => {
    const gains = await gainsOf(noise, snrDb);
    const mean = gains.reduce((sum, gain) => sum + gain, 0) / gains.length;
    expect(mean).toBeGreaterThan(gainDb);
    expect(Math.min(...gains)).toBeGreaterThan(gainDb - 2);
  });

  it("noise that begins in the middle is taken out from there on", async () => {
    const clean = spoken.get(VOICE) as Int16Array;
    const noisy = withNoise(clean, "white", { snrDb: 5, fromSeconds: 3 });
    const after = await denoise(noisy);
    const from = 3 * RATE;
    expect(siSdr(clean, after, from) - siSdr(clean, noisy, from)).toBeGreaterThan(8);
  });

  it("hum that begins in the middle is taken out from there on, and hum of a long recording at its end, too", async () => {
    const clean = spoken.get(VOICE) as Int16Array;
    const noisy = withNoise(concatPcm([clean, clean, clean]), "bare hum", { snrDb: 5, fromSeconds: 5 });
    const after = await denoise(noisy);
    const whole = concatPcm([clean, clean, clean]);
    for (const from of [7 * RATE, whole.length - 2 * RATE]) {
      expect(siSdr(whole, after, from) - siSdr(whole, noisy, from)).toBeGreaterThan(12);
    }
    expect(siSdr(clean.subarray(0, 3 * RATE), after.subarray(0, 3 * RATE))).toBeGreaterThan(22);
  });

  it("is the same whatever the pieces, over many blocks", async () => {
    const clean = spoken.get(VOICE) as Int16Array;
    const noisy = concatPcm([
      withNoise(clean, "street", { snrDb: 5 }),
      withNoise(clean, "white", { snrDb: 5 }),
    ]);
    const denoiser = await createDenoiser();
    const parts: Int16Array[] = [];
    for (let at = 0; at < noisy.length; at += 3777) parts.push(denoiser.push(noisy.subarray(at, at + 3777)));
    const pieces = concatPcm([...parts, denoiser.flush()]);
    denoiser.close();
    const whole = await denoise(noisy);
    expect(pieces.length).toBe(noisy.length);
    expect(pieces.every((sample, at) => sample === whole[at])).toBe(true);
    // The second half is as clean as it would be alone.
    const half = pieces.subarray(clean.length);
    expect(siSdr(clean, half) - siSdr(clean, noisy.subarray(clean.length))).toBeGreaterThan(8);
  });
});
