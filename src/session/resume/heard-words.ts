/** When the words of a text are heard in audio that came without times: found in its pauses and its sound. */
import { PauseFinder } from "../../audio/pause-finder.ts";
import { SoundMeter } from "../../audio/sound-meter.ts";
import type { WordSpan } from "../../text/unspaced.ts";
import { SegmentTiming } from "../../timing/segment-timing.ts";
import { TICKS_PER_SECOND } from "../../timing/ticks.ts";
import type { KeptAudio } from "./audio-cut.ts";

/** Ticks of the timeline. */
export interface HeardWord {
  readonly startTicks: number;
  readonly endTicks: number;
}

export interface Heard {
  /** All that is said in the audio, and nothing else. */
  readonly text: string;
  /** Of the text, rising. */
  readonly words: readonly WordSpan[];
  readonly audio: KeptAudio;
  readonly endTicks: number;
  /** The upstream's. */
  readonly format: string;
}

/** One for each word. */
export function timesOfWords({ text, words, audio, endTicks, format }: Heard): readonly HeardWord[] {
  const audioSeconds = (endTicks - audio.startTicks) / TICKS_PER_SECOND;
  const timing = new SegmentTiming({ text, textStart: 0 });
  const pauses = new PauseFinder(format).push(audio.bytes);
  timing.push(null, null, { audioSeconds, pauses, sound: new SoundMeter(format).push(audio.bytes) });
  const timed = timing.finish(audioSeconds);
  const ticksAt = (seconds: number | undefined): number =>
    audio.startTicks + Math.round((seconds ?? audioSeconds) * TICKS_PER_SECOND);
  const ends: number[] = [];
  let end = timed?.start ?? 0;
  for (const character of timed?.characters ?? []) {
    end += character.length;
    ends.push(end);
  }
  let at = 0;
  return words.map((word) => {
    while ((ends[at] ?? Number.POSITIVE_INFINITY) <= word.start) at += 1;
    const startTicks = ticksAt(timed?.startSeconds[at]);
    while ((ends[at] ?? Number.POSITIVE_INFINITY) < word.end) at += 1;
    return { startTicks, endTicks: ticksAt(timed?.endSeconds[at]) };
  });
}
