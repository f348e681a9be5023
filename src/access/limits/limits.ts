/**
 * How much each address, key, tenant, subject and token may have: connections, sessions and utterances at once, new connections,
 * failed credentials, characters and utterances in a time, and characters in all. Counted in this process, from memory; what
 * keys, tenants and tokens have at other nodes is what those said last.
 *
 * Here is what each thing counts as. `scopes.ts` says whose numbers those are, `scope-counts.ts` counts.
 */

import { ByteRoom } from "../../kit/byte-room.ts";
import { clientOf } from "../../kit/client-limit.ts";
import type { Caller } from "../caller.ts";
import type { KeyRing } from "../keys.ts";
import { BodyAllowance } from "./body-allowance.ts";
import type { RateState } from "./limit-error.ts";
import type { Counted, Rated } from "./meters.ts";
import { QueuedText } from "./queued-text.ts";
import { type LowBudget, ScopeCounts, type Spending } from "./scope-counts.ts";
import { type Scope, type ScopeSettings, Scopes, type ScopesOptions, subjectId } from "./scopes.ts";
import type { SharedUsage } from "./shared-usage.ts";
import { Traffic } from "./traffic.ts";
import { type Usage, usageOf } from "./usage.ts";

const MB = 1024 * 1024;

/** As the settings have them; 0: no limit. */
export interface LimitSettings extends ScopeSettings {
  /** Requests open upstream at once, and what one subject of tokens may have of them, %. */
  readonly upstreamConnections: number;
  readonly upstreamShare: number;
  /** Texts that wait in all sessions. */
  readonly queuedTextMb: number;
  /** What was sent and is not handled, of all clients. */
  readonly receivedMb: number;
  /** What one connection may send. */
  readonly messagesPerSecond: number;
}

export interface LimitsOptions extends ScopesOptions {
  readonly settings: LimitSettings;
  /** Most of a budget is spent: once for each. Default: nobody hears it. */
  readonly onLow?: (low: LowBudget) => void;
}

/** For whom the upstream is asked: its places are shared out between subjects (upstream/governor.ts). */
export interface UpstreamSubject {
  readonly id: string;
  readonly maxPlaces: number;
  /** As the ledger names them; none without keys. */
  readonly payer?: { readonly key: string; readonly tenant: string };
}

/** See session/payer.ts. */
export interface OpusAccount {
  readonly id: string;
  /** The client hears one more rendition: gives what ends that (idempotent). Throws listener_limit. */
  begin(): () => void;
}

export interface ChargedUtterance {
  /** It is over. Idempotent. */
  end(): void;
  /** It was not taken after all: nothing is counted. */
  undo(): void;
  readonly text: Pick<QueuedText, "add" | "takeBack">;
}

/** A request whose cost is known when it is answered. */
export interface ReservedSpeech {
  /** So many more characters. Throws budget_exhausted, rate_limited, text_too_long. */
  reserve(characters: number): void;
  /**
   * It may cost so many at most, and nobody knows how many. Of such requests several run at once where the budget has room for all of
   * them, else one after the other. Once only. Throws rate_limited.
   */
  open(mostCharacters: number): void;
  /** It has cost so many; null: as many as were reserved. What it has not cost is given back. Only the first call counts. */
  settle(characters: number | null): void;
}

/** Pays for what one caller says. */
interface SpeechBudget {
  /** One more utterance, of so many characters to begin with. Throws queue_full, and what `spend` does. */
  begin(characters: number): ChargedUtterance;
  /** More text of an utterance that was begun, maybe on another's budget. Throws queue_full, and what `spend` does. */
  add(characters: number, utterance?: ChargedUtterance): void;
}

export class Limits {
  readonly #settings: LimitSettings;
  readonly #scopes: Scopes;
  readonly #counts: ScopeCounts;
  /** For the texts of all sessions. */
  readonly #queuedText: ByteRoom;
  readonly #received: ByteRoom;

  constructor(options: LimitsOptions) {
    const { settings, clock, onLow } = options;
    this.#settings = settings;
    this.#scopes = new Scopes(options);
    this.#counts = new ScopeCounts({ clock, onLow, callers: this.#scopes.callers });
    this.#queuedText = new ByteRoom(settings.queuedTextMb * MB);
    this.#received = new ByteRoom(settings.receivedMb * MB);
  }

