/**
 * Laughs, sighs and other sounds of breath: noise in the band of a mouth's shape, in bursts. No voice is in them.
 * The same seed gives the same samples.
 */
import { Filter, glide, SAMPLE_RATE } from "../../sound/dsp.ts";
import { Random } from "../../sound/random.ts";

interface Breath {
  readonly bursts: number;
  /** From one burst to the next, and how long each is. */
  readonly everyMs: number;
  readonly burstMs: number;
  /** Middle of the band when it begins and when it ends, Hz. */
  readonly fromHz: number;
  readonly toHz: number;
  /** Share of a burst in which it rises, 0-1. */
  readonly rise: number;
  /** Peak of the first burst, full scale 1; the last one of several is half as loud. */
  readonly level: number;
}

const BREATHS = {
  laugh: { bursts: 5, everyMs: 190, burstMs: 140, fromHz: 1100, toHz: 800, rise: 0.15, level: 0.3 },
  giggle: { bursts: 7, everyMs: 125, burstMs: 90, fromHz: 1900, toHz: 1500, rise: 0.15, level: 0.25 },
  chuckle: { bursts: 3, everyMs: 210, burstMs: 150, fromHz: 700, toHz: 550, rise: 0.15, level: 0.25 },
  sigh: { bursts: 1, everyMs: 900, burstMs: 900, fromHz: 1400, toHz: 500, rise: 0.25, level: 0.2 },
  gasp: { bursts: 1, everyMs: 280, burstMs: 280, fromHz: 1200, toHz: 2400, rise: 0.6, level: 0.25 },
  inhale: { bursts: 1, everyMs: 600, burstMs: 600, fromHz: 900, toHz: 1800, rise: 0.7, level: 0.15 },
  exhale: { bursts: 1, everyMs: 700, burstMs: 700, fromHz: 1200, toHz: 700, rise: 0.2, level: 0.18 },
  cough: { bursts: 2, everyMs: 320, burstMs: 180, fromHz: 900, toHz: 600, rise: 0.04, level: 0.5 },
  throat: { bursts: 2, everyMs: 260, burstMs: 200, fromHz: 450, toHz: 380, rise: 0.1, level: 0.35 },
  snort: { bursts: 1, everyMs: 260, burstMs: 260, fromHz: 500, toHz: 900, rise: 0.3, level: 0.3 },
  sniff: { bursts: 2, everyMs: 280, burstMs: 160, fromHz: 2600, toHz: 3200, rise: 0.6, level: 0.2 },
  sob: { bursts: 3, everyMs: 330, burstMs: 260, fromHz: 1000, toHz: 700, rise: 0.5, level: 0.25 },
  yawn: { bursts: 1, everyMs: 1500, burstMs: 1500, fromHz: 1100, toHz: 450, rise: 0.4, level: 0.18 },
  gulp: { bursts: 1, everyMs: 130, burstMs: 130, fromHz: 350, toHz: 250, rise: 0.1, level: 0.3 },
} as const satisfies Readonly<Record<string, Breath>>;

export type BreathName = keyof typeof BREATHS;

/** Silence behind the sound. */
const REST_MS = 120;
/** Width of the band. */
const Q = 1.2;
/** What the band leaves of noise that goes from -1 to 1, made up for. */
const BAND_GAIN = 3;

/** Samples of the sound, 16 bit; `sampleRate` divides SAMPLE_RATE of sound/dsp.ts. */
export function breathSamples(
  name: BreathName,
  { sampleRate, seed }: { readonly sampleRate: number; readonly seed: number },
): Int16Array {
  const breath: Breath = BREATHS[name];
  const step = Math.round(SAMPLE_RATE / sampleRate);
  const samplesOf = (ms: number) => Math.round((ms / 1000) * sampleRate);
  const made = new Int16Array(samplesOf(breath.everyMs * breath.bursts + REST_MS));
  const random = new Random(seed).fork(name);
  for (let burst = 0; burst < breath.bursts; burst++) {
    const from = samplesOf(breath.everyMs * burst);
    const length = samplesOf(breath.burstMs);
    const level = breath.level * (1 - (0.5 * burst) / Math.max(1, breath.bursts - 1));
    const hz = glide(breath.fromHz, breath.toHz, breath.burstMs / 1000);
    const band = new Filter();
    for (let at = 0; at < length; at++) {
      let sum = 0;
      for (let part = 0; part < step; part++) sum += band.tuneBandPass(hz(), Q).run(random.signed());
      const value = ((BAND_GAIN * sum) / step) * level * envelope(at / length, breath.rise);
      made[from + at] = Math.round(32_767 * Math.min(1, Math.max(-1, value)));
    }
  }
  return made;
}

/** At `part` of a burst: up in a straight line, down in a curve. */
function envelope(part: number, rise: number): number {
  return part < rise ? part / rise : ((1 - part) / (1 - rise)) ** 2;
}
