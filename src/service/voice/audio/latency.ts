/** `optimize_streaming_latency`: how much smaller the pieces are that audio is sent in, the sooner to be heard. */

/** Share of the way to the smallest piece by level; the interface gives 1 half and 2 three quarters of what 3 gives. */
const SHARES = [0, 0.5, 0.75, 1] as const;
/** Does as much as the last of them, and turns the text normalizer off. */
export const MAX_LATENCY_LEVEL = 4;

/** How long a piece is at a level: `usual` at 0, `smallest` at 3 and above. */
export function atLatency(level: number, { usual, smallest }: { usual: number; smallest: number }): number {
  return usual - (SHARES[level] ?? 1) * (usual - smallest);
}
