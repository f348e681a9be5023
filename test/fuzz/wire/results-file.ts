/** Figures of runs that held, a row for each name: runs of other seeds add up. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";

export interface SeededRow {
  readonly name: string;
  /** Of each run that is in it: the same one would make the same inputs. */
  readonly seeds: readonly number[];
}

export class ResultsFile<Row extends SeededRow> {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  get rows(): readonly Row[] {
    return existsSync(this.#path) ? (JSON.parse(readFileSync(this.#path, "utf8")) as Row[]) : [];
  }

  /** The first that `name` has not had. */
  newSeed(name: string): number {
    return Math.max(0, ...(this.rows.find((row) => row.name === name)?.seeds ?? [])) + 1;
  }

  /** A run whose seed is in the row takes the place of all runs in it. */
  add(row: Row, sumOf: (earlier: Row, later: Row) => Row): void {
    const earlier = this.rows.find(({ name }) => name === row.name);
    const isNew = earlier !== undefined && !earlier.seeds.some((seed) => row.seeds.includes(seed));
    const others = this.rows.filter(({ name }) => name !== row.name);
    const rows = [...others, isNew ? sumOf(earlier, row) : row];
    rows.sort((one, other) => (one.name < other.name ? -1 : 1));
    writeFileSync(this.#path, `${JSON.stringify(rows, null, 2)}\n`);
  }
}
