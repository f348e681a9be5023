/**
 * Whether an upstream's times run at another rate than its audio: once for a whole response. The vendor's users report
 * durations that do not add up to the audio's (its byte count, a sample rate that is not what it says). Times may also
 * reach beyond their chunk's audio with good reason, as where a word goes on in the next chunk; so chunks wait until a few
 * of them have shown what holds:
 *
 *   times    |0.00     0.33|0.33     0.66|     the ends of two chunks are the same multiple of their audio's ends:
 *   audio    |0.00   0.30|0.30   0.60|         all times are divided by 1.1
 */
import { type AudioSpan, TOLERANCE_SECONDS } from "../spans.ts";

/** What one chunk's times say of where they lie. Seconds; times as the upstream counts them. */
interface ChunkEnds {
  readonly timesFromSeconds: number;
  /** Where its first character ends. */
  readonly firstToSeconds: number;
  /** Where its last character begins. */
  readonly lastFromSeconds: number;
  /** NaN: not known. */
  readonly timesSeconds: number;
  readonly audio: AudioSpan;
}

/**
 * `open`: more has to come. `steady`: at the rate of the audio. `scaled`: divided by `rate`. `unknown`: neither the audio's rate
 * nor another one.
 */
export type Verdict = "open" | "steady" | "scaled" | "unknown";

/** Times and audio that end within this end together: a resampler holds back 1.3 ms of a chunk, and a header is 2 ms of audio. */
export const NEAR_SECONDS = 0.005;
/** A rate nearer to 1 is 1: what an encoder holds back of a chunk of half a second looks like one. */
const SAME_RATE = 0.02;
/** Where all possible rates are this near to 1, it is 1. Reported drifts are wrong sample rates, 8 % and more. */
const NARROW = 0.04;
/** How far from a character's beginning audio that is cut there may end: a resampler holds some back. */
const CUT_SECONDS = 0.002;
/** Audio that is shorter shows no cut: a first chunk may be a header, or an encoder's first packet. */
const MIN_CUT_SECONDS = 0.1;
/**
 * Chinese, Japanese and Thai have no spaces, and their audio is cut anywhere in a character: of their ends two agree by
 * chance, three do not. Ends of words agree all.
 */
const MANY_ENDS = 3;
/** Ends that are waited for where the audio's own rate is possible, each 0.5 to 1 s of audio. */
const ENOUGH_ENDS = 3;
/** Ends that are waited for where it is not possible: nobody waits for captions for ever. */
const MOST_ENDS = 6;
/** Words that go on in the next chunk, and pages of Ogg that hold audio back, make times end so far behind their audio. */
const MAX_LATE_SECONDS = 0.6;
/**
 * The vendor may send times with the first frame of a segment alone. Audio behind it is its own; where so much more comes,
 * the rest is audio whose times are missing.
 */
const MAX_REST_SECONDS = 1;
/** Silence behind the last word of a response is mostly shorter. */
const TAIL_SECONDS = 0.5;
/** What sounds for longer behind the last time is no breath: the times are ahead of their audio. */
const BREATH_SECONDS = 0.08;

interface RateRange {
  readonly low: number;
  readonly high: number;
}

/** Where a chunk's times end, and its audio. */
interface End {
  readonly timesSeconds: number;
  readonly audioSeconds: number;
}

/** The rate between two chunks, the first of which ended at `first`. */
interface CommonRate {
  readonly first: End;
  readonly rate: number;
}

export class ClockDrift {
  verdict: Verdict = "open";
  /** What times are divided by. */
  rate = 1;
  /** The first end that the rate is known by. */
  #anchor: End | null = null;
  #last: ChunkEnds | null = null;
  /** Chunks with times, and where those end. */
  #count = 0;
  #timesTo = 0;
  /** Ends of the chunks behind which others came, and of the last one as far as its audio is there. */
  #ends: End[] = [];
  /** The rates at which each chunk's audio begins in its first character, or right before it. */
  #begins: RateRange = { low: 0, high: Number.POSITIVE_INFINITY };
  /** The same, where characters may come with the audio in which they end. */
  #mostRate = Number.POSITIVE_INFINITY;
  /** Times come with the first piece of their audio, and the rest of it follows: where that ends the next times show. */
  #isInPieces = false;

