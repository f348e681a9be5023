/** What isolation does to speech, measured against the clean speech: scale-invariant signal to distortion ratio, dB. */
import { beforeAll, describe, expect, it, vi } from "vitest";
import { createDenoiser } from "../../../../src/service/media/denoiser.ts";
import {
  denoise,
  ISOLATION_TEXT,
  isolationGain,
  isolationSpeech,
  siSdr,
  withNoise,
} from "../../../kit/isolation.ts";
import { levelOf } from "../../../kit/signals.ts";
import { OTHER_VOICE, startClient, VOICE } from "../../../service/client.ts";
import { concatPcm } from "../../audio/helpers.ts";
import { RATE } from "./helpers.ts";

// Half a minute of sound is cleaned, by some tests twice: a busy machine takes its time.
vi.setConfig({ testTimeout: 90_000 });

const VOICES = [VOICE, OTHER_VOICE] as const;
const spoken = new Map<string, Int16Array>();

beforeAll(async () => {
  await using client = await startClient();
  for (const voice of VOICES) spoken.set(voice, await isolationSpeech(client.service.url, voice));
});

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
    const body = { text: `[deadpan] ${ISOLATION_TEXT}`, model_id: "eleven_v3", seed: 1 };
    const clean = new Int16Array(new Uint8Array((await client.post(path, body)).body).buffer);
    expect(siSdr(clean, await denoise(clean))).toBeGreaterThan(24);
  });
});

describe("isolation of noisy speech", () => {
  // What the ideal Wiener gain of the same windows would reach is in docs/service.md: at 10 dB of pink noise about 8 dB.
  // Hum itself is subtracted: what is left of "hum and pink" is its pink noise.
  it.each([
    ["white", 0, 11],
    ["white", 10, 8.6],
    ["pink", 0, 8.3],
    ["pink", 10, 5.75],
    ["bare hum", 0, 17],
    ["bare hum", 10, 15],
    ["hum and pink", 0, 9],
    ["hum and pink", 10, 6.8],
    ["street", 0, 8.3],
    ["street", 10, 7.4],
  ] as const)("%s noise of %d dB: gains %d dB", async (noise, snrDb, gainDb) => {
    const gains: number[] = [];
    for (const clean of spoken.values()) gains.push(await isolationGain(clean, noise, snrDb));
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
    // More than three blocks of 4.1 s.
    const whole = concatPcm([clean, clean]);
    const noisy = withNoise(whole, "bare hum", { snrDb: 5, fromSeconds: 5 });
    const after = await denoise(noisy);
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
