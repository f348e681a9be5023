/**
 * Finds out whether an upstream's times run at another pace than its audio, and mends it. Evidence is needed, for times
 * may run ahead of their audio with good reason: two chunks have to end at the same multiple of their audio's end, and
 * what comes between them has to fit. A chunk whose last word goes on in the next one ends late and proves nothing.
 */
import { type Draft, divideTimes, lastSounding, weaken } from "../draft.ts";
import {
  ANY_PACE,
  type ChunkEnds,
  common,
  contradictsItself,
  endAtOnePace,
  endsInLast,
  heldBack,
  highestPace,
  highestSurePace,
  isBehind,
  isSoundPace,
  isWithin,
  jointOf,
  keepsToAudio,
  lowestPace,
  mayBeSound,
  NEAR_SECONDS,
  type PaceRange,
  paceOfBoth,
  paceRange,
  SOUND,
} from "./drift-evidence.ts";

/** Where a chunk's audio lies in the response. */
export interface ChunkSpan {
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** Times of a response that kept to its audio so far and that reach further beyond it than this are doubted. */
const DOUBTFUL_SECONDS = 0.1;
/** The slowest times that are waited for: a chunk's audio lasts no longer than its times divided by this. */
const MIN_WAITED_PACE = 0.7;
/** Silence behind the last word is mostly no longer than this. */
const TAIL_SECONDS = 0.5;
/** What sounds for longer behind the last time is no breath: the times are ahead of their audio. */
const SOUNDING_SECONDS = 0.08;
/** Shorter pieces of audio end where times end by chance too often. */
const PIECE_SECONDS = 0.1;
/** Where a pace is known to lie is narrow when no more than this apart; so narrow that it is as good as known. */
const NARROW = 0.08;
/** A pace that may be off by so little over all audio so far is known. Seconds. */
const TOLERANCE_SECONDS = 0.02;
/** Two ends at one pace are hardly by chance where an encoder holds back no more than this. Seconds. */
const CLEAR_SECONDS = 0.0016;
/** So many times as long as the first audio is what shows that a lag or silence is none. */
const MIN_GROWTH = 3;
/** Ends at one pace that are no chance, though others are not. */
const MANY_ENDS = 3;
/** Ends that are waited for: where the times may be sound, and where something is wrong with them. */
const MAX_DOUBTED = 3;
const MAX_WRONG = 10;

/**
 * `new`: nothing is known. `doubtful`: nothing is told until more has come. `unproven`: told as it is, and still looked
 * at. `rough`: about known, and still looked at. `sound`: the times keep to their audio, or are late, or of another kind.
 * `scaled`: their pace is known.
 */
type State = "new" | "doubtful" | "unproven" | "rough" | "sound" | "scaled";

interface KnownPace {
  /** The first and the last chunk that it is known by. */
  readonly first: ChunkEnds;
  readonly last: ChunkEnds;
  /** What times have to be divided by. */
  readonly pace: number;
}

export class Pace {
  #state: State = "new";
  #known: KnownPace | null = null;
  /** Ends from which the pace is not known yet: the last ones. */
  #ends: ChunkEnds[] = [];
  /** Where the pace lies if audio ends in its last character, by all chunks that have a next one; empty: it does not. */
  #cutBefore: PaceRange = ANY_PACE;
  /** The highest pace in any case, also where characters go with the audio that they end in. */
  #highestSure = Number.POSITIVE_INFINITY;
  /** The least that the last chunk allows: what comes next may show that its audio goes on. */
  #lowest = 0;
  /** What may have to be scaled still. */
  #doubted: Draft[] = [];
  /** Of the chunk before. */
  #before: ChunkEnds | null = null;
  /** Times come with the first piece of their audio, and the rest of it follows: where they end is known by the next times. */
  #isInPieces = false;
  /** Whether the audio of all chunks so far ended in their last character, or with it. */
  #isAnchored = false;
  /** End of the first audio that was looked at once the times were taken for sound. */
  #firstSeconds = 0;
  /** End of times that reach beyond their audio, while they are doubted. */
  #beyondSeconds = 0;

  /** Whether it is better to wait for more before this chunk's times are told. */
  get isInDoubt(): boolean {
    return this.#state === "doubtful" || this.#beyondSeconds > 0;
  }

  /** Whether times that were met may still be divided. */
  get isUnknown(): boolean {
    return this.#state === "doubtful";
  }

