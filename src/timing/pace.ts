/**
 * Finds out whether an upstream's times run at another pace than its audio, and mends it. Evidence is needed, for times
 * may run ahead of their audio with good reason: two chunks have to end at the same multiple of their audio's end, and
 * what comes between them has to fit. A chunk whose last word goes on in the next one ends late and proves nothing.
 */
import type { Draft } from "./draft.ts";
import {
  type ChunkEnds,
  endAtOnePace,
  isSoundPace,
  isWithin,
  keepsToAudio,
  mayBeSound,
  NEAR_SECONDS,
  paceOfBoth,
  paceRange,
} from "./pace-evidence.ts";
import { weaker } from "./timed.ts";

/** Where a chunk's audio lies in the response. */
export interface ChunkSpan {
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** Times of a response that kept to its audio so far and that reach further beyond it than this are doubted. */
const DOUBTFUL_SECONDS = 0.1;
/** Audio without times that goes on for longer than this is more than the rest of the chunk before it. */
const REST_SECONDS = 0.25;
/** Silence behind the last word is mostly no longer than this. */
const TAIL_SECONDS = 0.5;
/** Ends that are waited for: where the times may be sound, and where something is wrong with them. */
const MAX_DOUBTED = 3;
const MAX_WRONG = 10;

/**
 * `new`: nothing is known. `doubtful`: nothing is told until more has come. `unproven`: told as it is, and still looked
 * at. `sound`: the times keep to their audio, or are late, or of another kind. `scaled`: their pace is known.
 */
type State = "new" | "doubtful" | "unproven" | "sound" | "scaled";

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
  /** What may have to be scaled still. */
  #doubted: Draft[] = [];
  /** Of the chunk before. */
  #before: ChunkEnds | null = null;
  /** Whether all chunks so far kept to their audio. */
  #isAnchored = false;
  /** End of times that reach beyond their audio, while they are doubted. */
  #beyondSeconds = 0;

  /** Whether it is better to wait for more before this chunk's times are told. */
  get isInDoubt(): boolean {
    return this.#state === "doubtful" || this.#beyondSeconds > 0;
  }

  /** What the times of a chunk are divided by, as far as is known; 1 = they are as they are. */
  get pace(): number {
    return this.#state === "scaled" ? (this.#known?.pace ?? 1) : 1;
  }

