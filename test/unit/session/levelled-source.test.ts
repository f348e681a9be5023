import { describe, expect, it } from "vitest";
import { decodeSamples, encodeSamples } from "../../../src/audio/codecs/samples.ts";
import { Leveller } from "../../../src/audio/loudness/leveller.ts";
import { LoudnessMeter } from "../../../src/audio/loudness/loudness-meter.ts";
import { Source } from "../../../src/session/source.ts";
import { TICKS_PER_MS } from "../../../src/timing/ticks.ts";
import { measureLoudness } from "../../kit/loudness-meter.ts";
import { syntheticSpeech } from "../../kit/synthetic-speech.ts";

describe("Source with a loudness", () => {
  it.each([
    ["ulaw_8000", "ulaw"],
    ["alaw_8000", "alaw"],
    ["pcm_8000", "pcm"],
  ] as const)("decodes %s, makes it as loud as asked for, and encodes it again", (format, codec) => {
    const speech = syntheticSpeech(8000, 6, 0.2);
    const meter = new LoudnessMeter(8000);
    meter.push(speech);
    const leveller = new Leveller({ sampleRate: 8000, targetLufs: -20, known: meter.loudness });
    const source = new Source(format, null, leveller);
    source.push(encodeSamples(codec, speech));
    const pieces: Uint8Array[] = [];
    for (;;) {
      const slice = source.take(20 * TICKS_PER_MS);
      if (slice === undefined) break;
      for (const bytes of slice.raw()) pieces.push(Uint8Array.from(bytes));
      expect(slice.pcm()).toEqual(decodeSamples(codec, Buffer.concat(slice.raw())));
    }
    const samples = decodeSamples(codec, Buffer.concat(pieces));
    expect(samples).toHaveLength(speech.length);
    const { lufs, truePeakDb } = measureLoudness(samples, 8000);
    expect(Math.abs(lufs + 20)).toBeLessThan(0.5);
    expect(truePeakDb).toBeLessThanOrEqual(-1);
  });
});
