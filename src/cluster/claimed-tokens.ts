/**
 * Single-use tokens that were used at one of the nodes: an entry for each in the store, written by the node that lets its holder in.
 * That node releases it once the token has expired. What a node that is gone has left is released by the first node of the list.
 */
import { createHash } from "node:crypto";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Clock, Timer } from "../kit/clock.ts";
import { type Logger, silentLog } from "../kit/log.ts";
import type { Bus, BusHandle, Entry } from "./bus/bus.ts";
import type { NodeRegistry } from "./bus/node-registry.ts";

export interface ClaimedTokensOptions {
  readonly bus: Bus;
  readonly nodes: Pick<NodeRegistry, "name" | "incarnation" | "nodes">;
  readonly clock: Clock;
  /** Milliseconds since 1970: tokens expire by the wall clock. */
  readonly wallMs: () => number;
  readonly log?: Logger;
}

interface Held {
  readonly untilMs: number;
  /** On the monotonic clock: a wall clock that jumps makes no used token good again. */
  readonly endsAtMs: number;
  /** null: the store has not answered yet. */
  entry: Entry | null;
}

const PREFIX = "token.";
/** Used here and not expired. */
const MAX_HELD = 200_000;
/** Claims that wait for the store at the same time. */
const MAX_WAITING = 4096;
const RETRY_MS = 1000;
const ROUND_MS = 10_000;
/** Rounds between two searches for what other nodes have left. */
const SEARCH_ROUNDS = 60;
/** What was left is kept so long beyond its end: clocks of two machines differ. */
const LEFT_MS = 3_600_000;
/** Entries that one round releases. */
const RELEASED_A_ROUND = 1000;
/** Entries that are written again at the same time. */
const WRITTEN_AT_ONCE = 64;

export class ClaimedTokens {
  readonly #options: ClaimedTokensOptions;
  /** By key. */
  readonly #held = new Map<string, Held>();
  readonly #state: BusHandle;
  #waiting = 0;
  #rounds = 0;
  #timer: Timer;

