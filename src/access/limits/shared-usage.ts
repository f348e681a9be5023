/**
 * What the nodes of a cluster say to one another of what keys, tenants and tokens use. Counts are said as they are, what was taken of
 * rates and budgets since the last time. Only what has changed is said; what is held is said again every few seconds.
 */
import { z } from "zod";
import type { Clock } from "../../kit/clock.ts";
import { COUNTED, type Counted, type Meter, RATED, type Rated } from "./meters.ts";

/** A node that says nothing for so long uses nothing, as far as is known. */
const SILENT_MS = 3000;
/** What is held is said again so often; what was not for twice as long is over. */
const REPEAT_MS = 10_000;
const FORGOTTEN_MS = 2 * REPEAT_MS + SILENT_MS;
/** In one message; and that wait to be said. */
const MAX_SCOPES = 200;
const MAX_CHANGED = 20_000;

const amounts = z.array(z.number()).length(2);
const SCOPE = z.strictObject({
  id: z.string().max(512),
  /** In the order of COUNTED. */
  counts: z.array(z.number().int().min(0)).max(32),
  /** By what: how much, and how much drains each millisecond. */
  taken: z.record(z.string(), amounts).exactOptional(),
  /** Characters spent of a budget, and for how long they count, ms. */
  spent: amounts.exactOptional(),
});
const USAGE = z.array(SCOPE).max(MAX_SCOPES);

type ScopeUsage = z.infer<typeof SCOPE>;

interface Change {
  readonly taken: Partial<Record<Rated, [count: number, perMs: number]>>;
  spent: number;
  spentUntilMs: number;
}

interface Heard {
  readonly counts: readonly number[];
  readonly atMs: number;
}

export interface SharedUsageOptions {
  readonly clock: Clock;
  readonly find: (id: string) => Meter | undefined;
  /** null: there are as many as there may be. */
  readonly of: (id: string) => Meter | null;
}

export class SharedUsage {
  readonly #options: SharedUsageOptions;
  /** Not said yet, by id. */
  readonly #changed = new Map<string, Change>();
  /** Ids for which something is counted here. */
  readonly #held = new Set<string>();
  /** By id, then by node. */
  readonly #heard = new Map<string, Map<string, Heard>>();
  /** When each node said something last. */
  readonly #heardAtMs = new Map<string, number>();
  #repeatAtMs: number;

  constructor(options: SharedUsageOptions) {
    this.#options = options;
    this.#repeatAtMs = options.clock.nowMs() + REPEAT_MS;
  }

  /** What the other nodes have of it. */
  countOf(id: string, what: Counted): number {
    const heard = this.#heard.get(id);
    if (heard === undefined) return 0;
    const nowMs = this.#nowMs;
    let count = 0;
    for (const [node, { counts, atMs }] of heard) {
      const isSilent = nowMs - (this.#heardAtMs.get(node) ?? Number.NEGATIVE_INFINITY) >= SILENT_MS;
      if (!isSilent && nowMs - atMs < FORGOTTEN_MS) count += counts[COUNTED.indexOf(what)] ?? 0;
    }
    return count;
  }

  /** One more is counted here, or one less. */
  counted(id: string): void {
    if (isLimited(id)) this.#change(id);
  }

  /** So much more of a rate was taken here. */
  took(id: string, what: Rated, { count, perMs }: { readonly count: number; readonly perMs: number }): void {
    const change = isLimited(id) ? this.#change(id) : null;
    if (change !== null) change.taken[what] = [(change.taken[what]?.[0] ?? 0) + count, perMs];
  }

  /** So much more of a budget was spent here. */
  spent(id: string, characters: number, untilMs: number): void {
    const change = characters === 0 ? null : this.#change(id);
    if (change === null) return;
    change.spent += characters;
    change.spentUntilMs = untilMs;
  }

  /** What is held here is said again: somebody is there who has not heard it. */
  repeat(): void {
    for (const id of this.#held) this.#change(id);
  }

  /** Some of what has changed since the last call, as JSON; null: nothing. */
  changes(): object | null {
    const nowMs = this.#nowMs;
    if (nowMs >= this.#repeatAtMs) {
      this.#repeatAtMs = nowMs + REPEAT_MS;
      this.repeat();
    }
    const usage: ScopeUsage[] = [];
    for (const [id, change] of this.#changed) {
      if (usage.length === MAX_SCOPES) break;
      this.#changed.delete(id);
      usage.push(this.#usageOf(id, change));
    }
    return usage.length === 0 ? null : usage;
  }

  /** A node has said something: maybe that nothing has changed (null). What can't be read is passed over. */
  heard(node: string, value: unknown): void {
    this.#heardAtMs.set(node, this.#nowMs);
    const usage = USAGE.safeParse(value ?? []);
    for (const scope of usage.data ?? []) this.#take(node, scope);
  }

  /** The node is gone. */
  forget(node: string): void {
    this.#heardAtMs.delete(node);
    for (const [id, heard] of this.#heard) {
      heard.delete(node);
      if (heard.size === 0) this.#heard.delete(id);
    }
  }

  get #nowMs(): number {
    return this.#options.clock.nowMs();
  }

  /** null: more has changed than is said. */
  #change(id: string): Change | null {
    const known = this.#changed.get(id);
    if (known !== undefined) return known;
    if (this.#changed.size >= MAX_CHANGED) return null;
    const change: Change = { taken: {}, spent: 0, spentUntilMs: 0 };
    this.#changed.set(id, change);
    return change;
  }

  #usageOf(id: string, { taken, spent, spentUntilMs }: Change): ScopeUsage {
    const meter = this.#options.find(id);
    const counts = COUNTED.map((what) => meter?.count(what) ?? 0);
    if (counts.some((count) => count > 0)) this.#held.add(id);
    else this.#held.delete(id);
    // No end: as JSON has it.
    const leftMs = Math.min(spentUntilMs - this.#nowMs, Number.MAX_SAFE_INTEGER);
    return { id, counts, taken, ...(spent === 0 ? {} : { spent: [spent, leftMs] }) };
  }

  #take(node: string, { id, counts, taken = {}, spent }: ScopeUsage): void {
    const nowMs = this.#nowMs;
    this.#note(id, node, counts);
    for (const what of RATED) {
      const [count, perMs] = taken[what] ?? [];
      if (count === undefined || perMs === undefined) continue;
      this.#options.of(id)?.take(what, { count, rate: { burst: 0, perMs }, nowMs });
    }
    const [characters, leftMs] = spent ?? [];
    if (characters === undefined || leftMs === undefined) return;
    const meter = this.#options.of(id);
    if (meter === null) return;
    meter.spent += characters;
    meter.keptUntilMs = Math.max(meter.keptUntilMs, nowMs + leftMs);
  }

  #note(id: string, node: string, counts: readonly number[]): void {
    const heard = this.#heard.get(id) ?? new Map<string, Heard>();
    if (counts.some((count) => count > 0)) {
      this.#heard.set(id, heard.set(node, { counts, atMs: this.#nowMs }));
      return;
    }
    heard.delete(node);
    if (heard.size === 0) this.#heard.delete(id);
  }
}

/** What the file of keys gives numbers of: there are as many as it has. Subjects and addresses count at each node. */
function isLimited(id: string): boolean {
  return id.startsWith("tenant ") || id.startsWith("key ");
}
