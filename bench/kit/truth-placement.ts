/** Where an answer's audio really lies in what a listener got: found by its samples, whatever the events say. */
import { SILENCE_LEVEL } from "../../src/audio/analysis/silence.ts";

const BYTES_PER_SAMPLE = 2;
/** Length of the stretch that is looked for, from the first sound on. */
const NEEDLE_SAMPLES = 2400;
/** At a splice the gateway lets sound rise and fall in a few milliseconds: that much at both ends may be changed. */
const SEAM_SAMPLES = 240;

export interface Placement {
  /** Of the answer's first sample in the listener's audio, as if it had come whole; in samples, may be negative. */
  readonly origin: number;
  /** The answer's samples that are there, end exclusive; silence at its edges may be counted in that is not its own. */
  readonly from: number;
  readonly to: number;
  /** Every sample from the first sound to the last is there, unchanged but for splices. */
  readonly isWhole: boolean;
  /** First and last sample that is no silence, in the answer. */
  readonly firstSound: number;
  readonly lastSound: number;
}

/** Both 16-bit PCM of one rate. `fromSample`: where the search begins. Null where it is not there, or was all silence. */
export function placeAudio(heard: Buffer, answer: Buffer, fromSample: number): Placement | null {
  const length = answer.length / BYTES_PER_SAMPLE;
  const sound = soundOf(answer);
  if (sound === null) return null;
  const [firstSound, lastSound] = sound;
  const needleFrom = Math.min(firstSound + SEAM_SAMPLES, lastSound);
  const needleTo = Math.min(lastSound + 1 - SEAM_SAMPLES, needleFrom + NEEDLE_SAMPLES);
  const needle = answer.subarray(needleFrom * BYTES_PER_SAMPLE, needleTo * BYTES_PER_SAMPLE);
  if (needle.length === 0) return null;
  const at = indexOfSamples(heard, needle, fromSample);
  if (at < 0) return null;
  const origin = at - needleFrom;
  const isEqual = (sample: number): boolean => {
    const here = (origin + sample) * BYTES_PER_SAMPLE;
    if (here < 0 || here + 1 >= heard.length) return false;
    return heard.readInt16LE(here) === answer.readInt16LE(sample * BYTES_PER_SAMPLE);
  };
  let from = needleFrom;
  while (from > 0 && isEqual(from - 1)) from -= 1;
  let to = needleFrom;
  while (to < length && isEqual(to)) to += 1;
  return {
    origin,
    from,
    to,
    isWhole: from <= firstSound + SEAM_SAMPLES && to > lastSound - SEAM_SAMPLES,
    firstSound,
    lastSound,
  };
}

function soundOf(pcm: Buffer): [first: number, last: number] | null {
  let first = -1;
  let last = -1;
  for (let sample = 0; sample < pcm.length / BYTES_PER_SAMPLE; sample++) {
    if (Math.abs(pcm.readInt16LE(sample * BYTES_PER_SAMPLE)) <= SILENCE_LEVEL) continue;
    if (first < 0) first = sample;
    last = sample;
  }
  return first < 0 ? null : [first, last];
}

/** At whole samples only. */
function indexOfSamples(heard: Buffer, needle: Buffer, fromSample: number): number {
  let at = heard.indexOf(needle, fromSample * BYTES_PER_SAMPLE);
  while (at >= 0 && at % BYTES_PER_SAMPLE !== 0) at = heard.indexOf(needle, at + 1);
  return at < 0 ? -1 : at / BYTES_PER_SAMPLE;
}
