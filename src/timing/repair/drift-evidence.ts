/** What the ends of chunks say of the pace of an upstream's times. Times over audio: 1.1 = they run 10 % too fast. */

/** Where a chunk begins and ends by its times, and where its audio lies in the response. */
export interface ChunkEnds {
  readonly timesFromSeconds: number;
  /** Where its first character ends by its times. */
  readonly firstToSeconds: number;
  /** Where its last character begins by its times. */
  readonly lastFromSeconds: number;
  readonly timesSeconds: number;
  readonly audioFromSeconds: number;
  readonly audioSeconds: number;
}

export interface PaceRange {
  readonly low: number;
  readonly high: number;
}

/** Times and audio that differ by less begin or end together: what an encoder, a resampler or rounding makes of them. */
export const NEAR_SECONDS = 0.005;
/** Times on the wire are rounded to this. */
const ROUNDING_SECONDS = 0.0001;
/** A pace nearer to 1 than this is sound. */
export const SOUND = 0.02;
/** What an encoder held back of a short chunk tells a pace that is wrong: so far may it lead astray, and no further. */
const MOST_AHEAD_SECONDS = 0.02;
/** How far a chunk's times may end before its audio: silence. */
const EARLY_SECONDS = 0.1;
/** How far they may end behind it: what is left of a word that goes on in the next chunk. */
const LATE_SECONDS = 0.8;
/** And how far they mostly do. */
const LIKELY_LATE_SECONDS = 0.6;
/** How far from where a character begins audio that is cut there may end: a resampler holds some back. */
const CUT_SECONDS = 0.002;
/** Times that end with their audio do so within this, without a pause. */
const BEHIND_SECONDS = 0.05;
/** Less audio than this says nothing of where it cuts its text. */
const MIN_CUT_SECONDS = 0.1;
/** Paces that differ by more are not the same in any case. */
const SURELY = 0.08;

/** Where the audio of two chunks that have times meets. */
export interface Joint {
  /** The first one, with the audio that came behind it without times, if that is its own. */
  readonly end: ChunkEnds;
  /** No times are missing between them. */
  readonly goesOn: boolean;
  /** Audio came without times, the rest of the first one's. */
  readonly hasRest: boolean;
}

/** Audio between them was the rest of the first one's, whose times end there as well; or its times are missing. */
export function jointOf(first: ChunkEnds, second: ChunkEnds): Joint {
  const muteSeconds = second.audioFromSeconds - first.audioSeconds;
  const isMute = muteSeconds > NEAR_SECONDS;
  const goesOn = !isMute || second.timesFromSeconds - first.timesSeconds < muteSeconds / 2;
  const end = goesOn ? { ...first, audioSeconds: second.audioFromSeconds } : first;
  return { end, goesOn, hasRest: isMute && goesOn };
}

/** A chunk's times end so far before its audio, without a pause before the next one's, that they are not at its pace. */
export function isBehind({ timesSeconds, audioSeconds }: ChunkEnds, next: ChunkEnds): boolean {
  const isAtOnce = next.timesFromSeconds - timesSeconds <= NEAR_SECONDS;
  return isAtOnce && audioSeconds - timesSeconds > BEHIND_SECONDS;
}

/** The chunk's times end with its audio. */
export function keepsToAudio({ timesSeconds, audioSeconds }: ChunkEnds): boolean {
  return Math.abs(timesSeconds - audioSeconds) <= NEAR_SECONDS;
}

/** The chunk's audio ends in its last character, or with it. */
export function endsInLast(
  chunk: Pick<ChunkEnds, "lastFromSeconds" | "timesSeconds" | "audioSeconds">,
): boolean {
  const { lastFromSeconds, timesSeconds, audioSeconds } = chunk;
  return lastFromSeconds <= audioSeconds + NEAR_SECONDS && timesSeconds >= audioSeconds - NEAR_SECONDS;
}

export function isSoundPace(pace: number): boolean {
  return Math.abs(pace - 1) <= SOUND;
}

/**
 * Whether times are the same multiple of the audio at the ends of both chunks. An encoder that holds back some of the
 * audio makes all ends seem late by as much.
 */
