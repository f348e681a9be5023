/** How loud each moment of a session's audio is, for who looks at its recording. */
import { sampledFormatOf } from "../../audio/codecs/samples.ts";
import { msOfTicks } from "../../timing/ticks.ts";
import type { Slice } from "../source.ts";
import type { Tape } from "./tape.ts";

const STEP_MS = 20;

/** The loudest sample of each 20 ms, in 255ths of full scale. Opus is left out: it would be decoded for nothing else. */
export function tellWave(tape: Tape, slice: Slice, atTicks: number): void {
  if (sampledFormatOf(slice.format) === null) return;
  tape.tell("wave", [msOfTicks(atTicks), peaksOf(slice)], () => undefined);
}

function peaksOf(slice: Slice): readonly number[] {
  const pcm = slice.pcm();
  const step = Math.max(1, Math.round((slice.pcmRate * STEP_MS) / 1000));
  const peaks: number[] = [];
  for (let from = 0; from < pcm.length; from += step) {
    let peak = 0;
    const to = Math.min(pcm.length, from + step);
    for (let at = from; at < to; at += 1) peak = Math.max(peak, Math.abs(pcm[at] ?? 0));
    peaks.push(Math.round((peak * 255) / 32_768));
  }
  return peaks;
}