  /** What the times of a chunk are divided by, as far as is known; 1 = they are as they are. */
  get pace(): number {
    if (this.#state !== "rough" && this.#state !== "scaled") return 1;
    return this.#known?.pace ?? Math.sqrt(this.#cut.low * this.#cut.high);
  }

  get #cut(): PaceRange {
    return common(this.#cutBefore, { low: this.#lowest, high: Number.POSITIVE_INFINITY });
  }

  /**
   * A chunk whose times go on from those before it; they may be changed, now or later. `fromSeconds`: where its own times
   * begin, for some in the run may have come earlier.
   */
  meet(run: readonly Draft[], audio: ChunkSpan, fromSeconds: number): void {
    const chunk = {
      timesFromSeconds: fromSeconds,
      firstToSeconds: run.find((draft) => draft.startSeconds >= fromSeconds)?.endSeconds ?? fromSeconds,
      lastFromSeconds: run.at(-1)?.startSeconds ?? 0,
      timesSeconds: run.at(-1)?.endSeconds ?? 0,
      audioFromSeconds: audio.startSeconds,
      audioSeconds: audio.endSeconds,
    };
    const isMeasured = run.at(-1)?.isEndGuessed !== true;
    this.#meetBeyond(run, audio.endSeconds, isMeasured);
    if (!isMeasured) {
      this.#passUnmeasured(run);
      return;
    }
    const before = this.#before;
    this.#before = chunk;
    this.#meetBegin(chunk);
    if (before !== null) this.#meetCut(before, chunk);
    this.#lowest = this.#isInPieces ? ANY_PACE.low : lowestPace(chunk);
    if (this.#isSound() && !this.#isRefuted(chunk)) {
      if (this.#isDubious(chunk)) weaken(run);
      return;
    }
    this.#doubted.push(...run);
    if (contradictsItself(chunk)) {
      this.#isInPieces = true;
      this.#lowest = ANY_PACE.low;
      if (this.#state === "new") this.#state = "doubtful";
    }
    // What is here of its audio may be its first piece.
    if (!this.#isSound() && !this.#isInPieces) this.#judge(chunk);
    if (!this.isUnknown) this.#release();
  }

  #release(): void {
    const doubted = this.#doubted.splice(0);
    // Times that can't be those of their audio, and those of a pace that is not quite known, are no better than a guess.
    const isLikely = this.#ends.length > (this.#isInPieces ? 1 : 0) && this.#isLikelySound();
    if (this.#state === "rough" || (this.#state === "unproven" && !isLikely)) weaken(doubted);
    if (this.#state !== "sound") divideTimes(doubted, this.pace);
  }

  /** One chunk may have kept to its audio by chance: what is cut in characters all along says what the pace is. */
  #isRefuted(chunk: ChunkEnds): boolean {
    this.#firstSeconds ||= chunk.audioSeconds;
    if (chunk.audioSeconds < this.#firstSeconds * MIN_GROWTH || !this.#isCutOtherwise()) return false;
    this.#state = "rough";
    return true;
  }

  /** Where the times end is not known: so they say nothing of their pace. */
  #passUnmeasured(run: readonly Draft[]): void {
    if (this.#isSound()) return;
    if (this.#state === "doubtful") {
      this.#doubted.push(...run);
      return;
    }
    if (this.#state !== "scaled") weaken(run);
    divideTimes(run, this.pace);
  }

  /** Taken for sound, but not as if audio ended in its last character: by more than matters. */
  #isDubious({ audioSeconds }: ChunkEnds): boolean {
    const { low, high } = this.#cut;
    // The first piece of a chunk has its first character.
    const most = this.#isInPieces ? high : this.#highestSure;
    const offSeconds = Math.max(low - 1, 1 - most) * audioSeconds;
    return low <= high && offSeconds > TOLERANCE_SECONDS;
  }

  /** Whether audio seems to end in its last character all along, but at another pace than its own. */
  #isCutOtherwise(): boolean {
    const { low, high } = this.#cut;
    const isNarrow = low <= high && high <= low * (1 + NARROW);
    return isNarrow && (low > 1 + SOUND || (this.#highestSure < 1 && high < 1 - SOUND));
  }

  /** What a chunk says of where audio is cut before it. */
  #meetBegin(chunk: ChunkEnds): void {
    this.#cutBefore = common(this.#cutBefore, { low: ANY_PACE.low, high: highestPace(chunk) });
    this.#highestSure = Math.min(this.#highestSure, highestSurePace(chunk));
  }

  /** What two chunks say of where audio is cut. */
  #meetCut(before: ChunkEnds, chunk: ChunkEnds): void {
    const joint = jointOf(before, chunk);
    const wasInPieces = this.#isInPieces;
    this.#isInPieces ||= joint.hasRest && before.timesSeconds > before.audioSeconds + NEAR_SECONDS;
    // Of audio in pieces nobody knows where it ended, if times are missing as well.
    const isLost = this.#isInPieces && !joint.goesOn;
    const low = isLost ? ANY_PACE.low : lowestPace(joint.end);
    this.#cutBefore = common(this.#cutBefore, { low, high: ANY_PACE.high });
    const isRestNew = joint.hasRest && (this.#isInPieces || this.#known === null);
    const isNew = wasInPieces ? !isLost : isRestNew;
    // Those before ended with their audio by chance.
    if (this.#isSound() && joint.hasRest && isBehind(joint.end, chunk)) this.#state = "doubtful";
    if (!isNew || this.#isSound()) return;
    // Where its first piece ended was no end.
    this.#ends = this.#ends.filter((each) => each !== before);
    this.#judge(joint.end);
    if (!this.isUnknown) this.#release();
  }

  /** A chunk without times; `audio`: where its audio lies, if known. */
  pass(audio: ChunkSpan | null = null): void {
    const endSeconds = audio?.endSeconds ?? Number.POSITIVE_INFINITY;
    if (endSeconds > this.#beyondSeconds - DOUBTFUL_SECONDS) this.#beyondSeconds = 0;
    const before = this.#before;
    if (this.#state !== "doubtful" || before === null || audio === null) return;
    const rest = { ...before, audioSeconds: endSeconds };
    // The rest of a chunk's audio ends with its times; of several pieces one ends there by chance.
    const isOwn = audio.startSeconds - before.audioSeconds <= NEAR_SECONDS;
    const isRest = isOwn && !this.#isInPieces && this.#highestSure >= 1;
    if (isRest && keepsToAudio(rest) && endSeconds - audio.startSeconds >= PIECE_SECONDS) {
      this.#judge(rest);
      if (!this.isUnknown) this.#release();
      return;
    }
    const { timesFromSeconds, timesSeconds, audioFromSeconds } = before;
    const restSeconds = (timesSeconds - timesFromSeconds) / MIN_WAITED_PACE + DOUBTFUL_SECONDS;
    if (endSeconds > audioFromSeconds + restSeconds) this.#giveUp();
  }

  /** A chunk whose times are of another kind: they have no pace, and those before have none either. */
  passOther(): void {
    this.#beyondSeconds = 0;
    if (this.#state === "doubtful") this.#state = this.#known === null ? "sound" : "scaled";
    this.#doubted = [];
  }

  /** There is more audio, and nothing waits any longer for what may never come. */
  #giveUp(): void {
    const doubted = this.#doubted.splice(0);
    this.#state = this.#known === null ? "unproven" : "scaled";
    const isLikely = this.#ends.length > 1 && this.#isLikelySound();
    if (this.#known === null && !isLikely) weaken(doubted);
    divideTimes(doubted, this.pace);
  }

  /**
   * Nothing follows that could say more: what was doubted stands, or is divided by the pace that was known before.
   * `audioSeconds`: all of the response; `soundSeconds`: up to its last sound, 0 where that is not known.
   */
  finish(audioSeconds: number, soundSeconds = 0): void {
    this.#beyondSeconds = 0;
    if (this.#isInPieces && this.#before !== null && this.#state === "doubtful") {
      this.#judge({ ...this.#before, audioSeconds });
      if (!this.isUnknown) this.#release();
    }
    if (this.#state !== "doubtful") return;
    const doubted = this.#doubted.splice(0);
    this.#state = this.#known === null ? "sound" : "scaled";
    // Pages of Ogg hold audio back, so that all chunks seem to end early: in the end the times end with all of it.
    if (this.#known === null && this.#endsWith(audioSeconds)) return;
    if (this.#before !== null) this.#lowest = lowestPace({ ...this.#before, audioSeconds });
    const { low, high } = this.#cut;
    const isCut = low <= high && Number.isFinite(high);
    const isDoubtful = this.#known === null && isCut && !isWithin(1, { low, high });
    const isOther = isDoubtful && (low > 1 || this.#highestSure < 1);
    const last = doubted.at(-1)?.endSeconds ?? 0;
    divideTimes(doubted, isOther ? Math.min(Math.max(last / audioSeconds, low), high) : this.pace);
    if (isDoubtful || (this.#known === null && this.#isEarly(soundSeconds))) weaken(doubted);
  }

  #endsWith(audioSeconds: number): boolean {
    const timesSeconds = this.#before?.timesSeconds ?? 0;
    return Math.abs(timesSeconds - audioSeconds) <= NEAR_SECONDS;
  }

  /** Times that end behind their audio may be ahead of it; those that end before it are wrong, if it isn't silence. */
  #isEarly(soundSeconds: number): boolean {
    const last = this.#ends.at(-1);
    const tailSeconds = last === undefined ? 0 : last.audioSeconds - last.timesSeconds;
    const isSounding = last !== undefined && soundSeconds - last.timesSeconds > SOUNDING_SECONDS;
    return tailSeconds > TAIL_SECONDS || isSounding || paceRange(this.#ends.slice(0, -1)).high < 1;
  }

  /** Whether what is not known of the pace leaves room for the audio's own. */
  #isLikelySound(): boolean {
    const { low, high } = this.#cut;
    return mayBeSound(this.#ends) && (low > high || isWithin(1, { low, high }));
  }

  #isSound(): boolean {
    return this.#state === "sound";
  }

  #meetBeyond(run: readonly Draft[], audioSeconds: number, isMeasured: boolean): void {
    const timesSeconds = run.at(-1)?.endSeconds ?? 0;
    const endSeconds = timesSeconds / this.pace;
    const lastFromSeconds = (lastSounding(run)?.startSeconds ?? 0) / this.pace;
    const isBeyond = lastFromSeconds > audioSeconds && endSeconds > audioSeconds + DOUBTFUL_SECONDS;
    this.#beyondSeconds = this.#isAnchored && isBeyond ? endSeconds : 0;
    if (!isMeasured) return;
    const isInLast = endsInLast({ lastFromSeconds, timesSeconds: endSeconds, audioSeconds });
    this.#isAnchored = isInLast && (this.#isAnchored || this.#state === "new");
  }

  #judge(chunk: ChunkEnds): void {
    if (this.#known !== null) {
      this.#holdTo(this.#known, chunk);
      return;
    }
    this.#known = this.#findPace(chunk);
    if (this.#known !== null) {
      this.#note(chunk);
      this.#state = "scaled";
    } else if (!keepsToAudio(chunk)) this.#doubt(chunk);
    else if (this.#isCutOtherwise()) this.#doubt(chunk);
    // So little audio has no pace yet.
    else if (isSoundPace(chunk.timesSeconds / chunk.audioSeconds)) this.#state = "sound";
  }

  /** The pace is known: a chunk that doesn't keep to it is doubted, and two of them end it. */
  #holdTo({ first, last, pace }: KnownPace, chunk: ChunkEnds): void {
    this.#note(chunk);
    const isSame = endAtOnePace(last, chunk);
    const known = isSame ? { first, last: chunk, pace: paceOfBoth(first, chunk) } : { first, last, pace };
    this.#known = known;
    const isWell = isSame || (isWithin(pace, paceRange([chunk])) && !keepsToAudio(chunk));
    if (isWell) this.#state = this.#isNoChance(known, this.#ends) ? "scaled" : "rough";
    else this.#state = this.#state === "doubtful" ? "sound" : "doubtful";
  }

  #findPace(chunk: ChunkEnds): KnownPace | null {
    const range = paceRange([...this.#ends, chunk]);
    for (const first of this.#ends.toReversed()) {
      if (!endAtOnePace(first, chunk)) continue;
      const known = { first, last: chunk, pace: paceOfBoth(first, chunk) };
      if (isSoundPace(known.pace) || !isWithin(known.pace, range)) continue;
      if (this.#isNoChance(known, [...this.#ends, chunk])) return known;
    }
    return null;
  }

  /** Where audio ends anywhere in a character, some chunks end at one pace by chance. */
  #isNoChance({ first, last, pace }: KnownPace, ends: readonly ChunkEnds[]): boolean {
    const { low, high } = this.#cut;
    if (low > high) return true;
    if (!isWithin(pace, { low, high })) return false;
    const all = new Set(ends.map(({ timesSeconds }) => timesSeconds)).size;
    const isAtPace = (end: ChunkEnds) => Math.abs(end.timesSeconds / pace - end.audioSeconds) <= NEAR_SECONDS;
    const hits = new Set(ends.filter(isAtPace).map(({ timesSeconds }) => timesSeconds)).size;
    if (hits >= MANY_ENDS) return true;
    if ((high / low - 1) * last.audioSeconds <= TOLERANCE_SECONDS) return true;
    return hits === all && heldBack(first, last) <= CLEAR_SECONDS;
  }

  #doubt(chunk: ChunkEnds): void {
    this.#note(chunk);
    const range = paceRange(this.#ends);
    const count = this.#ends.length;
    const isEnough = count >= (mayBeSound(this.#ends) ? MAX_DOUBTED : MAX_WRONG);
    const { low, high } = this.#cut;
    const isNarrow = low <= high && high <= low * (1 + NARROW);
    const isOther = low > 1 || this.#highestSure < 1;
    const isSound = low <= 1 && high >= 1 && low >= 1 - NARROW / 2 && high <= 1 + NARROW / 2;
    if (range.low > range.high) this.#state = "sound";
    else if (isNarrow && isOther && count >= MAX_DOUBTED) this.#state = "rough";
    else if (isSound || isEnough || this.#state === "unproven") this.#state = "unproven";
    else this.#state = "doubtful";
  }

  #note(chunk: ChunkEnds): void {
    this.#ends = [...this.#ends, chunk].slice(-MAX_WRONG);
  }
}
