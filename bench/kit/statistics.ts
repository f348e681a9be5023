/** Summaries of samples. */

/** The value that a share `fraction` (0-1) of the samples does not exceed (nearest rank); NaN without samples. */
export function percentile(samples: readonly number[], fraction: number): number {
  const sorted = [...samples].sort((left, right) => left - right);
  const rank = Math.ceil(fraction * sorted.length) - 1;
  return sorted[Math.max(0, Math.min(rank, sorted.length - 1))] ?? Number.NaN;
}

/** The middle sample, or the mean of the two in the middle. */
export function median(samples: readonly number[]): number {
  const sorted = [...samples].sort((left, right) => left - right);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** Least-squares slope through [x, y] points; NaN for fewer than two. */
export function slope(points: readonly (readonly [number, number])[]): number {
  const mean = (index: 0 | 1): number =>
    points.reduce((total, point) => total + point[index], 0) / points.length;
  const [meanX, meanY] = [mean(0), mean(1)];
  let [xx, xy] = [0, 0];
  for (const [x, y] of points) {
    xx += (x - meanX) ** 2;
    xy += (x - meanX) * (y - meanY);
  }
  return xx > 0 ? xy / xx : Number.NaN;
}
