/** Sums of ledger lines by what they have in common. A sum says how much of it was counted, and what nobody knows. */
import { createHash } from "node:crypto";
import { GatewayError } from "../errors.ts";
import type { ReadLine } from "./read-ledger.ts";

export const GROUPINGS = ["tenant", "key", "model", "voice", "upstream", "node", "day", "hour"] as const;
export type Grouping = (typeof GROUPINGS)[number];

export interface UsageRow {
  /** What it is the sum of, in the order that was asked for. */
  readonly group: Readonly<Partial<Record<Grouping, string>>>;
  /** Billed, or where the upstream has not said that, counted; null: nothing of it is known. */
  readonly characters: number | null;
  /** Those of them that were counted. */
  readonly counted: number;
  readonly requests: number;
  /** Requests whose characters nobody knows. */
  readonly unknown: number;
  readonly cached: number;
  readonly audioMs: number;
  readonly charactersHeard: number;
  readonly heardMs: number;
}

type Sum = { -readonly [K in Exclude<keyof UsageRow, "group" | "characters">]: number } & {
  characters: number;
};

/** More would not be read by anybody. */
const MAX_ROWS = 200_000;
const HOUR_MS = 3_600_000;
/** Lines of an hour are written at most a second behind it; a clock of another node may be off. */
const CLOSED_AFTER_MS = 120_000;

/** What nothing adds up to. */
export const NO_SUM = {
  characters: 0,
  counted: 0,
  requests: 0,
  unknown: 0,
  cached: 0,
  audioMs: 0,
  charactersHeard: 0,
  heardMs: 0,
};

export class UsageSums {
  readonly #by: readonly Grouping[];
  readonly #sums = new Map<string, { readonly values: readonly string[]; readonly sum: Sum }>();

  constructor(by: readonly Grouping[]) {
    this.#by = by;
  }

  /** Throws invalid_config where there are too many groups. */
  add(line: ReadLine): void {
    // What was heard may have come from several upstreams.
    if (line.spent.type === "heard" && this.#by.includes("upstream")) return;
    const sum = this.#sumOf(this.#by.map((grouping) => groupValue(line, grouping)));
    const { spent } = line;
    if (spent.type === "heard") {
      sum.charactersHeard += spent.characters;
      sum.heardMs += spent.ms;
      return;
    }
    sum.requests += 1;
    sum.audioMs += spent.audioMs;
    if (spent.isCached) sum.cached += 1;
    if (spent.characters === null) sum.unknown += 1;
    else sum.characters += spent.characters;
    if (spent.isCounted) sum.counted += spent.characters ?? 0;
  }

  /** Sorted by what they are the sums of. */
  rows(): UsageRow[] {
    return [...this.#sums.entries()]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([, { values, sum }]) => {
        const group = Object.fromEntries(this.#by.map((grouping, index) => [grouping, values[index] ?? ""]));
        const isUnknown = sum.unknown > 0 && sum.unknown === sum.requests;
        return { ...sum, group, characters: isUnknown ? null : sum.characters };
      });
  }

  #sumOf(values: readonly string[]): Sum {
    const key = JSON.stringify(values);
    const known = this.#sums.get(key);
    if (known !== undefined) return known.sum;
    if (this.#sums.size >= MAX_ROWS) {
      const message = `More than ${MAX_ROWS} rows: expected fewer fields in --by, or a shorter time`;
      throw new GatewayError("invalid_config", message, { field: "by" });
    }
    const sum: Sum = { ...NO_SUM };
    this.#sums.set(key, { values, sum });
    return sum;
  }
}

/** The end of the last hour to which no line is added any more, Unix ms. */
export function closedUntilMs(nowMs: number): number {
  return Math.floor((nowMs - CLOSED_AFTER_MS) / HOUR_MS) * HOUR_MS;
}

/** The same whenever the same hour is summed again: who takes it in twice can tell. */
export function identifierOf({ group }: UsageRow, meter: string): string {
  const { tenant = "", hour = "", node = "", ...others } = group;
  const facts = JSON.stringify([tenant, hour, meter, node, ...Object.entries(others).sort()]);
  return `vw_${createHash("sha256").update(facts).digest("base64url")}`;
}

function groupValue(line: ReadLine, grouping: Grouping): string {
  switch (grouping) {
    case "day":
      return new Date(line.atMs).toISOString().slice(0, "2026-01-31".length);
    case "hour":
      return `${new Date(line.atMs).toISOString().slice(0, "2026-01-31T12".length)}:00:00Z`;
    case "upstream":
      return line.spent.type === "request" ? line.spent.upstream : "";
    default:
      return line[grouping];
  }
}
