/** What blows of all kinds are put together from. */
import { decay, type Filter, glide, type Mode, type Source, samplesIn, sine, swell } from "../dsp.ts";
import type { Surface } from "../family.ts";
import type { Random } from "../random.ts";

/** Noise through a band that dies away. */
export function burst(
  random: Random,
  options: { readonly band: Filter; readonly seconds: number; readonly gain: number },
): Source {
  const level = decay(options.seconds);
  return () => options.band.run(random.signed()) * level() * options.gain;
}

/** A tone that falls while it dies away. */
export function thump(fromHz: number, toHz: number, seconds: number, gain: number): Source {
  const falling = glide(fromHz, toHz, seconds * 0.4);
  const level = swell(0.002, seconds);
  const tone = sine();
  return () => tone(falling()) * level() * gain;
}

export function sumOf(sources: readonly Source[]): Source {
  return () => {
    let sum = 0;
    for (const source of sources) sum += source();
    return sum;
  };
}

export function later(seconds: number, source: Source): Source {
  let wait = samplesIn(seconds);
  return () => {
    if (wait <= 0) return source();
    wait -= 1;
    return 0;
  };
}

/** How a struck thing of the material rings. */
export function modesOf(hz: number, surface: Surface | null, gain: number): readonly Mode[] {
  const isMetal = surface === "metal";
  const ratios = isMetal ? [1, 2.32, 4.25, 6.63, 9.38] : [1, 1.72, 2.63, 4.1, 5.3];
  const seconds = isMetal ? 0.9 : 0.11;
  return ratios.map((ratio, index) => ({
    hz: hz * ratio,
    gain: gain / (1 + index * 0.7),
    seconds: seconds / (1 + index * 0.35),
  }));
}