  constructor(options: ClaimedTokensOptions) {
    this.#options = options;
    const { bus } = options;
    this.#state = bus.onState((state) => {
      if (state === "up") void this.#writeAgain();
    });
    this.#timer = this.#nextRound();
  }

  /** Tokens used here that have not expired. */
  get held(): number {
    return this.#held.size;
  }

  /** See access/other-nodes.ts. */
  async claimToken(name: string, untilMs: number): Promise<boolean> {
    const key = keyOf(name);
    if (this.#held.has(key)) return false;
    if (this.#waiting >= MAX_WAITING || this.#held.size >= MAX_HELD) throw tooMany();
    const { clock, wallMs } = this.#options;
    const held: Held = { untilMs, endsAtMs: clock.nowMs() + untilMs - wallMs(), entry: null };
    // At once: of two requests at this node the second is refused while the first waits.
    this.#held.set(key, held);
    this.#waiting += 1;
    try {
      held.entry = await this.#claim(key, untilMs);
      return held.entry !== null;
    } catch (thrown) {
      throw retryable(thrown);
    } finally {
      this.#waiting -= 1;
      if (held.entry === null) this.#held.delete(key);
    }
  }

  releaseToken(name: string): void {
    const key = keyOf(name);
    const entry = this.#held.get(key)?.entry ?? null;
    if (entry === null) return;
    this.#held.delete(key);
    this.#release(entry);
  }

  /** Idempotent. What was used here stays used. */
  close(): void {
    this.#state.close();
    this.#timer.cancel();
  }

  /** null: another one has it. */
  async #claim(key: string, untilMs: number): Promise<Entry | null> {
    const { owners } = this.#options.bus;
    const value = this.#valueOf(untilMs);
    const { isOurs, entry } = await owners.claim(key, value);
    if (isOurs) return entry;
    if (!this.#isMine(entry)) return null;
    // An earlier call of this process wrote it, and its answer was lost; or it is being released. Nobody was let in by it.
    const taken = await owners.takeOver(entry, value);
    if (taken === undefined) throw new GatewayError("bus_timeout", "The token's entry changes");
    return taken;
  }

  /** The store may have been lost with all its entries. */
  async #writeAgain(): Promise<void> {
    const keys = [...this.#held].filter(([, { entry }]) => entry !== null).map(([key]) => key);
    for (let at = 0; at < keys.length; at += WRITTEN_AT_ONCE) {
      const some = keys.slice(at, at + WRITTEN_AT_ONCE).map((key) => this.#writeOne(key));
      await Promise.all(some);
    }
  }

  async #writeOne(key: string): Promise<void> {
    const held = this.#held.get(key);
    if (held === undefined) return;
    try {
      const { isOurs, entry } = await this.#options.bus.owners.claim(key, this.#valueOf(held.untilMs));
      if (isOurs || this.#isMine(entry)) held.entry = entry;
    } catch (thrown) {
      this.#log.debug({ err: thrown }, "A used token could not be written again");
    }
  }

  #nextRound(): Timer {
    const { clock } = this.#options;
    return clock.at(clock.nowMs() + ROUND_MS, () => {
      this.#timer = this.#nextRound();
      this.#rounds += 1;
      this.#releaseOwn();
      if (this.#rounds % SEARCH_ROUNDS === 0 && this.#isFirst) void this.#releaseLeft();
    });
  }

  /** One node searches for all. */
  get #isFirst(): boolean {
    const { nodes } = this.#options;
    return nodes.nodes.every(({ name, state }) => state !== "alive" || name >= nodes.name);
  }

  #releaseOwn(): void {
    const nowMs = this.#options.clock.nowMs();
    let released = 0;
    for (const [key, { endsAtMs, entry }] of this.#held) {
      if (released >= RELEASED_A_ROUND) return;
      if (endsAtMs > nowMs || entry === null) continue;
      this.#held.delete(key);
      this.#release(entry);
      released += 1;
    }
  }

  /** Releases tokens of nodes that are gone, and those whose release failed. */
  async #releaseLeft(): Promise<void> {
    const { bus } = this.#options;
    const beforeMs = this.#options.wallMs() - LEFT_MS;
    const expired: Entry[] = [];
    try {
      const watch = await bus.owners.watch(PREFIX, ({ entry }) => {
        if (entry === undefined || expired.length >= RELEASED_A_ROUND) return;
        if ((ownerOf(entry)?.untilMs ?? 0) <= beforeMs) expired.push(entry);
      });
      watch.close();
    } catch (thrown) {
      this.#log.debug({ err: thrown }, "Used tokens of other nodes could not be read: tried again");
    }
    for (const entry of expired) this.#release(entry);
  }

  #release(entry: Entry): void {
    this.#options.bus.owners.release(entry).catch((thrown: unknown) => {
      // It stays until the first node finds it.
      this.#log.debug({ err: thrown }, "A used token's entry was not released");
    });
  }

  #valueOf(untilMs: number): Uint8Array {
    return new TextEncoder().encode(`${untilMs} ${this.#options.nodes.incarnation}`);
  }

  #isMine(entry: Entry): boolean {
    return ownerOf(entry)?.incarnation === this.#options.nodes.incarnation;
  }

  get #log(): Logger {
    return this.#options.log ?? silentLog;
  }
}

/** Names hold what tokens say: of any length, with any letters. */
function keyOf(name: string): string {
  return `${PREFIX}${createHash("sha256").update(name).digest("base64url")}`;
}

function ownerOf({ value }: Entry): { readonly untilMs: number; readonly incarnation: string } | undefined {
  const [until = "", incarnation] = new TextDecoder().decode(value).split(" ");
  const untilMs = Number(until);
  return incarnation === undefined || Number.isNaN(untilMs) ? undefined : { untilMs, incarnation };
}

function retryable(thrown: unknown): GatewayError {
  const { code } = toGatewayError(thrown);
  return new GatewayError(code, "The other nodes can't be asked whether this token was used: try again", {
    retryAfterMs: RETRY_MS,
    cause: thrown,
  });
}

function tooMany(): GatewayError {
  return new GatewayError("bus_full", "More single-use tokens come than the nodes keep: try again later", {
    retryAfterMs: RETRY_MS,
  });
}
