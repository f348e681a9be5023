/** The places where the piece that is being collected could be cut, by how good they are. */
import type { Boundary, BoundaryRank } from "./boundaries.ts";

const RANKS: readonly BoundaryRank[] = ["sentence", "clause", "word", "weak"];

export class CutPositions {
  // Each rising but for the few that were decided late.
  #sentences: Boundary[] = [];
  #clauses: Boundary[] = [];
  #words: Boundary[] = [];
  #weak: Boundary[] = [];

  add(boundary: Boundary): void {
    this.#of(boundary.rank).push(boundary);
  }

  first(rank: BoundaryRank): number | undefined {
    return this.#of(rank)[0]?.at;
  }

  /** The last place of this rank at or before `max`; -1 = none. */
  last(rank: BoundaryRank, max = Number.POSITIVE_INFINITY): number {
    const places = this.#of(rank);
    for (let i = places.length - 1; i >= 0; i--) {
      const at = places[i]?.at ?? 0;
      if (at <= max) return at;
    }
    return -1;
  }

  /** The last place of at least this rank; -1 = none. */
  lastOfAtLeast(rank: BoundaryRank): number {
    return Math.max(...RANKS.slice(0, RANKS.indexOf(rank) + 1).map((each) => this.last(each)));
  }

  /** Keeps the places that still have something to speak between the cut and them. */
  forget(cut: number): void {
    this.#sentences = behind(this.#sentences, cut);
    this.#clauses = behind(this.#clauses, cut);
    this.#words = behind(this.#words, cut);
    this.#weak = behind(this.#weak, cut);
  }

  /** A look-up by name would be slow: this is asked at every space. */
  #of(rank: BoundaryRank): Boundary[] {
    switch (rank) {
      case "sentence":
        return this.#sentences;
      case "clause":
        return this.#clauses;
      case "word":
        return this.#words;
      case "weak":
        return this.#weak;
    }
  }
}

function behind(places: Boundary[], cut: number): Boundary[] {
  return places.length === 0 ? places : places.filter(({ at, spokenEnd }) => at > cut && spokenEnd > cut);
}
