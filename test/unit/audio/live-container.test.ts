import { MPEGDecoder } from "mpg123-decoder";
import { describe, expect, it } from "vitest";
import { concatBytes } from "../../../src/audio/bytes.ts";
import { bytesOf } from "../../../src/audio/codecs/pcm.ts";
import {
  CONTAINERS,
  createLiveContainer,
  type LiveContainer,
} from "../../../src/audio/containers/live-container.ts";
import { UNKNOWN_DATA_BYTES, wavHeader } from "../../../src/audio/containers/wav.ts";
import { peakHz, tone } from "./helpers.ts";

/** Frames of 20 ms of a tone at 24 kHz, as views that begin at odd bytes. */
function frames(count: number): Uint8Array[] {
  const pcm = bytesOf(tone({ hz: 440, rate: 24_000, samples: count * 480 }));
  const shifted = new Uint8Array(pcm.length + 1);
  shifted.set(pcm, 1);
  return Array.from({ length: count }, (_, at) => shifted.subarray(1 + at * 960, 1 + (at + 1) * 960));
}

async function decodeMp3(bytes: Uint8Array): Promise<{ samples: Float32Array; rate: number }> {
  const decoder = new MPEGDecoder();
  await decoder.ready;
  const { channelData, sampleRate } = decoder.decode(bytes);
  decoder.free();
  return { samples: channelData[0] ?? new Float32Array(0), rate: sampleRate };
}

const emptyOf = (container: LiveContainer): number =>
  container.missing(7).length + container.settle().length + container.finish().length;

describe("createLiveContainer()", () => {
  it("wav: a header of unknown length, the frames as they are, zeros for silence and nothing for what is missing", async () => {
    const wav = await createLiveContainer({ name: "wav", format: "pcm_24000", frameMs: 20 });
    expect(wav.start()).toEqual(wavHeader({ sampleRate: 24_000, dataBytes: UNKNOWN_DATA_BYTES }));
    expect(wav.frames(frames(3))).toEqual(concatBytes(frames(3)));
    expect(wav.silence(2)).toEqual(new Uint8Array(1920));
    expect(emptyOf(wav)).toBe(0);
  });

  it("pcm and ulaw: the frames alone, and silence in their own code", async () => {
    const pcm = await createLiveContainer({ name: "pcm", format: "pcm_8000", frameMs: 20 });
    const ulaw = await createLiveContainer({ name: "ulaw", format: "ulaw_8000", frameMs: 20 });
    for (const [container, silence] of [
      [pcm, new Uint8Array(320)],
      [ulaw, new Uint8Array(160).fill(0xff)],
    ] as const) {
      expect(container.start()).toHaveLength(0);
      expect(container.frames([new Uint8Array([1, 2]), new Uint8Array([3])])).toEqual(
        new Uint8Array([1, 2, 3]),
      );
      expect(container.silence(1)).toEqual(silence);
      expect(emptyOf(container)).toBe(0);
    }
  });

  it("mp3: settle() gives out all the sound that went in, so that a last word is not held back", async () => {
    const mp3 = await createLiveContainer({ name: "mp3", format: "pcm_24000", frameMs: 20 });
    const before = concatBytes([mp3.start(), mp3.frames(frames(30)), mp3.frames(frames(20))]);
    const held = await decodeMp3(before);
    expect(held.samples.length).toBeLessThan(24_000);
    const settled = await decodeMp3(concatBytes([before, mp3.settle()]));
    expect(settled.rate).toBe(24_000);
    const sound = settled.samples.findLastIndex((sample) => Math.abs(sample) > 0.1);
    expect(sound).toBeGreaterThanOrEqual(24_000 - 20);
    expect(peakHz(settled.samples, 24_000)).toBe(440);
    expect((await decodeMp3(concatBytes([mp3.silence(50), mp3.finish()]))).samples.length).toBeGreaterThan(0);
  });

  it.each([
    ["pcm_22050", 22_050],
    ["pcm_24000", 24_000],
    ["pcm_44100", 44_100],
  ] as const)(
    "mp3 of %s: a decoder plays the first frame behind the opening silence and the delay",
    async (format, rate) => {
      const mp3 = await createLiveContainer({ name: "mp3", format, frameMs: 20 });
      const { bytes, silenceMs } = mp3.opening();
      expect(bytes.length).toBeGreaterThan(0);
      const sweep = Int16Array.from({ length: rate / 5 }, (_, at) => {
        const seconds = at / rate;
        return 8000 * Math.sin(2 * Math.PI * (300 + 800 * seconds) * seconds);
      });
      const { samples } = await decodeMp3(concatBytes([bytes, mp3.frames([bytesOf(sweep)]), mp3.settle()]));
      const likeness = (lag: number): number =>
        sweep.reduce((sum, sample, at) => sum + sample * (samples[lag + at] ?? 0), 0);
      const lags = Array.from({ length: 300 }, (_, index) => 4400 + index);
      const found = lags.reduce((best, lag) => (likeness(lag) > likeness(best) ? lag : best));
      expect(found).toBe(Math.round(((silenceMs + mp3.delayMs) * rate) / 1000));
    },
  );

  it.each(CONTAINERS)("%s: a stream in which nothing was said can be ended", async (name) => {
    const format = name === "ogg" ? "opus_48000" : name === "ulaw" ? "ulaw_8000" : "pcm_24000";
    const container = await createLiveContainer({ name, format, frameMs: 20 });
    container.start();
    expect(container.frames([])).toHaveLength(0);
    expect(() => container.finish()).not.toThrow();
  });

  it("mp3: rejects a rate that MP3 streams do not have", async () => {
    await expect(createLiveContainer({ name: "mp3", format: "pcm_8000", frameMs: 20 })).rejects.toThrow(
      RangeError,
    );
  });
});
