import { describe, expect, it } from "vitest";
import { planSound } from "../../../../src/service/sound/plan.ts";
import { renderSound } from "../../../../src/service/sound/render.ts";
import { envelope, make, onsets, RATE, rms, spectrum } from "./analysis.ts";

const PROMPTS = [
  "rain",
  "deep bell",
  "four footsteps on gravel",
  "thunder then soft rain and distant dogs barking in a cave",
  "loud explosion",
  "piano and violin and laughter",
  "drums then a galloping horse",
];
/** -3 dBFS. */
const PEAK = 32_767 * 10 ** (-3 / 20);

function peakOf(samples: Int16Array): number {
  return samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
}

describe("every sound", () => {
  it.each(PROMPTS)(
    "%s: is as long as asked to the sample, at -6 dBFS (loud: -3), without DC, from silence to silence",
    (text) => {
      for (const durationSeconds of [0.5, 1.2345]) {
        const sound = make(text, { durationSeconds, influence: 0.3 });
        expect(sound.length).toBe(Math.round(durationSeconds * RATE));
        const peak = text.startsWith("loud") ? PEAK : PEAK / Math.SQRT2;
        expect(Math.abs(peakOf(sound) - peak)).toBeLessThan(1.5);
        const mean = sound.reduce((sum, sample) => sum + sample, 0) / sound.length;
        expect(Math.abs(mean)).toBeLessThan(80);
        expect(sound[0]).toBe(0);
        expect(sound.at(-1)).toBe(0);
        expect(rms(sound)).toBeGreaterThan(0.01);
      }
    },
  );

  it("is as loud as its words say, also alone and at any influence", { timeout: 60_000 }, () => {
    for (const influence of [0, 0.3, 1]) {
      for (const sound of ["rain", "dog", "piano", "thunder"]) {
        const made = (word: string) => make(`${word} ${sound}`, { durationSeconds: 2, influence });
        const plain = made("");
        const decibels = (word: string) => 20 * Math.log10(rms(made(word)) / rms(plain));
        expect(decibels("quiet")).toBeLessThan(-3);
        expect(decibels("loud")).toBeGreaterThan(2);
        expect(peakOf(made("distant")) / peakOf(plain)).toBeCloseTo(0.45, 2);
        expect(peakOf(made("close")) / peakOf(plain)).toBeCloseTo(1.3, 2);
      }
    }
  });

  it("has its natural length where none is asked: half a second to ten", () => {
    for (const text of [...PROMPTS, "click", "sea, then a gong, then a bell, then wind"]) {
      const { samples } = planSound({ text, durationSeconds: null, influence: 0.3, isLooped: false });
      expect(samples).toBeGreaterThanOrEqual(RATE / 2);
      expect(samples).toBeLessThanOrEqual(10 * RATE);
    }
  });

  it("comes in small blocks, also the longest", () => {
    const plan = planSound({ text: "beep", durationSeconds: 30, influence: 1, isLooped: false });
    let samples = 0;
    for (const block of renderSound(plan)) {
      expect(block.length).toBeLessThanOrEqual(1024);
      samples += block.length;
    }
    expect(samples).toBe(30 * RATE);
  });

  it.each([false, true])(
    "makes few samples from one block to the next, also before the first (loop: %s)",
    (isLooped) => {
      let made = 0;
      const create = () => () => {
        made += 1;
        return Math.sin(made);
      };
      const planned = planSound({ text: "rain", durationSeconds: 2, influence: 1, isLooped });
      const layers = planned.layers.map((layer) => ({
        ...layer,
        family: { kind: "texture" as const, seconds: 1, create },
      }));
      let before = 0;
      for (const block of renderSound({ ...planned, layers })) {
        expect(block.length).toBeLessThanOrEqual(256);
        expect(made - before).toBeLessThanOrEqual(64);
        before = made;
      }
      // Once to find the loudest sample and once to give it; a loop's first quarter of a second comes on top.
      expect(made).toBe(2 * (planned.samples + (isLooped ? RATE / 4 : 0)));
    },
  );

  it("is the same for the same prompt, and another for another", () => {
    const options = { durationSeconds: 0.6, influence: 0.3 };
    for (const text of PROMPTS) expect(make(text, options)).toEqual(make(text, options));
    const many = [...PROMPTS, "rain.", "heavy rain"].map((text) => make(text, options).join());
    expect(new Set(many).size).toBe(many.length);
  });
});

