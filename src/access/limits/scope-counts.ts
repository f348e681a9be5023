/** Counts in scopes. What a caller does counts in all of its scopes or in none: each is asked before anything is taken. */
import type { Clock } from "../../kit/clock.ts";
import type { Rate } from "./bucket.ts";
import { LimitError, type RateState } from "./limit-error.ts";
import type { Counted, Meter, Meters, Rated } from "./meters.ts";
import type { Scope } from "./scopes.ts";
import { SharedUsage } from "./shared-usage.ts";

/** When it is worth trying again where a count is full, ms. */
const RETRY_FULL_MS = 5000;
const RETRY_UTTERANCE_MS = 1000;

/** What is said in one go. */
export interface Spending {
  readonly characters: number;
  readonly utterances: number;
}

/** Most of a budget is spent. */
export interface LowBudget {
  /** Whose it is, as errors name it, and as the audit log does. */
  readonly name: string;
  readonly id: string;
  /** Characters. */
  readonly spent: number;
  readonly limit: number;
}

/** Share of a budget from which on it is low. */
const LOW_SHARE = 0.8;

export interface ScopeCountsOptions {
  readonly clock: Clock;
  /** Once for each budget. */
  readonly onLow?: ((low: LowBudget) => void) | undefined;
  /** Whose numbers count at all nodes. */
  readonly callers: Meters;
}

export class ScopeCounts {
  readonly #options: ScopeCountsOptions;
  /** null: the gateway is alone. */
  #shared: SharedUsage | null = null;

  constructor(options: ScopeCountsOptions) {
    this.#options = options;
  }