  /** A chunk whose times go on from those before it. */
  meet(chunk: ChunkEnds): void {
    const { startSeconds, endSeconds } = chunk.audio;
    if (this.#last !== null) this.#endAt(this.#last, chunk);
    this.#last = null;
    if (startSeconds >= MIN_CUT_SECONDS) {
      const limit = startSeconds - CUT_SECONDS;
      this.#narrow({ low: 0, high: chunk.timesFromSeconds / limit });
      this.#mostRate = Math.min(this.#mostRate, chunk.firstToSeconds / limit);
    }
    this.#count += 1;
    this.#timesTo = Math.max(this.#timesTo, chunk.lastFromSeconds);
    // Where the times end is not known: that says nothing of their rate.
    if (Number.isNaN(chunk.timesSeconds)) {
      if (this.verdict === "open" && this.#count >= MOST_ENDS) this.#giveUp();
      return;
    }
    this.#timesTo = Math.max(this.#timesTo, chunk.timesSeconds);
    this.#last = chunk;
    this.#ends.push({ timesSeconds: chunk.timesSeconds, audioSeconds: endSeconds });
    if (this.verdict === "open") this.#judge(chunk);
    else if (this.verdict === "scaled") this.#refine({ ...chunk, audioSeconds: endSeconds });
    // It was by chance that times ended with their audio.
    else if (this.verdict === "unknown" || this.#isCutAtOtherRate(endSeconds)) this.#giveUp();
    this.#ends = this.#ends.slice(-MOST_ENDS);
  }

  /** Audio without times. */
  pass(audio: AudioSpan): void {
    const isAwaited = this.verdict === "open" && this.#count > 0;
    if (isAwaited && audio.endSeconds > this.#timesTo + MAX_REST_SECONDS) this.#giveUp();
  }

  /** The response is complete. `soundSeconds`: up to its last sound, 0 where that is not known. */
  finish(audioSeconds: number, soundSeconds: number): void {
    const last = this.#last;
    if (this.verdict !== "open" || last === null) return;
    this.#ends[this.#ends.length - 1] = { timesSeconds: last.timesSeconds, audioSeconds };
    this.#narrow({ low: leastRate(last, audioSeconds), high: Number.POSITIVE_INFINITY });
    // Pages of Ogg hold audio back, so that all chunks seem to end late: in the end the times end with all of it.
    this.#decide(this.#isNear(last.timesSeconds, audioSeconds) && this.#mostRate >= 1);
    if (this.verdict !== "open") return;
    const isShort = audioSeconds - last.timesSeconds > TAIL_SECONDS;
    const isSounding = soundSeconds - last.timesSeconds > BREATH_SECONDS;
    // One chunk that is too long may end too late, or all of it: it shrinks into its audio.
    const isPossible = this.#ends.length === 1 || this.#isWithin(1);
    if (isShort || isSounding || !isPossible) this.#giveUp();
    else this.verdict = "steady";
  }

  /** Nothing is waited for any longer: times are steady that end in their audio's last character. */
  settle(): void {
    if (this.verdict !== "open") return;
    const { lastFromSeconds = 0, timesSeconds = 0 } = this.#last ?? {};
    const audioSeconds = this.#ends.at(-1)?.audioSeconds ?? 0;
    const isInLast =
      lastFromSeconds <= audioSeconds + NEAR_SECONDS && timesSeconds >= audioSeconds - NEAR_SECONDS;
    if (isInLast && this.#isWithin(1)) this.verdict = "steady";
    else this.#giveUp();
  }

  /** Whether a chunk keeps to its audio though the rate is another, or audio seems to be cut in its characters at another one. */
  contradicts({ timesSeconds, audio }: ChunkEnds): boolean {
    const isOther = this.#isNear(timesSeconds, audio.endSeconds);
    const isIts = this.#isNear(timesSeconds / this.rate, audio.endSeconds);
    return this.#isCutAtOtherRate(audio.endSeconds) || (isOther && !isIts);
  }

  /** Whether audio is cut at another rate, by more than matters. */
  #isCutAtOtherRate(audioSeconds: number): boolean {
    const { low, high } = this.#begins;
    const tolerance = TOLERANCE_SECONDS / audioSeconds;
    return (low <= high && low > this.rate * (1 + tolerance)) || this.#mostRate < this.rate * (1 - tolerance);
  }

  /** What two chunks say of where audio is cut. Audio between them is the rest of the first one's, if no times are missing. */
  #endAt(first: ChunkEnds, second: ChunkEnds): void {
    const restSeconds = second.audio.startSeconds - first.audio.endSeconds;
    const isRest = second.timesFromSeconds - first.timesSeconds < restSeconds / 2;
    const isOwn = restSeconds > NEAR_SECONDS && isRest;
    this.#isInPieces ||= isOwn;
    const audioSeconds = isOwn ? second.audio.startSeconds : first.audio.endSeconds;
    this.#ends[this.#ends.length - 1] = { timesSeconds: first.timesSeconds, audioSeconds };
    this.#narrow({ low: leastRate(first, audioSeconds), high: Number.POSITIVE_INFINITY });
  }

  #judge(chunk: ChunkEnds): void {
    const isNear = this.#ends.slice(-2).some((end) => this.#isNear(end.timesSeconds, end.audioSeconds));
    this.#decide(isNear && this.#mayBeSteady());
    const count = this.#isInPieces ? this.#ends.length - 1 : this.#ends.length;
    const { low, high } = this.#begins;
    if (this.verdict === "open" && low >= 1 - NARROW && high <= 1 + NARROW && this.#isWithin(1))
      this.verdict = "steady";
    if (this.verdict !== "open" || count < ENOUGH_ENDS) return;
    const least = this.#isInPieces ? low : Math.max(low, leastRate(chunk, chunk.audio.endSeconds));
    if (least <= 1 && high >= 1) this.verdict = "steady";
    else if (low <= high) this.#giveUp();
    else if (this.#ends.length >= MOST_ENDS) {
      if (this.#ends.every(isLikelyLate)) this.verdict = "steady";
      else this.#giveUp();
    }
  }

  #decide(isSteady: boolean): void {
    const common = isSteady ? null : this.#commonRate();
    if (isSteady) this.verdict = "steady";
    else if (common !== null) {
      this.verdict = "scaled";
      this.#anchor = common.first;
      this.rate = common.rate;
    }
  }

  /** The further two ends at one rate are apart, the less rounding counts. */
  #refine(end: End): void {
    const isHit = this.#isNear(end.timesSeconds / this.rate, end.audioSeconds);
    if (isHit && this.#anchor !== null) this.rate = rateOf(this.#anchor, end) ?? this.rate;
  }

  #giveUp(): void {
    this.verdict = "unknown";
    this.rate = this.#likelyRate();
  }

  /** The rate at which the last chunk ends with another one; of several, enough that it is no chance, or no other is possible. */
  #commonRate(): CommonRate | null {
    // The audio of the last one may be still to come: then those before it show the rate.
    return this.#commonRateOf(this.#ends) ?? this.#commonRateOf(this.#ends.slice(0, -1));
  }

  #commonRateOf(ends: readonly End[]): CommonRate | null {
    const last = ends.at(-1);
    if (last === undefined) return null;
    for (const first of ends.slice(0, -1)) {
      const rate = rateOf(first, last);
      if (rate === null || Math.abs(rate - 1) <= SAME_RATE || !this.#isPossible(rate)) continue;
      const hits = ends.filter((each) => this.#isNear(each.timesSeconds / rate, each.audioSeconds));
      const isPinned = (this.#begins.high / this.#begins.low - 1) * last.audioSeconds <= TOLERANCE_SECONDS;
      if (isPinned || hits.length >= Math.min(MANY_ENDS, ends.length)) return { first, rate };
    }
    return null;
  }

  #likelyRate(): number {
    const { low, high } = this.#begins;
    const isKnown = low > 0 && low <= high && Number.isFinite(high);
    return isKnown && !this.#isWithin(1) ? (low + high) / 2 : 1;
  }

  #isNear(timesSeconds: number, audioSeconds: number): boolean {
    return Math.abs(timesSeconds - audioSeconds) <= NEAR_SECONDS;
  }

  #mayBeSteady(): boolean {
    return this.#mostRate >= 1 && (this.#begins.low <= 1 || this.#begins.low > this.#begins.high);
  }

