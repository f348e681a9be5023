/** How units become the lines of a cue, and where a run of units is best cut into cues. */

import type { TimedWord } from "../timed.ts";
import type { Unit } from "./cue-units.ts";

export interface CueWord extends TimedWord {
  /** UTF-16 index in its line where the word's part of the line begins, opening marks included. */
  readonly at: number;
}

export interface CueLine {
  readonly text: string;
  readonly words: readonly CueWord[];
}

/** Whether the units fit into two lines, filled from the top. */
export function fitsTwoLines(units: readonly Unit[], maxColumns: number): boolean {
  let lines = 1;
  let used = 0;
  for (const unit of units) {
    const { columns } = unit;
    const space = used > 0 && unit.hasSpaceBefore ? 1 : 0;
    if (used + space + columns <= maxColumns) used += space + columns;
    else {
      lines += 1;
      used = columns;
    }
  }
  return lines <= 2;
}

/** One line where it fits; else two, broken at a clause or near the middle, the lower one rather the longer. */
export function layOut(units: readonly Unit[], maxColumns: number): CueLine[] {
  if (columnsOfLine(units) <= maxColumns) return [lineOf(units)];
  let best = 1;
  let bestCost = Number.POSITIVE_INFINITY;
  for (let i = 1; i < units.length; i++) {
    const upper = columnsOfLine(units.slice(0, i));
    const lower = columnsOfLine(units.slice(i));
    if (upper > maxColumns || lower > maxColumns) continue;
    const bonus = { sentence: 16, clause: 10, word: 0 }[units[i - 1]?.rank ?? "word"];
    // An article or preposition at the end of a line is read against the word that it belongs to.
    const malus = /^\p{L}{1,3}$/u.test(units[i - 1]?.shown ?? "") ? 6 : 0;
    const cost = Math.abs(upper - lower) + (upper > lower ? 2 : 0) + malus - bonus;
    if (cost < bestCost) [best, bestCost] = [i, cost];
  }
  return [lineOf(units.slice(0, best)), lineOf(units.slice(best))];
}

/** How many units the next cue takes, where not all fit: up to the last sentence end, else clause, that is no crumb. */
export function bestCut(units: readonly Unit[]): number {
  const total = columnsOfLine(units);
  const cutAfter = (rank: Unit["rank"], share: number): number => {
    for (let count = units.length; count > 0; count--) {
      if (units[count - 1]?.rank !== rank) continue;
      if (columnsOfLine(units.slice(0, count)) >= total * share) return count;
    }
    return 0;
  };
  return cutAfter("sentence", 0.25) || cutAfter("clause", 0.4) || units.length;
}

export function columnsOfLine(units: readonly Unit[]): number {
  let columns = 0;
  for (const [i, unit] of units.entries()) {
    columns += unit.columns + (i > 0 && unit.hasSpaceBefore ? 1 : 0);
  }
  return columns;
}

function lineOf(units: readonly Unit[]): CueLine {
  let text = "";
  const words: CueWord[] = [];
  for (const unit of units) {
    if (text !== "" && unit.hasSpaceBefore) text += " ";
    words.push({ ...unit.word, at: text.length });
    text += unit.shown;
  }
  return { text, words };
}