  /** From now on what other nodes have counts, too. */
  share(): SharedUsage {
    const { callers, clock } = this.#options;
    this.#shared ??= new SharedUsage({
      clock,
      find: (id) => callers.find(id),
      of: (id) => callers.of(id, clock.nowMs()),
    });
    return this.#shared;
  }

  /** Gives the budgets that it has made low. Throws rate_limited, budget_exhausted, text_too_long. */
  spend(scopes: readonly Scope[], { characters, utterances }: Spending): readonly LowBudget[] {
    for (const scope of scopes) this.#mustAfford(scope, characters);
    for (const scope of scopes) {
      this.mustRate(scope, "characters_per_minute", characters);
      this.mustRate(scope, "utterances_per_minute", utterances);
    }
    return scopes.flatMap((scope) => this.pay(scope, characters, utterances) ?? []);
  }

  giveBack(scopes: readonly Scope[], { characters, utterances }: Spending): void {
    for (const scope of scopes) this.pay(scope, -characters, -utterances);
  }

  /** Even where it is more than there is. A negative number gives back. null: its budget has not become low. */
  pay(scope: Scope, characters: number, utterances: number): LowBudget | null {
    this.take(scope, "characters_per_minute", characters);
    this.take(scope, "utterances_per_minute", utterances);
    if (scope.budget === undefined) return null;
    const meter = this.#meterOf(scope);
    meter.spent += characters;
    meter.keptUntilMs = scope.budget.untilMs;
    this.#shared?.spent(scope.id, characters, scope.budget.untilMs);
    return characters > 0 ? this.#lowOf(scope, meter) : null;
  }

  /** Only the first time. What other nodes have spent is told by them. */
  #lowOf({ id, name, budget }: Scope, meter: Meter): LowBudget | null {
    const limit = budget?.characters ?? 0;
    if (meter.isLowTold || meter.spent < limit * LOW_SHARE) return null;
    meter.isLowTold = true;
    const low = { name, id, spent: meter.spent, limit };
    this.#options.onLow?.(low);
    return low;
  }

  /** May cost so many characters at most, and nobody knows how many: gives what ends it. Throws rate_limited. */
  open(scopes: readonly Scope[], characters: number): () => void {
    const limited = scopes.filter(({ budget }) => budget !== undefined);
    for (const scope of limited) this.#mustOpen(scope, characters);
    const meters = limited.map((scope) => this.#meterOf(scope));
    for (const meter of meters) meter.open += characters;
    return () => {
      for (const meter of meters) meter.open -= characters;
    };
  }

  /** At all nodes. */
  countIn({ id, meters }: Scope, what: Counted): number {
    return (meters.find(id)?.count(what) ?? 0) + (this.#shared?.countOf(id, what) ?? 0);
  }

  /** One more at once: gives what ends it (idempotent). Throws connection_limit, session_limit, listener_limit, rate_limited. */
  hold(scopes: readonly Scope[], what: Counted): () => void {
    for (const scope of scopes) this.mustCount(scope, what);
    const held: { readonly meter: Meter; readonly id: string }[] = [];
    const letGo = (): void => {
      for (const { meter, id } of held.splice(0)) {
        meter.add(what, -1);
        this.#shared?.counted(id);
      }
    };
    try {
      for (const scope of scopes) {
        if (scope.bounds[what] === undefined) continue;
        const meter = this.#meterOf(scope);
        // At once: the next scope's meter may take the place of one of which nothing is counted.
        meter.add(what, 1);
        held.push({ meter, id: scope.id });
        this.#shared?.counted(scope.id);
      }
    } catch (thrown) {
      letGo();
      throw thrown;
    }
    return letGo;
  }

  /** Without asking whether there may be more. */
  take(scope: Scope, what: Rated, count: number): void {
    const rate = scope.bounds[what];
    if (rate === undefined || count === 0) return;
    this.#meterOf(scope).take(what, { count, rate, nowMs: this.#nowMs });
    this.#shared?.took(scope.id, what, { count, perMs: rate.perMs });
  }

  mustCount(scope: Scope, what: Counted): void {
    const limit = scope.bounds[what];
    if (limit === undefined || this.countIn(scope, what) < limit) return;
    const code = CODES[what];
    throw new LimitError(code, `${scope.name} has ${limit} ${NAMES[what]} at once, which is its limit`, {
      rate: { limit, remaining: 0, resetMs: RETRY_FULL_MS },
      retryAfterMs: what === "utterances" || what === "proxied_requests" ? RETRY_UTTERANCE_MS : RETRY_FULL_MS,
    });
  }

  mustRate(scope: Scope, what: Rated, count: number): void {
    const rate = scope.bounds[what];
    if (rate === undefined || count === 0) return;
    const state = this.rateState(scope, what, rate);
    if (count <= state.remaining) return;
    if (count > rate.burst) {
      const message = `Too long: it costs ${count} characters, and ${scope.name.toLowerCase()} may have ${rate.burst} spoken in a minute`;
      throw new LimitError("text_too_long", message, { rate: state });
    }
    throw new LimitError("rate_limited", `${scope.name} ${REASONS[what]}: try again later`, {
      rate: state,
      retryAfterMs: Math.ceil((count - state.remaining) / rate.perMs),
    });
  }

  /** Counted apart from other bodies: who is slowed down is not refused something else for it. Gives how long it is over its rate, ms. */
  streamed({ id, meters, bounds: { upload_bytes: rate } }: Scope, bytes: number): number {
    if (rate === undefined) return 0;
    const nowMs = this.#nowMs;
    const meter = meters.of(id, nowMs);
    // Nobody more can be counted.
    if (meter === null) return Number.POSITIVE_INFINITY;
    meter.take("upload_bytes", { count: bytes, rate, nowMs });
    return Math.max(0, meter.level("upload_bytes", rate, nowMs) - rate.burst) / rate.perMs;
  }

  #mustOpen({ id, name, meters, budget }: Scope, characters: number): void {
    const meter = meters.find(id);
    if (budget === undefined || meter === undefined || meter.open === 0) return;
    const limit = budget.characters;
    const remaining = limit - meter.spent;
    if (meter.open + characters <= remaining) return;
    const message = `${name} has ${Math.max(0, remaining)} characters left of ${limit}, and what is under way may cost them: try again when it is done`;
    throw new LimitError("rate_limited", message, {
      rate: { limit, remaining, resetMs: 0 },
      retryAfterMs: RETRY_FULL_MS,
    });
  }

  #mustAfford(scope: Scope, characters: number): void {
    const { budget } = scope;
    if (budget === undefined || characters === 0) return;
    const limit = budget.characters;
    const remaining = limit - (scope.meters.find(scope.id)?.spent ?? 0);
    if (characters <= remaining) return;
    const message =
      limit === 0
        ? `${scope.name} may have nothing spoken: its budget is 0 characters`
        : `${scope.name} has ${Math.max(0, remaining)} characters left of ${limit}, and this costs ${characters}`;
    throw new LimitError("budget_exhausted", message, { rate: { limit, remaining, resetMs: 0 } });
  }

  rateState(scope: Scope, what: Rated, rate: Rate): RateState {
    const level = scope.meters.find(scope.id)?.level(what, rate, this.#nowMs) ?? 0;
    return { limit: rate.burst, remaining: rate.burst - level, resetMs: Math.ceil(level / rate.perMs) };
  }

  /** Throws rate_limited. */
  #meterOf({ id, meters }: Scope): Meter {
    const meter = meters.of(id, this.#nowMs);
    if (meter !== null) return meter;
    throw new LimitError("rate_limited", "The gateway counts for as many callers as it may", {
      rate: { limit: meters.size, remaining: 0, resetMs: RETRY_FULL_MS },
      retryAfterMs: RETRY_FULL_MS,
    });
  }

  get #nowMs(): number {
    return this.#options.clock.nowMs();
  }
}

const CODES = {
  connections: "connection_limit",
  sessions: "session_limit",
  utterances: "rate_limited",
  proxied_requests: "rate_limited",
  mp3_streams: "listener_limit",
  opus_renditions: "listener_limit",
  rtp_ports: "listener_limit",
} as const satisfies Record<Counted, string>;

const NAMES = {
  connections: "connections",
  sessions: "sessions",
  utterances: "utterances",
  proxied_requests: "requests for the upstream",
  mp3_streams: "MP3 streams",
  opus_renditions: "Opus renditions",
  rtp_ports: "RTP ports",
} as const satisfies Record<Counted, string>;

const REASONS = {
  opens: "opens connections faster than it may",
  body_bytes: "sends more bytes of requests than it may",
  upload_bytes: "sends more bytes of uploads than it may",
  failures: "has sent too many keys or tokens that do not hold",
  characters_per_minute: "has as many characters spoken in a minute as it may",
  utterances_per_minute: "has as many utterances spoken in a minute as it may",
} as const satisfies Record<Rated, string>;
