/**
 * Puts the times of one upstream response on one clock that only goes forward: times of each chunk on its own (the
 * vendor's SDK says so), clocks that restart, overlaps, jumps of single characters, negative and missing numbers.
 */
import type { Placed } from "../alignment-walk.ts";
import { type Draft, isTimed, lastSounding, weaken } from "../draft.ts";
import { weaker } from "../timed.ts";
import { type ChunkSpan, Pace } from "./clock-drift.ts";
import { endsInLast, NEAR_SECONDS } from "./drift-evidence.ts";

/** A clock that restarts does so near zero; leading silence is no longer than this. */
const RESTART_BELOW_SECONDS = 0.3;
/** And it restarts after something was said. */
const RESTART_AFTER_SECONDS = 0.6;
/** Rounding on the wire; smaller steps back are no fault. */
const TOLERANCE_SECONDS = 0.02;
/** How far times that count from their chunk may reach beyond its audio: what an encoder holds back, and rounding. */
const BEYOND_CHUNK_SECONDS = 0.08;
/** A chunk's first character starts with its audio, and its last one ends with it, where that is no longer than this. */
const MAX_CHARACTER_SECONDS = 0.5;
/** Length of a character whose end is unknown. */
const TYPICAL_CHARACTER_SECONDS = 0.06;

export class ResponseClock {
  #lastEnd = 0;
  #isEndGuessed = false;
  /** By how much all audio is late, as the first chunk that counts from itself shows: an encoder holds some back. */
  #heldSeconds: number | null = null;
  readonly #pace = new Pace();
  /** Whose pace is doubted: they are placed once it is known, for where they go depends on it. */
  #doubted: { readonly run: readonly Draft[]; readonly audio: ChunkSpan }[] = [];

  /** Whether the next chunk may show that the times of this one are others. */
  get isInDoubt(): boolean {
    return this.#pace.isInDoubt;
  }

  /**
   * The times of one chunk on the response's clock; NaN where they are unknown. `audio`: where the chunk's audio lies
   * in the response, if known: the origin of times that count from the chunk, and the measure of their pace;
   * `fromSeconds`: where its times begin, if some of those placed came with a chunk before.
   */
  place(placed: readonly Placed[], audio: ChunkSpan | null = null, fromSeconds = 0): Draft[] {
    const drafts = placed.map(toDraft);
    fillHalfKnown(drafts, audio);
    dropOutliers(drafts);
    dropTimeless(drafts);
    const runs = splitAtRestarts(drafts);
    const [run] = runs;
    const isOne = run !== undefined && runs.length === 1 && audio !== null;
    const isCounted = isOne && this.#countsFromChunk(run, this.#timesEnd, audio);
    const isPaced = isOne && !isCounted && !this.#isAnew(run, this.#timesEnd, audio);
    if (isPaced) {
      this.#doubted.push({ run, audio });
      this.#pace.meet(run, audio, Math.max(fromSeconds, run[0]?.startSeconds ?? 0));
    } else if (run === undefined) this.#pace.pass(audio);
    else this.#pace.passOther();
    if (!this.#pace.isUnknown) this.#placeDoubted();
    if (!isPaced) for (const each of runs) this.#placeRun(each, audio);
    return drafts;
  }

  /** The response is complete: what was doubted stands. `audioSeconds`: length of its audio; `soundSeconds`: as `Pace.finish` has it. */
  finish(audioSeconds: number, soundSeconds: number): void {
    this.#pace.finish(audioSeconds, soundSeconds);
    this.#placeDoubted();
  }

  /** End of the times so far, as the upstream counts them. */
  get #timesEnd(): number {
    return this.#doubted.at(-1)?.run.at(-1)?.endSeconds ?? this.#lastEnd * this.#pace.pace;
  }

  #placeDoubted(): void {
    for (const { run, audio } of this.#doubted.splice(0)) this.#placeRun(run, audio);
  }

