/**
 * Which pauses of a voice stand for which punctuation of its text: the likeliest way to give the one to the other, in order. From
 * one pause to the next a voice speaks about at its rate; it may pass a comma without a pause, seldom a stop, and seldom
 * pauses where there is none.
 */

/** How far from its rate a voice speaks from one pause to the next: the spread of its logarithm, and seconds. */
const RATE_SPREAD = 0.1;
const PAUSE_SPREAD_SECONDS = 0.1;
/** Costs, in the logarithm of how much less likely: of a pause without punctuation, and of punctuation without a pause. */
const ALONE_PAUSE_COST = 4;
const ALONE_STOP_COST = 4;
const ALONE_CLAUSE_COST = 1.5;
/** However far from its rate a voice speaks, this is the highest cost. */
const MAX_APART_COST = 12;
/** So many of each may be alone in a row, where others behind them are not. */
const MAX_ALONE = 4;

export interface PlacedPunctuation {
  /** Weight of the letters before it. */
  readonly weight: number;
  /** It ends a sentence, and not only a clause. */
  readonly isStop: boolean;
}

interface Speech {
  readonly places: readonly PlacedPunctuation[];
  /** Seconds of sound before each pause, rising. */
  readonly pauses: readonly number[];
  /** Seconds of sound in all. */
  readonly soundSeconds: number;
  /** Weight of all text, where that ends with the sound; null: there is more of it than sound. */
  readonly endWeight: number | null;
}

export interface Matched {
  /** The lower, the likelier. */
  readonly cost: number;
  /** Numbers of punctuation and pauses that belong together, rising. */
  readonly pairs: readonly Pair[];
}

/** Punctuation and a pause, by their numbers. */
type Pair = readonly [place: number, pause: number];

/** `weightASecond`: the speaking rate. Time grows with the product of both. */
export function matchPauses(speech: Speech, weightASecond: number): Matched {
  const { soundSeconds, endWeight } = speech;
  // The first of each stands for where it all begins.
  const places = [{ weight: 0, isStop: false }, ...speech.places];
  const pauses = [0, ...speech.pauses];
  const width = pauses.length;
  const costs = new Float64Array(places.length * width).fill(Number.POSITIVE_INFINITY);
  const froms = new Int32Array(places.length * width).fill(-1);
  costs[0] = 0;
  let best = { cost: Number.POSITIVE_INFINITY, at: 0 };
  for (let at = 0; at < costs.length; at += 1) {
    const [place, pause] = [Math.floor(at / width), at % width];
    if (place > 0 && pause > 0) meet(place, pause);
    const cost = (costs[at] ?? 0) + costBehind(place, pause);
    if (cost < best.cost) best = { cost, at };
  }
  const pairs: [number, number][] = [];
  for (let at = best.at; at > 0; at = froms[at] ?? 0)
    pairs.unshift([Math.floor(at / width) - 1, (at % width) - 1]);
  return { cost: best.cost, pairs };

  function meet(place: number, pause: number): void {
    const at = place * width + pause;
    let alonePlacesCost = 0;
    for (let place0 = place - 1; place0 >= 0 && place - place0 <= MAX_ALONE + 1; place0 -= 1) {
      const expected = ((places[place]?.weight ?? 0) - (places[place0]?.weight ?? 0)) / weightASecond;
      for (let pause0 = pause - 1; pause0 >= 0 && pause - pause0 <= MAX_ALONE + 1; pause0 -= 1) {
        const from = place0 * width + pause0;
        const before = (costs[from] ?? 0) + alonePlacesCost + (pause - pause0 - 1) * ALONE_PAUSE_COST;
        if (before >= (costs[at] ?? 0)) continue;
        const cost = before + apartCost(expected, (pauses[pause] ?? 0) - (pauses[pause0] ?? 0));
        if (cost >= (costs[at] ?? 0)) continue;
        costs[at] = cost;
        froms[at] = from;
      }
      alonePlacesCost += aloneCost(places[place0]);
    }
  }

  /** The cost of what is behind the last pair. */
  function costBehind(place: number, pause: number): number {
    const seconds = soundSeconds - (pauses[pause] ?? 0);
    const weight = places[place]?.weight ?? 0;
    let cost = (width - 1 - pause) * ALONE_PAUSE_COST;
    if (endWeight !== null) cost += apartCost((endWeight - weight) / weightASecond, seconds);
    for (let next = place + 1; next < places.length; next += 1) {
      const expected = ((places[next]?.weight ?? 0) - weight) / weightASecond;
      if (endWeight === null && expected >= seconds) break;
      // It may be spoken somewhat slower, and come only then.
      const lateCost = endWeight === null ? apartCost(expected, seconds) : Number.POSITIVE_INFINITY;
      cost += Math.min(lateCost, aloneCost(places[next]));
    }
    return cost;
  }
}

function aloneCost(place: PlacedPunctuation | undefined): number {
  return place?.isStop === true ? ALONE_STOP_COST : ALONE_CLAUSE_COST;
}

function apartCost(expectedSeconds: number, seconds: number): number {
  const spread = Math.hypot(RATE_SPREAD * Math.max(expectedSeconds, seconds), PAUSE_SPREAD_SECONDS);
  const spreads = (expectedSeconds - seconds) / spread;
  return Math.min(MAX_APART_COST, (spreads * spreads) / 2);
}