  /** Where no rate puts all chunks' cuts into their characters, texts are cut by words. Every rate is possible then. */
  #isPossible(rate: number): boolean {
    return this.#begins.low > this.#begins.high || this.#isWithin(rate);
  }

  #isWithin(rate: number): boolean {
    return rate >= this.#begins.low && rate <= this.#begins.high;
  }

  #narrow({ low, high }: RateRange): void {
    this.#begins = { low: Math.max(this.#begins.low, low), high: Math.min(this.#begins.high, high) };
  }
}

function isLikelyLate({ timesSeconds, audioSeconds }: End): boolean {
  const lateSeconds = timesSeconds - audioSeconds;
  return lateSeconds >= -NEAR_SECONDS && lateSeconds <= MAX_LATE_SECONDS;
}

/** The least rate at which a chunk's last character has begun when its audio ends. */
function leastRate({ lastFromSeconds }: ChunkEnds, audioSeconds: number): number {
  return audioSeconds < MIN_CUT_SECONDS ? 0 : lastFromSeconds / (audioSeconds + CUT_SECONDS);
}

/** The rate of two chunks that end at one; null: they don't. An encoder that holds back some audio makes all ends late. */
function rateOf(first: End, last: End): number | null {
  const timesSeconds = last.timesSeconds - first.timesSeconds;
  const audioSeconds = last.audioSeconds - first.audioSeconds;
  if (!(timesSeconds > 0) || !(audioSeconds > 0) || !(first.timesSeconds > 0)) return null;
  const rate = timesSeconds / audioSeconds;
  return Math.abs(last.timesSeconds / rate - last.audioSeconds) <= NEAR_SECONDS ? rate : null;
}