/** Level of each third of an octave, decibels over 35 dB under the loudest. */
function profile(samples: Int16Array): number[] {
  const power = spectrum(samples);
  const bands: number[] = [];
  for (let low = 4; low * 1.26 < power.length; low *= 1.26) {
    let sum = 0;
    for (let bin = Math.floor(low); bin < low * 1.26; bin += 1) sum += power[bin] ?? 0;
    bands.push(sum);
  }
  const loudest = Math.max(...bands);
  return bands.map((band) => Math.max(0, 35 + 10 * Math.log10(band / loudest + 1e-12)));
}

/** 0: alike; 1: nothing in common. */
function distance(a: readonly number[] = [], b: readonly number[] = []): number {
  const off = a.reduce((sum, level, index) => sum + Math.abs(level - (b[index] ?? 0)), 0);
  return (
    off /
    Math.max(
      1,
      [...a, ...b].reduce((sum, level) => sum + level, 0),
    )
  );
}

describe("prompt_influence", () => {
  it("low leads away from the plain layers: in pitch and texture", () => {
    for (const text of ["bell", "beep", "siren"]) {
      const [plain, near, far] = [1, 0.8, 0].map((influence) =>
        profile(make(text, { durationSeconds: 1, influence })),
      );
      expect(distance(plain, near)).toBeLessThan(distance(plain, far));
      expect(distance(plain, far)).toBeGreaterThan(0.08);
    }
  });

  it("low makes the timing of steps uneven", () => {
    const unevenness = (influence: number) => {
      const found = onsets(make("clock", { durationSeconds: 6, influence }), 0.12);
      const gaps = found.slice(1).map((at, index) => at - (found[index] ?? 0));
      const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
      return Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length) / mean;
    };
    expect(unevenness(1)).toBeLessThan(0.02);
    expect(unevenness(0.3)).toBeGreaterThan(0.04);
  });
});

describe("a loop", () => {
  it.each([
    "rain",
    "siren",
    "drone",
    "engine",
    "ocean waves",
    "organ",
    "piano",
    "crying",
    "gallop",
    "laughter",
  ])("of %s joins: no step, no drop of level", (text) => {
    const loop = make(text, { durationSeconds: 2, influence: 0.3, isLooped: true });
    expect(loop.length).toBe(2 * RATE);
    let largest = 0;
    for (let at = 1; at < loop.length; at += 1) {
      largest = Math.max(largest, Math.abs((loop[at] ?? 0) - (loop[at - 1] ?? 0)));
    }
    expect(Math.abs((loop[0] ?? 0) - (loop.at(-1) ?? 0))).toBeLessThanOrEqual(largest);
    const around = Int16Array.from([...loop.slice(-RATE / 20), ...loop.slice(0, RATE / 20)]);
    const inside = envelope(loop, 0.1);
    expect(rms(around)).toBeGreaterThan(Math.min(...inside) / 2);
    expect(rms(around)).toBeLessThan(Math.max(...inside) * 2);
  });

  it("keeps the rhythm over the joint", () => {
    const loop = make("clock", { durationSeconds: 2.2, isLooped: true });
    const found = onsets(Int16Array.from([...loop, ...loop]));
    const gaps = found.slice(1).map((at, index) => at - (found[index] ?? 0));
    expect(gaps.length).toBeGreaterThan(5);
    for (const gap of gaps) expect(Math.abs(gap - 2.2 / 4)).toBeLessThan(0.02);
  });

  it("does not fade at its ends", () => {
    const [loop, once] = [true, false].map((isLooped) => make("siren", { durationSeconds: 1, isLooped }));
    expect(rms(loop ?? [], 0, 100)).toBeGreaterThan(rms(once ?? [], 0, 100) * 2);
  });
});