export function endAtOnePace(first: ChunkEnds, second: ChunkEnds): boolean {
  const growth = second.audioSeconds / first.audioSeconds;
  const pace = second.timesSeconds / second.audioSeconds;
  if (!(growth > 1) || !(first.timesSeconds > 0) || second.timesSeconds <= first.timesSeconds) return false;
  const aheadSeconds = second.audioSeconds - (second.timesSeconds * first.audioSeconds) / first.timesSeconds;
  const slackSeconds = (ROUNDING_SECONDS * (1 + growth)) / Math.min(1, pace) + NEAR_SECONDS / 10;
  const mostSeconds = Math.min(NEAR_SECONDS * (growth - 1), MOST_AHEAD_SECONDS);
  return aheadSeconds >= -slackSeconds && aheadSeconds <= mostSeconds + slackSeconds;
}

/**
 * The pace of two chunks that end at one. What counts is how far times and audio went from one to the other, where what
 * an encoder must have held back for that is little.
 */
export function paceOfBoth(first: ChunkEnds, second: ChunkEnds): number {
  const isLittle = heldBack(first, second) <= NEAR_SECONDS;
  return isLittle ? slopeOf(first, second) : second.timesSeconds / second.audioSeconds;
}

/** What an encoder must have held back, either way, if two chunks end at one pace. Seconds. */
export function heldBack(first: ChunkEnds, second: ChunkEnds): number {
  return Math.abs(second.timesSeconds / slopeOf(first, second) - second.audioSeconds);
}

function slopeOf(first: ChunkEnds, second: ChunkEnds): number {
  return (second.timesSeconds - first.timesSeconds) / (second.audioSeconds - first.audioSeconds);
}

/** Whether the chunks may well be at the pace of their audio. */
export function mayBeSound(chunks: readonly ChunkEnds[]): boolean {
  const isLikely = (chunk: ChunkEnds) => chunk.timesSeconds - chunk.audioSeconds <= LIKELY_LATE_SECONDS;
  return chunks.every(isLikely) && isWithin(1, paceRange(chunks));
}

/** The paces at which all of these chunks lie where they can; `low` above `high`: there is none. */
export function paceRange(chunks: readonly ChunkEnds[]): PaceRange {
  let [low, high] = [0, Number.POSITIVE_INFINITY];
  for (const { timesFromSeconds, timesSeconds, audioFromSeconds, audioSeconds } of chunks) {
    low = Math.max(low, timesSeconds / (audioSeconds + LATE_SECONDS));
    high = Math.min(high, most(timesSeconds, audioSeconds), most(timesFromSeconds, audioFromSeconds));
  }
  return { low, high };
}

/** Where audio is cut without regard to words, a chunk's ends in its last character: that has begun by then. */
export function lowestPace({ lastFromSeconds, audioSeconds }: ChunkEnds): number {
  return audioSeconds < MIN_CUT_SECONDS ? ANY_PACE.low : lastFromSeconds / (audioSeconds + CUT_SECONDS);
}

/** And the next one's first character has not. */
export function highestPace({ timesFromSeconds, audioFromSeconds }: ChunkEnds): number {
  return paceAt(timesFromSeconds, audioFromSeconds);
}

/** Or has not ended, where a character goes with the audio that it ends in: a pace above this is none in any case. */
export function highestSurePace({ firstToSeconds, audioFromSeconds }: ChunkEnds): number {
  return paceAt(firstToSeconds, audioFromSeconds);
}

/** No pace fits both where the chunk begins and where it ends: more of its audio is to come. */
export function contradictsItself(chunk: ChunkEnds): boolean {
  return lowestPace(chunk) > highestSurePace(chunk) * (1 + SURELY);
}

function paceAt(timesSeconds: number, audioSeconds: number): number {
  return audioSeconds < MIN_CUT_SECONDS ? ANY_PACE.high : timesSeconds / (audioSeconds - CUT_SECONDS);
}

export const ANY_PACE: PaceRange = { low: 0, high: Number.POSITIVE_INFINITY };

export function common(one: PaceRange, other: PaceRange): PaceRange {
  return { low: Math.max(one.low, other.low), high: Math.min(one.high, other.high) };
}

function most(timesSeconds: number, audioSeconds: number): number {
  return audioSeconds > EARLY_SECONDS
    ? timesSeconds / (audioSeconds - EARLY_SECONDS)
    : Number.POSITIVE_INFINITY;
}

export function isWithin(pace: number, { low, high }: PaceRange): boolean {
  return pace >= low && pace <= high;
}
