/** Instruments: in tune, each with the attack, the partials and the end that make it what it is. */
import { describe, expect, it } from "vitest";
import { centroid, envelope, make, onsets, partial, pitchHz, RATE, rms, share } from "./analysis.ts";

const decibels = (ratio: number) => 20 * Math.log10(ratio + 1e-9);
const note = (name: string) => make(`a single ${name} note`);

/** Energy of the partials 1 to 6, decibels under the first. */
function partials(samples: Int16Array, hz: number): number[] {
  const first = partial(samples, hz, 0.05, 0.4);
  return [1, 2, 3, 4, 5, 6].map((order) => 10 * Math.log10(partial(samples, hz * order, 0.05, 0.4) / first));
}

/** Seconds to 80 % of the loudest 20 ms. */
function riseSeconds(samples: Int16Array): number {
  const levels = envelope(samples, 0.02);
  return levels.findIndex((level) => level > 0.8 * Math.max(...levels)) * 0.02;
}

/** What is lost from 0.1 s to 0.4 s. */
function fallDb(samples: Int16Array): number {
  return decibels(rms(samples, 0.1 * RATE, 0.12 * RATE) / rms(samples, 0.4 * RATE, 0.42 * RATE));
}

/** The phase of a tone in 20 ms, radians. */
function phaseAt(samples: Int16Array, hz: number, from: number): number {
  const start = Math.round(from);
  let [re, im] = [0, 0];
  for (let at = start; at < start + RATE / 50; at += 1) {
    const angle = (2 * Math.PI * hz * at) / RATE;
    re += (samples[at] ?? 0) * Math.cos(angle);
    im -= (samples[at] ?? 0) * Math.sin(angle);
  }
  return Math.atan2(im, re);
}

describe("an instrument", () => {
  it.each([
    ["piano", 261.63],
    ["guitar", 196],
    ["harp", 392],
    ["xylophone", 1046.5],
    ["violin", 440],
    ["cello", 130.81],
    ["flute", 523.25],
    ["clarinet", 293.66],
    ["trumpet", 349.23],
    // The lowest pipe of a chord on 196 Hz.
    ["organ", 98],
  ])("%s: the first note is %d Hz", (name, hz) => {
    expect(Math.abs(pitchHz(note(name), 0.12) / hz - 1)).toBeLessThan(0.01);
  });

  it.each(["piano", "guitar", "xylophone"])(
    "%s: struck or plucked, so it begins at once and dies away",
    (name) => {
      expect(riseSeconds(note(name))).toBeLessThanOrEqual(0.02);
      expect(fallDb(note(name))).toBeGreaterThan(4);
    },
  );

  it.each(["violin", "cello", "flute", "clarinet", "trumpet", "organ"])(
    "%s: rises, and holds its note",
    (name) => {
      expect(riseSeconds(note(name))).toBeGreaterThan(0.03);
      expect(Math.abs(fallDb(note(name)))).toBeLessThan(2);
    },
  );

  it("plays a chord up and down, in tune also at a low prompt_influence", () => {
    const ratios = (influence: number) => {
      const guitar = make("guitar", { influence });
      const heard = onsets(guitar, 0.1).map((at) => pitchHz(guitar, at + 0.07, { low: 150 }));
      return [(heard[1] ?? 0) / (heard[0] ?? 1), (heard[2] ?? 0) / (heard[0] ?? 1)];
    };
    for (const influence of [1, 0.6]) {
      const [third = 0, fifth = 0] = ratios(influence);
      expect(Math.abs(third / 2 ** (4 / 12) - 1)).toBeLessThan(0.012);
      expect(Math.abs(fifth / 2 ** (7 / 12) - 1)).toBeLessThan(0.012);
    }
  });

  it("has its own partials: a clarinet's are odd, a flute has hardly any, a violin all", () => {
    const clarinet = partials(note("clarinet"), 293.66);
    for (const even of [1, 3, 5]) expect(clarinet[even]).toBeLessThan(-40);
    for (const odd of [2, 4]) expect(clarinet[odd]).toBeGreaterThan(-20);
    expect(share(note("flute"), 500, 550)).toBeGreaterThan(0.9);
    for (const level of partials(note("violin"), 440)) expect(level).toBeGreaterThan(-25);
    expect(share(note("xylophone"), 1000, 1100)).toBeGreaterThan(0.8);
  });

  it("trumpet: opens as its note begins; piano: high partials go first", () => {
    const trumpet = note("trumpet");
    expect(centroid(trumpet, 0.15, 0.3)).toBeGreaterThan(centroid(trumpet, 0, 0.03) * 1.2);
    const piano = note("piano");
    expect(centroid(piano, 0, 0.1)).toBeGreaterThan(centroid(piano, 1, 1.4) * 1.02);
  });

  it("violin: the pitch trembles five to six times a second", () => {
    const violin = make("long violin note");
    // How far each 20 ms are off 440 Hz: the turn of their phase against it.
    const phases = Array.from({ length: 35 }, (_, block) =>
      phaseAt(violin, 440, (0.35 + block * 0.02) * RATE),
    );
    const turns = phases.slice(1).map((phase, at) => Math.sin(phase - (phases[at] ?? 0)));
    const crossings = turns.filter((turn, at) => at > 0 && turn > 0 && (turns[at - 1] ?? 0) <= 0).length;
    expect(Math.max(...turns) - Math.min(...turns)).toBeGreaterThan(0.2);
    expect(crossings).toBeGreaterThanOrEqual(3);
    expect(crossings).toBeLessThanOrEqual(5);
  });

  it("organ: three keys together, at one level", () => {
    const organ = note("organ");
    const keys = [196, 246.94, 293.66].map((hz) => partial(organ, hz));
    const between = [332, 345].map((hz) => partial(organ, hz));
    expect(Math.min(...keys)).toBeGreaterThan(Math.max(...between) * 30);
    const levels = envelope(organ, 0.2).slice(1, 8);
    expect(decibels(Math.max(...levels) / Math.min(...levels))).toBeLessThan(3);
  });

  it("drums: eighths of a quarter of a second, kick, hi-hat, snare, hi-hat", () => {
    const drums = make("drums", { durationSeconds: 4 });
    const beat = (index: number) => drums.slice(index * 0.25 * RATE, (index * 0.25 + 0.2) * RATE);
    for (const bar of [0, 4, 8, 12]) {
      expect(share(beat(bar), 20, 200)).toBeGreaterThan(0.8);
      expect(share(beat(bar + 1), 3000, 20_000)).toBeGreaterThan(0.5);
      expect(share(beat(bar + 2), 150, 20_000)).toBeGreaterThan(0.8);
      expect(share(beat(bar + 2), 1500, 20_000)).toBeGreaterThan(0.3);
    }
  });
});
