/**
 * Which pauses of a voice stand for which marks of its text: the likeliest way to give the one to the other, in order. From
 * one pause to the next a voice speaks about at its pace; it may pass a comma without a pause, seldom a stop, and seldom
 * pauses where no mark is.
 */

/** How far from its pace a voice speaks from one pause to the next: of the logarithm, and seconds. */
const PACE_SPREAD = 0.1;
const PAUSE_SPREAD_SECONDS = 0.1;
/** Costs, in the logarithm of how much less likely: of a pause without a mark, and of a mark without a pause. */
const ALONE_PAUSE_COST = 4;
const ALONE_STOP_COST = 4;
const ALONE_CLAUSE_COST = 1.5;
/** However far from it. */
const MAX_APART_COST = 12;
/** So many of each may be alone in a row, where others behind them are not. */
const MAX_ALONE = 4;

export interface PlacedMark {
  /** Of the letters before it. */
  readonly weight: number;
  /** Of a sentence's end, not of a clause's. */
  readonly isStop: boolean;
}

export interface Speech {
  readonly marks: readonly PlacedMark[];
  /** Seconds of sound before each pause, rising. */
  readonly pauses: readonly number[];
  /** Seconds of sound in all. */
  readonly soundSeconds: number;
  /** Weight of all text, where that ends with the sound; null: there is more of it than sound. */
  readonly endWeight: number | null;
}

export interface Matched {
  /** The less the likelier. */
  readonly cost: number;
  /** Numbers of marks and pauses that belong together, rising. */
  readonly pairs: readonly Pair[];
}

/** A mark and a pause, by their numbers. */
export type Pair = readonly [mark: number, pause: number];

/**
 * `weightASecond`: the pace. Time grows with the product of marks and pauses. `without`: the likeliest way that does not
 * give this pause to this mark.
 */
export function matchMarks(speech: Speech, weightASecond: number, without?: Pair): Matched {
  const { soundSeconds, endWeight } = speech;
  // The first of each stands for where it all begins.
  const marks = [{ weight: 0, isStop: false }, ...speech.marks];
  const pauses = [0, ...speech.pauses];
  const width = pauses.length;
  const costs = new Float64Array(marks.length * width).fill(Number.POSITIVE_INFINITY);
  const froms = new Int32Array(marks.length * width).fill(-1);
  costs[0] = 0;
  let best = { cost: Number.POSITIVE_INFINITY, at: 0 };
  for (let at = 0; at < costs.length; at += 1) {
    const [mark, pause] = [Math.floor(at / width), at % width];
    const isBarred = without?.[0] === mark - 1 && without[1] === pause - 1;
    if (mark > 0 && pause > 0 && !isBarred) meet(mark, pause);
    const cost = (costs[at] ?? 0) + costBehind(mark, pause);
    if (cost < best.cost) best = { cost, at };
  }
  const pairs: [number, number][] = [];
  for (let at = best.at; at > 0; at = froms[at] ?? 0)
    pairs.unshift([Math.floor(at / width) - 1, (at % width) - 1]);
  return { cost: best.cost, pairs };

  function meet(mark: number, pause: number): void {
    const at = mark * width + pause;
    let aloneMarksCost = 0;
    for (let mark0 = mark - 1; mark0 >= 0 && mark - mark0 <= MAX_ALONE + 1; mark0 -= 1) {
      const expected = ((marks[mark]?.weight ?? 0) - (marks[mark0]?.weight ?? 0)) / weightASecond;
      for (let pause0 = pause - 1; pause0 >= 0 && pause - pause0 <= MAX_ALONE + 1; pause0 -= 1) {
        const from = mark0 * width + pause0;
        const before = (costs[from] ?? 0) + aloneMarksCost + (pause - pause0 - 1) * ALONE_PAUSE_COST;
        if (before >= (costs[at] ?? 0)) continue;
        const cost = before + apartCost(expected, (pauses[pause] ?? 0) - (pauses[pause0] ?? 0));
        if (cost >= (costs[at] ?? 0)) continue;
        costs[at] = cost;
        froms[at] = from;
      }
      aloneMarksCost += aloneCost(marks[mark0]);
    }
  }

  /** Of what is behind the last pair. */
  function costBehind(mark: number, pause: number): number {
    const seconds = soundSeconds - (pauses[pause] ?? 0);
    const weight = marks[mark]?.weight ?? 0;
    let cost = (width - 1 - pause) * ALONE_PAUSE_COST;
    if (endWeight !== null) cost += apartCost((endWeight - weight) / weightASecond, seconds);
    for (let next = mark + 1; next < marks.length; next += 1) {
      const expected = ((marks[next]?.weight ?? 0) - weight) / weightASecond;
      if (endWeight === null && expected >= seconds) break;
      // It may be spoken somewhat slower, and come only then.
      const lateCost = endWeight === null ? apartCost(expected, seconds) : Number.POSITIVE_INFINITY;
      cost += Math.min(lateCost, aloneCost(marks[next]));
    }
    return cost;
  }
}

function aloneCost(mark: PlacedMark | undefined): number {
  return mark?.isStop === true ? ALONE_STOP_COST : ALONE_CLAUSE_COST;
}

function apartCost(expectedSeconds: number, seconds: number): number {
  const spread = Math.hypot(PACE_SPREAD * Math.max(expectedSeconds, seconds), PAUSE_SPREAD_SECONDS);
  const spreads = (expectedSeconds - seconds) / spread;
  return Math.min(MAX_APART_COST, (spreads * spreads) / 2);
}
