/** What noise removal leaves of clean speech, and what it gains on noisy speech: src/service/media/denoiser.ts. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RateConverter } from "../../../../src/audio/resample/rate-converter.ts";
import { createDenoiser } from "../../../../src/service/media/denoiser.ts";
import { type Client, OTHER_VOICE, startClient, VOICE } from "../../../service/client.ts";
import { concatPcm } from "../../audio/helpers.ts";
import { correlation, levelOf, RATE, randomNumbers } from "./helpers.ts";

const TEXT = "She sells sea shells by the shore, and the sea is calm today. Please pack your things tonight.";

/** A built-in voice at 48 kHz, over HTTP. */
async function speech(client: Client, voice: string): Promise<Int16Array> {
  const { body } = await client.post(`/v1/text-to-speech/${voice}?output_format=pcm_44100`, { text: TEXT });
  const converter = new RateConverter(RATE);
  return concatPcm([
    ...converter.push(new Int16Array(new Uint8Array(body).buffer), 44_100),
    converter.flush(),
  ]);
}

/** White noise. */
function withNoise(clean: Int16Array, snrDb: number): Int16Array {
  const random = randomNumbers(11);
  const amplitude = levelOf(clean) * 10 ** (-snrDb / 20) * Math.sqrt(3);
  return clean.map((sample) => sample + Math.round((random() * 2 - 1) * amplitude));
}

async function denoise(pcm: Int16Array): Promise<Int16Array> {
  const denoiser = await createDenoiser();
  try {
    return concatPcm([denoiser.push(pcm), denoiser.flush()]);
  } finally {
    denoiser.close();
  }
}

/** Scale-invariant signal to distortion ratio, dB. */
function siSdr(clean: Int16Array, other: Int16Array): number {
  const squared = correlation(clean, other) ** 2;
  return 10 * Math.log10(squared / (1 - squared + 1e-12));
}

let client: Client;
beforeAll(async () => {
  client = await startClient();
});
afterAll(async () => {
  await client[Symbol.asyncDispose]();
});

describe.each([VOICE, OTHER_VOICE])("noise removal, voice %s", (voice) => {
  let clean: Int16Array;
  beforeAll(async () => {
    clean = await speech(client, voice);
  });

  it("clean speech: at least 20 dB SI-SDR, at its level", async () => {
    const after = await denoise(clean);
    expect(siSdr(clean, after)).toBeGreaterThan(20);
    expect(Math.abs(20 * Math.log10(levelOf(after) / levelOf(clean)))).toBeLessThan(0.5);
  });

  it.each([
    [0, 8],
    [5, 6.5],
    [10, 3.5],
  ])("speech in white noise of %d dB: %d dB SI-SDR more", async (snrDb, gainDb) => {
    const noisy = withNoise(clean, snrDb);
    expect(siSdr(clean, await denoise(noisy)) - siSdr(clean, noisy)).toBeGreaterThan(gainDb);
  });
});
