/** The places where the piece that is being collected could be cut, by how good they are. */
import type { Boundary, BoundaryRank } from "./boundaries.ts";

const RANKS: readonly BoundaryRank[] = ["sentence", "clause", "word", "weak"];

export class CutPositions {
  /** Each rising but for the few that were decided late. */
  readonly #places: Record<BoundaryRank, Boundary[]> = { sentence: [], clause: [], word: [], weak: [] };

  add(boundary: Boundary): void {
    this.#places[boundary.rank].push(boundary);
  }

  first(rank: BoundaryRank): number | undefined {
    return this.#places[rank][0]?.at;
  }

  /** The last place of this rank at or before `max`; -1 = none. */
  last(rank: BoundaryRank, max = Number.POSITIVE_INFINITY): number {
    return this.#places[rank].findLast(({ at }) => at <= max)?.at ?? -1;
  }

  /** The last place of at least this rank; -1 = none. */
  lastOfAtLeast(rank: BoundaryRank): number {
    return Math.max(...RANKS.slice(0, RANKS.indexOf(rank) + 1).map((each) => this.last(each)));
  }

  /** Keeps the places that still have something to speak between the cut and them. */
  forget(cut: number): void {
    for (const rank of RANKS) {
      this.#places[rank] = this.#places[rank].filter(({ at, spokenEnd }) => at > cut && spokenEnd > cut);
    }
  }
}