  /** One more text that waits to be spoken, for who pays for it in another way. */
  waitingText(): QueuedText {
    return new QueuedText(this.#queuedText);
  }

  /** From now on what other nodes have counts, too. */
  share(): SharedUsage {
    return this.#counts.share();
  }

  /** For what clients have sent and is not handled. */
  get received(): ByteRoom {
    return this.#received;
  }

  get queuedTextBytes(): number {
    return this.#queuedText.usedBytes;
  }

  /** How many callers and addresses something is counted of. */
  get sizes(): { readonly callers: number; readonly addresses: number } {
    return { callers: this.#scopes.callers.size, addresses: this.#scopes.addresses.size };
  }

  /** What the keys and tenants of a file use of their bounds. */
  usage(keys: KeyRing): Usage[] {
    const tenants = [...keys.tenants.keys()].flatMap((tenant) =>
      usageOf(this.#scopes.ofTenant(tenant), this.#counts),
    );
    const ofKeys: Usage[] = [];
    for (const key of keys) ofKeys.push(...usageOf(this.#scopes.ofKey(key), this.#counts));
    return [...tenants, ...ofKeys];
  }

  /** Before a credential from this address is looked at. Throws rate_limited. */
  mustTryNow(address: string): void {
    for (const scope of this.#scopes.ofAddress(address)) this.#counts.mustRate(scope, "failures", 1);
  }

  /** A credential came from this address that no key has made. */
  failed(address: string): void {
    for (const scope of this.#scopes.ofAddress(address)) this.#counts.take(scope, "failures", 1);
  }

  /** One more connection: gives what ends it (idempotent). Throws connection_limit, rate_limited. */
  enter(caller: Caller, address: string): () => void {
    const scopes = this.#scopes.of(caller, address);
    for (const scope of scopes) {
      this.#counts.mustRate(scope, "opens", 1);
      this.#counts.mustCount(scope, "connections");
    }
    for (const scope of scopes) this.#counts.take(scope, "opens", 1);
    return this.#counts.hold(scopes, "connections");
  }

  /** One more session that was opened: gives what ends it (idempotent). Throws session_limit. */
  openSession(caller: Caller, address: string): () => void {
    return this.#counts.hold(this.#scopes.of(caller, address), "sessions");
  }

  /**
   * One more of what a caller may have so many of at once: gives what ends it (idempotent). Throws rate_limited for requests that are
   * passed on, listener_limit for the others.
   */
  begin(what: "proxied_requests" | "mp3_streams" | "rtp_ports", caller: Caller, address: string): () => void {
    return this.#counts.hold(this.#scopes.of(caller, address), what);
  }

  /**
   * Who hears Opus. Each rendition that one of them hears counts once, on however many connections. An address counts only without
   * keys: behind one there may be many who hear the same.
   */
  opusAccount(caller: Caller, address: string): OpusAccount {
    const begin = (): (() => void) => {
      const scopes = caller.isAnybody ? this.#scopes.ofAddress(address) : this.#scopes.ofCaller(caller);
      return this.#counts.hold(scopes, "opus_renditions");
    };
    return { id: this.upstreamSubject(caller, address).id, begin };
  }

  /** All of it, or nothing. Throws rate_limited, budget_exhausted, text_too_long. */
  spend(caller: Caller, spending: Spending): void {
    this.#counts.spend(this.#scopes.ofCaller(caller), spending);
  }

  /** An utterance whose characters are reserved until it is known what they have cost. Throws what `spend` does. */
  reserveSpeech(caller: Caller, characters: number): ReservedSpeech {
    const scopes = this.#scopes.ofCaller(caller);
    let reserved = 0;
    let isSettled = false;
    let close = (): void => undefined;
    const reserve = (more: number, utterances = 0): void => {
      this.#counts.spend(scopes, { characters: more, utterances });
      reserved += more;
    };
    reserve(characters, 1);
    return {
      reserve: (more) => reserve(more),
      open: (mostCharacters) => {
        close = this.#counts.open(scopes, mostCharacters);
      },
      settle: (cost) => {
        if (isSettled) return;
        isSettled = true;
        close();
        // It counts even where it is more than there was.
        for (const scope of scopes) this.#counts.pay(scope, (cost ?? reserved) - reserved, 0);
      },
    };
  }

  /** Whether the caller's characters are counted, in a minute or in all. */
  countsCharacters(caller: Caller): boolean {
    return this.#scopes
      .ofCaller(caller)
      .some(({ bounds, budget }) => bounds.characters_per_minute !== undefined || budget !== undefined);
  }

  /** One more utterance at once: gives what ends it (idempotent). Throws rate_limited. */
  beginUtterance(caller: Caller): () => void {
    return this.#counts.hold(this.#scopes.ofCaller(caller), "utterances");
  }

  /** `caller`: as they are now. `onLow`: what this one says has spent most of a budget. */
  speechBudget(caller: () => Caller, onLow: (low: LowBudget) => void = () => undefined): SpeechBudget {
    let known: Caller | null = null;
    let scopes: readonly Scope[] = [];
    const scopesNow = (): readonly Scope[] => {
      const now = caller();
      if (now !== known) scopes = this.#scopes.ofCaller(now);
      known = now;
      return scopes;
    };
    return {
      begin: (characters) => {
        const paying = scopesNow();
        const letGo = this.#counts.hold(paying, "utterances");
        const text = this.waitingText();
        const end = (): void => {
          letGo();
          text.end();
        };
        const spending = { characters, utterances: 1 };
        try {
          text.add(characters);
          for (const low of this.#counts.spend(paying, spending)) onLow(low);
        } catch (thrown) {
          end();
          throw thrown;
        }
        const undo = (): void => {
          end();
          this.#counts.giveBack(paying, spending);
        };
        return { end, undo, text };
      },
      add: (characters, utterance) => {
        utterance?.text.add(characters);
        try {
          for (const low of this.#counts.spend(scopesNow(), { characters, utterances: 0 })) onLow(low);
        } catch (thrown) {
          utterance?.text.takeBack(characters);
          throw thrown;
        }
      },
    };
  }

  /**
   * A token's subject is one person, who has a share of the places. A key may be a server with thousands of people behind it, and an
   * address all of a gateway without keys: they have what nobody else waits for.
   */
  upstreamSubject({ key, token, tenant }: Caller, address: string): UpstreamSubject {
    if (key === null) return { id: clientOf(address), maxPlaces: Number.POSITIVE_INFINITY };
    const payer = { key: key.id, tenant };
    if (token === null) return { id: `key ${key.id}`, maxPlaces: Number.POSITIVE_INFINITY, payer };
    const { upstreamConnections, upstreamShare } = this.#settings;
    const maxPlaces = Math.ceil((upstreamConnections * upstreamShare) / 100);
    return { id: subjectId(key, token), maxPlaces, payer };
  }

  /** The body of a request that comes in. `onRefused`: it may not. */
  body(caller: Caller, address: string, onRefused: (thrown: unknown) => void): BodyAllowance {
    return new BodyAllowance(this.#received, {
      onRefused,
      mustSend: () => {
        for (const scope of this.#scopes.of(caller, address)) this.#counts.mustRate(scope, "body_bytes", 1);
      },
      sent: (bytes) => {
        for (const scope of this.#scopes.of(caller, address)) this.#counts.take(scope, "body_bytes", bytes);
      },
      streamed: (bytes) => {
        const waits = this.#scopes.of(caller, address).map((scope) => this.#counts.streamed(scope, bytes));
        return Math.max(0, ...waits);
      },
    });
  }

  /** What one connection sends; null: as much as it likes. */
  traffic(caller: Caller, address: string): Traffic | null {
    const { messagesPerSecond, bytesPerSecond } = this.#settings;
    if (caller.isAnybody && this.#scopes.ofAddress(address).length === 0) return null;
    const bytes = caller.key?.limits.bytes_per_second ?? bytesPerSecond;
    return new Traffic({ messagesPerSecond, bytesPerSecond: bytes });
  }

  /** Whichever is nearest to its end; null: there is no such limit. */
  rateOf(caller: Caller, what: Rated): RateState | null {
    const states = this.#scopes.ofCaller(caller).flatMap((scope) => {
      const rate = scope.bounds[what];
      return rate === undefined ? [] : [this.#counts.rateState(scope, what, rate)];
    });
    return states.sort((one, other) => one.remaining - other.remaining)[0] ?? null;
  }

  /** Whichever is nearest to its bound; null: there is no such limit. */
  countOf(caller: Caller, what: Counted): { readonly count: number; readonly limit: number } | null {
    const counts = this.#scopes.ofCaller(caller).flatMap((scope) => {
      const limit = scope.bounds[what];
      return limit === undefined ? [] : [{ count: this.#counts.countIn(scope, what), limit }];
    });
    return counts.sort((one, other) => one.limit - one.count - (other.limit - other.count))[0] ?? null;
  }
}
