/** How much of what all nodes may have at once each of them gets. Pure: from the same wishes all come to the same shares. */

/**
 * Who wants less than an equal share gets what they want, the others share the rest equally; what nobody wants is shared equally, too,
 * so that who begins need not wait for the others. `wanted` by node; at least 1 each.
 */
export function upstreamShares(total: number, wanted: readonly number[]): number[] {
  const shares = wanted.map(() => 0);
  let left = total;
  let open = wanted.map((_, index) => index);
  for (;;) {
    const equal = left / open.length;
    const modest = open.filter((index) => (wanted[index] ?? 0) <= equal);
    if (modest.length === 0) break;
    for (const index of modest) {
      shares[index] = wanted[index] ?? 0;
      left -= wanted[index] ?? 0;
    }
    open = open.filter((index) => !modest.includes(index));
  }
  const takers = open.length > 0 ? open : shares.map((_, index) => index);
  // Whole ones: the first of them get what is over.
  for (const [place, index] of takers.entries()) {
    shares[index] = (shares[index] ?? 0) + Math.floor((left + takers.length - 1 - place) / takers.length);
  }
  return shares.map((share) => Math.max(1, share));
}