  /**
   * A chunk whose times go on from those before it; they may be changed. Returns by how much those of the chunks before
   * were divided just now; 1 = they were not.
   */
  meet(run: readonly Draft[], audio: ChunkSpan): number {
    const chunk = {
      timesFromSeconds: run[0]?.startSeconds ?? 0,
      timesSeconds: run.at(-1)?.endSeconds ?? 0,
      audioFromSeconds: audio.startSeconds,
      audioSeconds: audio.endSeconds,
    };
    this.#meetBeyond(chunk);
    const before = this.#before;
    this.#before = chunk;
    if (this.#isSound()) return 1;
    const hadDoubt = this.#state === "doubtful";
    // Audio that came since without times was the rest of a word of the chunk before: its times end there as well.
    const isRest = before !== null && audio.startSeconds > before.audioSeconds + NEAR_SECONDS;
    if (isRest && this.#known === null) this.#judge({ ...before, audioSeconds: audio.startSeconds });
    this.#doubted.push(...run);
    if (!this.#isSound()) this.#judge(chunk);
    if (this.#state === "doubtful") return 1;
    const doubted = this.#doubted.splice(0);
    // Times that can't be those of their audio are no better than a guess.
    if (this.#state === "unproven" && !mayBeSound(this.#ends)) weaken(doubted);
    if (this.#state !== "scaled") return 1;
    divide(doubted, this.pace);
    return hadDoubt ? this.pace : 1;
  }

  /** A chunk without times; `audioSeconds`: end of its audio, if known. */
  pass(audioSeconds = Number.POSITIVE_INFINITY): void {
    if (audioSeconds > this.#beyondSeconds - DOUBTFUL_SECONDS) this.#beyondSeconds = 0;
    const measuredSeconds = this.#before?.audioSeconds ?? 0;
    if (this.#state === "doubtful" && audioSeconds > measuredSeconds + REST_SECONDS) this.finish();
  }

  /** A chunk whose times are of another kind: they have no pace, and those before have none either. */
  passOther(): void {
    this.#beyondSeconds = 0;
    if (this.#state === "doubtful") this.#state = this.#known === null ? "sound" : "scaled";
    this.#doubted = [];
  }

  /** Nothing follows that could say more: what was doubted stands, or is divided by the pace that was known before. */
  finish(): void {
    this.#beyondSeconds = 0;
    if (this.#state !== "doubtful") return;
    const doubted = this.#doubted.splice(0);
    this.#state = this.#known === null ? "sound" : "scaled";
    if (this.#known !== null) divide(doubted, this.pace);
    else if (this.#isEarly()) weaken(doubted);
  }

  /** Times that end behind their audio may be ahead of it; those that end before it are wrong, if it isn't silence. */
  #isEarly(): boolean {
    const last = this.#ends.at(-1);
    const tailSeconds = last === undefined ? 0 : last.audioSeconds - last.timesSeconds;
    return tailSeconds > TAIL_SECONDS || paceRange(this.#ends.slice(0, -1)).high < 1;
  }

  #isSound(): boolean {
    return this.#state === "sound";
  }

  #meetBeyond(chunk: ChunkEnds): void {
    const isBeyond = this.#isAnchored && chunk.timesSeconds > chunk.audioSeconds + DOUBTFUL_SECONDS;
    this.#beyondSeconds = isBeyond ? chunk.timesSeconds : 0;
    this.#isAnchored = keepsToAudio(chunk) && (this.#isAnchored || this.#state === "new");
  }

  #judge(chunk: ChunkEnds): void {
    if (this.#known !== null) {
      this.#holdTo(this.#known, chunk);
      return;
    }
    this.#known = this.#findPace(chunk);
    if (this.#known !== null) this.#state = "scaled";
    else if (!keepsToAudio(chunk)) this.#doubt(chunk);
    // So little audio has no pace yet.
    else if (isSoundPace(chunk.timesSeconds / chunk.audioSeconds)) this.#state = "sound";
  }

  /** The pace is known: a chunk that doesn't keep to it is doubted, and two of them end it. */
  #holdTo({ first, last, pace }: KnownPace, chunk: ChunkEnds): void {
    const isSame = endAtOnePace(last, chunk);
    if (isSame) this.#known = { first, last: chunk, pace: paceOfBoth(first, chunk) };
    const isWell = isSame || (isWithin(pace, paceRange([chunk])) && !keepsToAudio(chunk));
    if (isWell) this.#state = "scaled";
    else this.#state = this.#state === "doubtful" ? "sound" : "doubtful";
  }

  #findPace(chunk: ChunkEnds): KnownPace | null {
    const range = paceRange([...this.#ends, chunk]);
    for (const first of this.#ends.toReversed()) {
      if (!endAtOnePace(first, chunk)) continue;
      const pace = paceOfBoth(first, chunk);
      if (!isSoundPace(pace) && isWithin(pace, range)) return { first, last: chunk, pace };
    }
    return null;
  }

  #doubt(chunk: ChunkEnds): void {
    this.#ends = [...this.#ends, chunk].slice(-MAX_WRONG);
    const range = paceRange(this.#ends);
    const count = this.#ends.length;
    const isEnough = count >= (mayBeSound(this.#ends) ? MAX_DOUBTED : MAX_WRONG);
    if (range.low > range.high) this.#state = "sound";
    else if (isEnough || this.#state === "unproven") this.#state = "unproven";
    else this.#state = "doubtful";
  }
}

function divide(drafts: readonly Draft[], pace: number): void {
  for (const draft of drafts) {
    draft.startSeconds /= pace;
    draft.endSeconds /= pace;
    draft.timing = weaker(draft.timing, "scaled");
  }
}

function weaken(drafts: readonly Draft[]): void {
  for (const draft of drafts) draft.timing = weaker(draft.timing, "estimated");
}
