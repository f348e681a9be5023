import { describe, expect, it } from "vitest";
import { Locales } from "../../../../src/service/text/locale.ts";
import { Engine } from "../../../../src/service/voice/engine/engine.ts";
import { VOICES } from "../../../../src/service/voice/engine/voices.ts";
import { VoiceJob } from "../../../../src/service/voice/job.ts";
import { type JobSpec, PLAIN_JOB } from "../../../../src/service/voice/messages.ts";
import { planPieces } from "../../../../src/service/voice/plan/utterance-plan.ts";

const TEXT = "The lamp is on the table. Nobody has put it there.";

function specOf(more: Partial<JobSpec> = {}): JobSpec {
  const input = { text: TEXT, voiceId: "21m00Tcm4TlvDq8ikWAM", languageCode: null };
  return {
    ...PLAIN_JOB,
    inputs: [input, input],
    format: "pcm_16000",
    ...more,
  };
}

const voices = (more: Partial<JobSpec> = {}) =>
  [...planPieces(specOf(more), new Locales())].map(({ voice }) => voice);

/** Of the first input in that seed's way. */
function bytesOf(engine: Engine, seed: number | undefined): number {
  let bytes = 0;
  const job = new VoiceJob({
    spec: specOf({ seed, inputs: specOf().inputs.slice(0, 1) }),
    engine,
    locales: new Locales(),
    encoder: {
      push: (pcm) => new Uint8Array(pcm.byteLength),
      flush: () => new Uint8Array(0),
      close: () => undefined,
    },
    isCancelled: () => false,
    emit: (chunk) => {
      bytes += chunk.audio.length;
    },
  });
  while (job.step());
  job.close();
  return bytes;
}

describe("stability and style", () => {
  it.each(VOICES.map(({ id, name }) => [name, id]))(
    "each step moves the pitch of %s further, up to both extremes",
    (_, voiceId) => {
      const inputs = [{ text: "Yes.", voiceId, languageCode: null }];
      const rangeAt = (more: Partial<JobSpec>) => voices({ inputs, ...more })[0]?.range ?? 0;
      const styles = [0, 0.25, 0.5, 0.75, 1];
      const steps = [
        [1, 0.75, 0.5, 0.25, 0].map((stability) => rangeAt({ stability, style: 0 })),
        [1, 0.75, 0.5, 0.25, 0].map((stability) => rangeAt({ stability, style: 1 })),
        styles.map((style) => rangeAt({ stability: 0.5, style })),
        styles.map((style) => rangeAt({ stability: 0, style })),
      ];
      for (const ranges of steps) {
        expect(ranges.toSorted((a, b) => a - b)).toEqual(ranges);
        expect(new Set(ranges).size).toBe(5);
        expect(Math.max(...ranges)).toBeLessThanOrEqual(99);
      }
    },
  );
});

describe("a seed", () => {
  it("asks for the same each time, and another seed or none for something else", () => {
    const asked = (seed?: number) => JSON.stringify(voices({ seed }));
    expect(asked(7)).toBe(asked(7));
    expect(new Set([asked(7), asked(8), asked(0), asked(4_294_967_295), asked()]).size).toBe(5);
  });

  it("is heard: what is asked to be said faster is over sooner, to within the engine's own 1%", async () => {
    const engine = await Engine.load();
    const seeds = Array.from({ length: 40 }, (_, seed) => ({ seed, rate: voices({ seed })[0]?.rate ?? 0 }));
    seeds.sort((a, b) => a.rate - b.rate);
    const [slow, fast] = [seeds.at(0)?.seed, seeds.at(-1)?.seed];
    const [slowBytes, again, fastBytes] = [slow, slow, fast].map((seed) => bytesOf(engine, seed));
    expect(Math.abs((again ?? 0) / (slowBytes ?? 0) - 1)).toBeLessThan(0.01);
    expect(fastBytes).toBeLessThan(0.98 * (slowBytes ?? 0));
  });

  it("changes a voice a little, each piece of it in its own way", () => {
    const plains = voices();
    const seen = new Set<string>();
    for (let seed = 0; seed < 50; seed += 1) {
      const drawn = voices({ seed });
      expect(drawn).toHaveLength(4);
      seen.add(JSON.stringify(drawn));
      for (const [index, { name, pitch, rate, range }] of drawn.entries()) {
        const plain = plains[index];
        if (plain === undefined) throw new Error("Nothing is said");
        expect(name).toBe(plain.name);
        expect(Math.abs(pitch - plain.pitch)).toBeLessThanOrEqual(2);
        expect(Math.abs(rate / plain.rate - 1)).toBeLessThan(0.035);
        expect(Math.abs(range - plain.range)).toBeLessThanOrEqual(0.12 * plain.range + 0.5);
      }
    }
    expect(seen.size).toBe(50);
  });

  it("changes more at a low stability, and never leaves what the engine has", () => {
    const spread = (stability: number) => {
      const rates = Array.from({ length: 40 }, (_, seed) => voices({ seed, stability }))
        .flat()
        .map(({ rate }) => rate);
      return Math.max(...rates) - Math.min(...rates);
    };
    expect(spread(0)).toBeGreaterThan(1.5 * spread(1));
    for (const pitch of [0, 100]) {
      const [input] = specOf().inputs;
      if (input === undefined) throw new Error("Nothing to say");
      const inputs = [{ ...input, sound: { base: input.voiceId, pitch } }];
      for (let seed = 0; seed < 20; seed += 1) {
        for (const voice of voices({ seed, inputs })) {
          expect(voice.pitch).toBeGreaterThanOrEqual(0);
          expect(voice.pitch).toBeLessThanOrEqual(100);
        }
      }
    }
  });
});
