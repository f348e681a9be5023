/** What is measured of samples, and random numbers to make some. */

/** Root mean square. */
export function levelOf(pcm: ArrayLike<number>, from = 0, to = pcm.length): number {
  let sum = 0;
  for (let at = from; at < to; at += 1) sum += (pcm[at] ?? 0) ** 2;
  return Math.sqrt(sum / Math.max(1, to - from));
}

/** Correlation of two signals, -1..1, where `b` is read `lag` samples later. */
export function correlation(
  a: ArrayLike<number>,
  b: ArrayLike<number>,
  { lag = 0, from = 0, to = a.length }: { lag?: number; from?: number; to?: number } = {},
): number {
  let [ab, aa, bb] = [0, 0, 0];
  for (let at = from; at < to; at += 1) {
    const x = a[at] ?? 0;
    const y = b[at + lag] ?? 0;
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  return ab / Math.sqrt(aa * bb + 1e-9);
}

/** Samples by which `b` comes later than `a`, within `reach`. */
export function lagOf(a: ArrayLike<number>, b: ArrayLike<number>, reach: number): number {
  let best = { lag: 0, value: -1 };
  for (let lag = -reach; lag <= reach; lag += 1) {
    const value = correlation(a, b, { lag, from: reach, to: a.length - reach });
    if (value > best.value) best = { lag, value };
  }
  return best.lag;
}

/** Numbers from 0 to 1 that are the same each time. */
export function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
}
