/**
 * Sounds that are computed: tones, rings, comfort noise. Each sample follows from its place alone, so that a sound has no memory,
 * may begin anywhere and goes on for as long as it is asked for.
 */

export type GeneratedSound =
  | {
      readonly kind: "tone";
      /** One frequency, or two at once. */
      readonly hertz: readonly number[];
      /** Heard and silent in turns; null: always heard. */
      readonly cadence: { readonly onMs: number; readonly offMs: number } | null;
      readonly dbfs: number;
    }
  | { readonly kind: "noise"; readonly dbfs: number };

/** What a caller hears in North America while it rings at the other end. */
export const RING = { hertz: [440, 480], cadence: { onMs: 2000, offMs: 4000 } } as const;

/** A tone that begins and ends at once clicks. */
const EDGE_MS = 5;
/** Pink: every octave is as strong, each held twice as long as the one above. */
const OCTAVES = 10;
/** The power of a sine of full scale is 0 dB (AES17). */
const FULL_SINE_RMS = Math.SQRT1_2;

/** `count` samples from `from` on, 1 is full scale. Frequencies that the rate can't have are left out. */
export function generatedSamples(
  sound: GeneratedSound,
  { from, count, rate }: { readonly from: number; readonly count: number; readonly rate: number },
): Float64Array {
  const level = FULL_SINE_RMS * 10 ** (sound.dbfs / 20);
  if (sound.kind === "noise") {
    // Each octave's numbers are spread evenly: their power is 1/3.
    const gain = level * Math.sqrt(3 / OCTAVES);
    return Float64Array.from({ length: count }, (_, at) => gain * pink(from + at));
  }
  const { hertz, cadence } = sound;
  const gain = (level * Math.SQRT2) / Math.sqrt(hertz.length);
  const turns = hertz.filter((hz) => hz < rate / 2).map((hz) => (2 * Math.PI * hz) / rate);
  return Float64Array.from({ length: count }, (_, at) => {
    const place = from + at;
    const edge = cadence === null ? 1 : loudnessAt((place / rate) * 1000, cadence);
    return edge === 0 ? 0 : gain * edge * turns.reduce((sum, turn) => sum + Math.sin(turn * place), 0);
  });
}

function loudnessAt(ms: number, { onMs, offMs }: { readonly onMs: number; readonly offMs: number }): number {
  const atMs = ms % (onMs + offMs);
  if (atMs >= onMs) return 0;
  const edge = Math.min(1, atMs / EDGE_MS, (onMs - atMs) / EDGE_MS);
  return 0.5 - 0.5 * Math.cos(Math.PI * edge);
}

function pink(place: number): number {
  let sum = 0;
  for (let octave = 0; octave < OCTAVES; octave += 1) sum += random(Math.floor(place / 2 ** octave), octave);
  return sum;
}

/** The same for the same two numbers, between -1 and 1. */
function random(place: number, octave: number): number {
  let mixed = Math.imul(place ^ (octave * 0x9e3779b1), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0xc2b2ae35);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0x27d4eb2f);
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 31 - 1;
}
