/** Did-you-mean: the known word nearest to a mistyped one. */

/** The nearest of `known`, or undefined where none is near enough to be what was meant. */
export function nearest(typed: string, known: readonly string[]): string | undefined {
  const wanted = typed.toLowerCase();
  let best: string | undefined;
  // A third of the word wrong is still a typo; more is another word.
  let bestDistance = Math.floor(Math.max(wanted.length, 3) / 3) + 1;
  for (const candidate of known) {
    const distance = editDistance(wanted, candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  // A beginning of a longer word is meant even though its distance is large ("--upstream" for "--upstream-url").
  return (
    best ?? (wanted.length >= 3 ? known.find((name) => name.toLowerCase().startsWith(wanted)) : undefined)
  );
}

/** `; did you mean "x"?` or nothing: to be put at the end of an error message. */
export function didYouMean(typed: string, known: readonly string[], prefix = ""): string {
  const best = nearest(typed, known);
  return best === undefined ? "" : `; did you mean "${prefix}${best}"?`;
}

/** Fewest insertions, deletions, replacements and swaps of neighbours that turn `from` into `to`. */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const cost = from[i - 1] === to[j - 1] ? 0 : 1;
      let cell = Math.min(at(row, j - 1) + 1, at(last, j) + 1, at(last, j - 1) + cost);
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]) {
        cell = Math.min(cell, at(beforeLast, j - 2) + 1);
      }
      row.push(cell);
    }
    beforeLast = last;
    last = row;
  }
  return at(last, to.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}