  /**
   * Times that go back, and that fit behind what was said if they count from their chunk's start. That they do is clear
   * where they end with its audio, or begin just where those before them ended, or once it was clear for another chunk:
   * a last word may go on in the next one, and the rest of a chunk's audio may come behind it.
   */
  #countsFromChunk(run: readonly Draft[], lastEnd: number, audio: ChunkSpan): boolean {
    const first = run[0]?.startSeconds ?? 0;
    const last = run.at(-1)?.endSeconds ?? first;
    const { startSeconds, endSeconds } = audio;
    if (first >= lastEnd - TOLERANCE_SECONDS || startSeconds <= TOLERANCE_SECONDS) return false;
    const behindSeconds = first + startSeconds - lastEnd;
    const isClear = last + startSeconds <= endSeconds + BEYOND_CHUNK_SECONDS || this.#heldSeconds !== null;
    return behindSeconds >= -TOLERANCE_SECONDS && (isClear || behindSeconds <= TOLERANCE_SECONDS);
  }

  /** Times that go back, and end nearer to their audio's end if they count from its beginning. */
  #isAnew(run: readonly Draft[], lastEnd: number, audio: ChunkSpan | null): boolean {
    const first = run[0]?.startSeconds ?? 0;
    const last = run.at(-1)?.endSeconds ?? first;
    if (audio === null || first >= lastEnd - TOLERANCE_SECONDS || audio.startSeconds <= TOLERANCE_SECONDS)
      return false;
    const offSeconds = Math.abs(last - audio.endSeconds);
    return Math.abs(last + audio.startSeconds - audio.endSeconds) < offSeconds;
  }

  #placeRun(run: readonly Draft[], audio: ChunkSpan | null): void {
    const first = run[0]?.startSeconds ?? 0;
    const last = run.at(-1)?.endSeconds ?? first;
    if (first < this.#lastEnd - TOLERANCE_SECONDS) {
      if (audio !== null && this.#countsFromChunk(run, this.#lastEnd, audio)) {
        this.#heldSeconds ??= heldBack(this.#lastEnd - first - audio.startSeconds);
        // Times of a clock of their own that don't end with their audio may run at any pace.
        if (!endsWith(run, audio)) weaken(run);
        shift(run, audio.startSeconds + this.#heldSeconds);
      } else if (isRestart(first, this.#lastEnd) || this.#isAnew(run, this.#lastEnd, audio)) {
        const from = Math.max(this.#lastEnd, audio?.startSeconds ?? 0);
        // What was told before reaches into its audio: which of the two is wrong is not known.
        if (audio !== null && (from > audio.startSeconds + TOLERANCE_SECONDS || !endsWith(run, audio)))
          weaken(run);
        shift(run, from);
        if (audio !== null) squeezeInto(run, from, audio.endSeconds);
      } else if (last > this.#lastEnd + TOLERANCE_SECONDS) {
        // Overlaps what was said already and ends behind it: squeezed into what is new. What was a guess may be wrong.
        if (this.#isEndGuessed) weaken(run);
        scale(run, { from: first, to: this.#lastEnd, factor: (last - this.#lastEnd) / (last - first) });
      } else shift(run, this.#lastEnd - first);
    }
    const end = run.at(-1);
    if (end === undefined || end.endSeconds < this.#lastEnd) return;
    this.#lastEnd = end.endSeconds;
    this.#isEndGuessed = end.timing === "estimated";
  }
}

/** Whether times that count from their chunk end in its audio's last character, or with it. */
function endsWith(run: readonly Draft[], audio: ChunkSpan): boolean {
  const lastFromSeconds = lastSounding(run)?.startSeconds ?? 0;
  const timesSeconds = run.at(-1)?.endSeconds ?? 0;
  return endsInLast({ lastFromSeconds, timesSeconds, audioSeconds: audio.endSeconds - audio.startSeconds });
}

/** Moves times: `from` becomes `to`, and what follows is stretched by `factor`. */
export function scale(
  drafts: readonly Draft[],
  map: { readonly from: number; readonly to: number; readonly factor: number },
): void {
  for (const draft of drafts) {
    draft.startSeconds = map.to + (draft.startSeconds - map.from) * map.factor;
    draft.endSeconds = map.to + (draft.endSeconds - map.from) * map.factor;
    draft.timing = weaker(draft.timing, "scaled");
  }
}

function shift(drafts: readonly Draft[], bySeconds: number): void {
  scale(drafts, { from: 0, to: bySeconds, factor: 1 });
}

/** Times that reach beyond their chunk's audio shrink into what there is of it behind `fromSeconds`. */
function squeezeInto(run: readonly Draft[], fromSeconds: number, endSeconds: number): void {
  const first = run[0]?.startSeconds ?? 0;
  const last = run.at(-1)?.endSeconds ?? first;
  if (last <= endSeconds + BEYOND_CHUNK_SECONDS || last <= first) return;
  const factor = Math.max(endSeconds - fromSeconds, 0) / (last - first);
  scale(run, { from: first, to: fromSeconds, factor });
}

/** `seconds`: by how much the times before reach beyond where the chunk's audio begins. */
function heldBack(seconds: number): number {
  return seconds > 0 && seconds <= NEAR_SECONDS ? seconds : 0;
}

/** Characters that take no time at all have none: what was negative, say, was cut off at zero. */
function dropTimeless(drafts: readonly Draft[]): void {
  if (drafts.some((draft) => draft.endSeconds > draft.startSeconds)) return;
  const timed = drafts.filter(isTimed);
  if (timed.length < 2) return;
  for (const draft of timed) {
    draft.startSeconds = Number.NaN;
    draft.endSeconds = Number.NaN;
    draft.timing = "estimated";
  }
}

function isRestart(seconds: number, lastSeconds: number): boolean {
  return seconds < RESTART_BELOW_SECONDS && lastSeconds > RESTART_AFTER_SECONDS;
}

function toDraft({ end, startSeconds, endSeconds, isExact }: Placed): Draft {
  const isMoved = startSeconds < 0 || endSeconds < 0;
  return {
    end,
    startSeconds: Math.max(startSeconds, 0),
    endSeconds: Math.max(endSeconds, 0),
    timing: isExact ? (isMoved ? "scaled" : "exact") : "estimated",
  };
}

/** Characters with one of their two times, or that end before they start. */
function fillHalfKnown(drafts: readonly Draft[], audio: ChunkSpan | null): void {
  for (const [i, draft] of drafts.entries()) {
    const hasStart = !Number.isNaN(draft.startSeconds);
    const hasEnd = !Number.isNaN(draft.endSeconds);
    if (hasStart && hasEnd && draft.endSeconds >= draft.startSeconds) continue;
    if (!hasStart && !hasEnd) continue;
    draft.timing = "estimated";
    draft.isEndGuessed = hasStart;
    if (hasStart) draft.endSeconds = guessEnd(draft.startSeconds, drafts[i + 1], audio);
    else draft.startSeconds = guessStart(draft.endSeconds, drafts[i - 1], audio);
  }
}

function guessEnd(startSeconds: number, next: Draft | undefined, audio: ChunkSpan | null): number {
  const until = next === undefined ? audio?.endSeconds : next.startSeconds;
  const length = guessLength((until ?? Number.NaN) - startSeconds, next !== undefined);
  return startSeconds + length;
}

function guessStart(endSeconds: number, before: Draft | undefined, audio: ChunkSpan | null): number {
  const from = before === undefined ? audio?.startSeconds : before.endSeconds;
  const length = guessLength(endSeconds - (from ?? Number.NaN), before !== undefined);
  return Math.max(endSeconds - length, 0);
}

/** `seconds`: from the character to its neighbour, or to the edge of its chunk; NaN = unknown. */
function guessLength(seconds: number, isNeighbour: boolean): number {
  const isLikely = seconds >= -TOLERANCE_SECONDS && (isNeighbour || seconds <= MAX_CHARACTER_SECONDS);
  return isLikely ? Math.max(seconds, 0) : TYPICAL_CHARACTER_SECONDS;
}

/** Makes single times unknown that lie outside the order of their neighbours: too high, or too low. */
function dropOutliers(drafts: readonly Draft[]): void {
  const kept: Draft[] = [];
  for (const [i, draft] of drafts.entries()) {
    if (!isTimed(draft)) continue;
    const last = kept.at(-1);
    const goesBack = last !== undefined && draft.startSeconds < last.startSeconds - TOLERANCE_SECONDS;
    if (!goesBack || (kept.length > 1 && restartsAt(drafts, i, last))) {
      kept.push(draft);
      continue;
    }
    const before = kept.at(-2);
    const isLastTooHigh =
      before === undefined
        ? goesOn(drafts, i, last)
        : draft.startSeconds >= before.startSeconds - TOLERANCE_SECONDS && goesOn(drafts, i, last);
    const outlier = isLastTooHigh ? last : draft;
    outlier.startSeconds = Number.NaN;
    outlier.endSeconds = Number.NaN;
    outlier.timing = "estimated";
    if (isLastTooHigh) kept[kept.length - 1] = draft;
  }
}

/** Whether the clock starts again at this character, and not just this character is wrong. */
function restartsAt(drafts: readonly Draft[], index: number, last: Draft): boolean {
  const draft = drafts[index];
  return draft !== undefined && isRestart(draft.startSeconds, last.endSeconds) && goesOn(drafts, index, last);
}

/** Whether the next time goes on from this character and not from the one before it. */
function goesOn(drafts: readonly Draft[], index: number, last: Draft): boolean {
  const draft = drafts[index];
  const next = drafts.slice(index + 1, index + 9).find(isTimed);
  if (draft === undefined || next === undefined) return draft !== undefined;
  return next.startSeconds >= draft.startSeconds - TOLERANCE_SECONDS && next.startSeconds < last.startSeconds;
}

/** The characters with known times, cut where the clock starts again. */
function splitAtRestarts(drafts: readonly Draft[]): Draft[][] {
  const runs: Draft[][] = [];
  let last = Number.POSITIVE_INFINITY;
  for (const draft of drafts) {
    if (!isTimed(draft)) continue;
    if (draft.startSeconds < last - TOLERANCE_SECONDS) runs.push([]);
    runs.at(-1)?.push(draft);
    last = draft.startSeconds;
  }
  return runs;
}
