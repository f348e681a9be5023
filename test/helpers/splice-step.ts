/** How much a splice of two pieces of audio clicks. */

/**
 * Measure of a click: the step from the last sample of `before` to the first of `after`, against the largest step
 * between neighbours inside either. Pass what lies within 5 ms of the splice on both sides (at 8 kHz 40 samples each).
 * Up to 1 the splice is no steeper than the sound around it; from peak to trough of a 440 Hz tone at 48 kHz gives 35.
 * Where all around is constant it is the step itself, in levels of 16 bits; 0 where either side is empty.
 */
export function spliceStep(before: Int16Array, after: Int16Array): number {
  const last = before[before.length - 1];
  const first = after[0];
  if (last === undefined || first === undefined) return 0;
  return Math.abs(first - last) / Math.max(1, largestStep(before), largestStep(after));
}

function largestStep(pcm: Int16Array): number {
  let largest = 0;
  for (let at = 1; at < pcm.length; at += 1) {
    largest = Math.max(largest, Math.abs((pcm[at] ?? 0) - (pcm[at - 1] ?? 0)));
  }
  return largest;
}
