/**
 * How much each address, key, tenant, subject and token may have: connections, sessions and utterances at once, new connections,
 * failed credentials, characters and utterances in a time, and characters in all. Counted in this process, from memory; what
 * keys, tenants and tokens have at other nodes is what those said last.
 *
 *   key       `limits` of its entry, and the numbers of its `grants`
 *   tenant    `tenants` of the key file
 *   subject   the numbers of the token's grants, else the settings'
 *   token     `characters` of its grants
 *   address   the settings; not that of a caller with a static key, whose numbers are the key's
 */

import { ByteRoom } from "../../kit/byte-room.ts";
import { clientOf } from "../../kit/client-limit.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Caller, Token } from "../caller.ts";
import type { Grants } from "../grants.ts";
import type { Key, KeyLimits } from "../keys.ts";
import { isLoopback } from "../origin-rules.ts";
import { BodyAllowance } from "./body-allowance.ts";
import { perMinute, perSecond, type Rate } from "./bucket.ts";
import { LimitError, type RateState } from "./limit-error.ts";
import { type Counted, type Meter, Meters, type Rated } from "./meters.ts";
import { QueuedText } from "./queued-text.ts";
import { SharedUsage } from "./shared-usage.ts";
import { BYTES_BURST_SECONDS, Traffic } from "./traffic.ts";

const MB = 1024 * 1024;
/** Of all callers, and of all addresses, that something is counted of. */
const MAX_CALLERS = 200_000;
const MAX_ADDRESSES = 200_000;
/** Many clients come back at once when a network does. */
const OPENS_BURST_SECONDS = 5;
/** When it is worth trying again where a count is full, ms. */
const RETRY_FULL_MS = 5000;
const RETRY_UTTERANCE_MS = 1000;

/** As the settings have them; 0: no limit. */
export interface LimitSettings {
  /** Which addresses have limits: all but loopback, all, or none. */
  readonly addressLimits: "remote" | "all" | "off";
  readonly connectionsPerAddress: number;
  readonly opensPerSecond: number;
  readonly failuresPerMinute: number;
  readonly sessionsPerAddress: number;
  /** At once, of one address and of one subject. */
  readonly proxiedPerClient: number;
  readonly mp3PerClient: number;
  readonly opusPerClient: number;
  readonly maxRtpPorts: number;
  readonly connectionsPerSubject: number;
  readonly sessionsPerSubject: number;
  readonly charactersPerMinute: number;
  /** Requests open upstream at once, and what one subject of tokens may have of them, %. */
  readonly upstreamConnections: number;
  readonly upstreamShare: number;
  /** Texts that wait in all sessions. */
  readonly queuedTextMb: number;
  /** What was sent and is not handled, of all clients. */
  readonly receivedMb: number;
  /** Messages and bytes of one connection. */
  readonly messagesPerSecond: number;
  readonly bytesPerSecond: number;
}

export interface LimitsOptions {
  readonly settings: LimitSettings;
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly wallMs: () => number;
  readonly tenantLimits: (tenant: string) => KeyLimits;
}

/** For whom the upstream is asked: its places are shared out between subjects (upstream/governor.ts). */
export interface UpstreamSubject {
  readonly id: string;
  readonly maxPlaces: number;
}

/** See session/output/opus-listeners.ts. */
export interface OpusAccount {
  readonly id: string;
  /** One more rendition that they hear: gives what ends it (idempotent). Throws listener_limit. */
  begin(): () => void;
}

/** What is said in one go. */
export interface Spending {
  readonly characters: number;
  readonly utterances: number;
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
  /** It has cost so many; null: as many as were reserved. What it has not cost is given back. Only the first call counts. */
  settle(characters: number | null): void;
}

/** Pays for what one caller says. */
export interface SpeechBudget {
  /** One more utterance, of so many characters to begin with. Throws queue_full, and what `spend` does. */
  begin(characters: number): ChargedUtterance;
  /** More text of an utterance that was begun, maybe on another's budget. Throws queue_full, and what `spend` does. */
  add(characters: number, utterance?: ChargedUtterance): void;
}

type CountBounds = { readonly [C in Counted]?: number };
type RateBounds = { readonly [R in Rated]?: Rate };

type Bounds = CountBounds & RateBounds;

/** Something of which is counted, and what there may be. */
interface Scope {
  readonly id: string;
  /** As errors name it. */
  readonly name: string;
  readonly meters: Meters;
  /** One object for all whose bounds are the same: a scope is made for each connection. */
  readonly bounds: Bounds;
  /** Characters in all, and until when they count: see Meter. */
  readonly budget?: { readonly characters: number; readonly untilMs: number };
}

export class Limits {
  readonly #options: LimitsOptions;
  readonly #callers = new Meters(MAX_CALLERS);
  readonly #addresses = new Meters(MAX_ADDRESSES);
  readonly #addressBounds: Bounds;
  /** Of subjects whose tokens name no numbers. */
  readonly #subjectBounds: Bounds;
  /** A key that is read again is another object. */
  readonly #boundsOfKeys = new WeakMap<Key, Bounds>();
  /** Of all sessions. */
  readonly #queuedText: ByteRoom;
  readonly #received: ByteRoom;
  /** null: the gateway is alone. */
  #shared: SharedUsage | null = null;

  constructor(options: LimitsOptions) {
    this.#options = options;
    this.#addressBounds = addressBounds(options.settings);
    this.#subjectBounds = subjectBounds(options.settings, {});
    this.#queuedText = new ByteRoom(options.settings.queuedTextMb * MB);
    this.#received = new ByteRoom(options.settings.receivedMb * MB);
  }

  /** One more text that waits to be spoken, for who pays for it in another way. */
  waitingText(): QueuedText {
    return new QueuedText(this.#queuedText);
  }

  /** From now on what other nodes have counts, too. */
  share(): SharedUsage {
    const { clock } = this.#options;
    this.#shared ??= new SharedUsage({
      clock,
      find: (id) => this.#callers.find(id),
      of: (id) => this.#callers.of(id, clock.nowMs()),
    });
    return this.#shared;
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
    return { callers: this.#callers.size, addresses: this.#addresses.size };
  }

  /** Before a credential from this address is looked at. Throws rate_limited. */
  mustTryNow(address: string): void {
    for (const scope of this.#addressScopes(address)) this.#mustRate(scope, "failures", 1);
  }

  /** A credential came from this address that no key has made. */
  failed(address: string): void {
    for (const scope of this.#addressScopes(address)) this.#take(scope, "failures", 1);
  }

  /** One more connection: gives what ends it (idempotent). Throws connection_limit, rate_limited. */
  enter(caller: Caller, address: string): () => void {
    const scopes = this.#scopesOf(caller, address);
    for (const scope of scopes) {
      this.#mustRate(scope, "opens", 1);
      this.#mustCount(scope, "connections");
    }
    for (const scope of scopes) this.#take(scope, "opens", 1);
    return this.#hold(scopes, "connections");
  }

  /** One more session that was opened: gives what ends it (idempotent). Throws session_limit. */
  openSession(caller: Caller, address: string): () => void {
    const scopes = this.#scopesOf(caller, address);
    for (const scope of scopes) this.#mustCount(scope, "sessions");
    return this.#hold(scopes, "sessions");
  }

  /**
   * One more of what a caller may have so many of at once: gives what ends it (idempotent). Throws rate_limited for requests that are
   * passed on, listener_limit for the others.
   */
  begin(what: "proxied_requests" | "mp3_streams" | "rtp_ports", caller: Caller, address: string): () => void {
    const scopes = this.#scopesOf(caller, address);
    for (const scope of scopes) this.#mustCount(scope, what);
    return this.#hold(scopes, what);
  }

  /**
   * Who hears Opus. Each rendition that one of them hears counts once, on however many connections. An address counts only without
   * keys: behind one there may be many who hear the same.
   */
  opusAccount(caller: Caller, address: string): OpusAccount {
    const begin = (): (() => void) => {
      const scopes = caller.isAnybody ? this.#addressScopes(address) : this.#callerScopes(caller);
      for (const scope of scopes) this.#mustCount(scope, "opus_renditions");
      return this.#hold(scopes, "opus_renditions");
    };
    return { id: this.upstreamSubject(caller, address).id, begin };
  }

  /** All of it, or nothing. Throws rate_limited, budget_exhausted, text_too_long. */
  spend(caller: Caller, spending: Spending): void {
    this.#spend(this.#callerScopes(caller), spending);
  }

  /** An utterance whose characters are reserved until it is known what they have cost. Throws what `spend` does. */
  reserveSpeech(caller: Caller, characters: number): ReservedSpeech {
    const scopes = this.#callerScopes(caller);
    let reserved = 0;
    let isSettled = false;
    const reserve = (more: number, utterances = 0): void => {
      this.#spend(scopes, { characters: more, utterances });
      reserved += more;
    };
    reserve(characters, 1);
    return {
      reserve: (more) => reserve(more),
      settle: (cost) => {
        if (isSettled) return;
        isSettled = true;
        // It counts even where it is more than there was.
        for (const scope of scopes) this.#pay(scope, (cost ?? reserved) - reserved, 0);
      },
    };
  }

  /** Whether the caller's characters are counted, in a minute or in all. */
  countsCharacters(caller: Caller): boolean {
    return this.#callerScopes(caller).some(
      ({ bounds, budget }) => bounds.characters_per_minute !== undefined || budget !== undefined,
    );
  }

  /** One more utterance at once: gives what ends it (idempotent). Throws rate_limited. */
  beginUtterance(caller: Caller): () => void {
    return this.#beginUtterance(this.#callerScopes(caller));
  }

  /** `caller`: as they are now. */
  speechBudget(caller: () => Caller): SpeechBudget {
    let known: Caller | null = null;
    let scopes: readonly Scope[] = [];
    const scopesNow = (): readonly Scope[] => {
      const now = caller();
      if (now !== known) scopes = this.#callerScopes(now);
      known = now;
      return scopes;
    };
    return {
      begin: (characters) => {
        const paying = scopesNow();
        const letGo = this.#beginUtterance(paying);
        const text = this.waitingText();
        const end = (): void => {
          letGo();
          text.end();
        };
        const spending = { characters, utterances: 1 };
        try {
          text.add(characters);
          this.#spend(paying, spending);
        } catch (thrown) {
          end();
          throw thrown;
        }
        const undo = (): void => {
          end();
          this.#giveBack(paying, spending);
        };
        return { end, undo, text };
      },
      add: (characters, utterance) => {
        utterance?.text.add(characters);
        try {
          this.#spend(scopesNow(), { characters, utterances: 0 });
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
  upstreamSubject({ key, token }: Caller, address: string): UpstreamSubject {
    if (key === null) return { id: clientOf(address), maxPlaces: Number.POSITIVE_INFINITY };
    if (token === null) return { id: `key ${key.id}`, maxPlaces: Number.POSITIVE_INFINITY };
    const { upstreamConnections, upstreamShare } = this.#options.settings;
    const maxPlaces = Math.ceil((upstreamConnections * upstreamShare) / 100);
    return { id: subjectId(key, token), maxPlaces };
  }

  /** The body of a request that comes in. `onRefused`: it may not. */
  body(caller: Caller, address: string, onRefused: (thrown: unknown) => void): BodyAllowance {
    return new BodyAllowance(this.#received, {
      onRefused,
      mustSend: () => {
        for (const scope of this.#scopesOf(caller, address)) this.#mustRate(scope, "body_bytes", 1);
      },
      sent: (bytes) => {
        for (const scope of this.#scopesOf(caller, address)) this.#take(scope, "body_bytes", bytes);
      },
      streamed: (bytes) => {
        const waits = this.#scopesOf(caller, address).map((scope) => this.#streamed(scope, bytes));
        return Math.max(0, ...waits);
      },
    });
  }

  /** What one connection sends; null: as much as it likes. */
  traffic(caller: Caller, address: string): Traffic | null {
    const { messagesPerSecond, bytesPerSecond } = this.#options.settings;
    if (caller.isAnybody && this.#addressScopes(address).length === 0) return null;
    const bytes = caller.key?.limits.bytes_per_second ?? bytesPerSecond;
    return new Traffic({ messagesPerSecond, bytesPerSecond: bytes });
  }

  /** Whichever is nearest to its end; null: there is no such limit. */
  rateOf(caller: Caller, what: Rated): RateState | null {
    const states = this.#callerScopes(caller).flatMap((scope) => {
      const rate = scope.bounds[what];
      return rate === undefined ? [] : [this.#rateState(scope, what, rate)];
    });
    return states.sort((one, other) => one.remaining - other.remaining)[0] ?? null;
  }

  /** Whichever is nearest to its bound; null: there is no such limit. */
  countOf(caller: Caller, what: Counted): { readonly count: number; readonly limit: number } | null {
    const counts = this.#callerScopes(caller).flatMap((scope) => {
      const limit = scope.bounds[what];
      return limit === undefined ? [] : [{ count: this.#countIn(scope, what), limit }];
    });
    return counts.sort((one, other) => one.limit - one.count - (other.limit - other.count))[0] ?? null;
  }

  // ---- whose numbers they are --------------------------------------------------------------------------------------

  #scopesOf(caller: Caller, address: string): readonly Scope[] {
    const isServer = caller.key !== null && caller.token === null;
    return isServer
      ? this.#callerScopes(caller)
      : [...this.#addressScopes(address), ...this.#callerScopes(caller)];
  }

  #addressScopes(address: string): readonly Scope[] {
    const { addressLimits } = this.#options.settings;
    if (addressLimits === "off" || (addressLimits === "remote" && isLoopback(address))) return [];
    const id = clientOf(address);
    return [{ id, name: "Your address", meters: this.#addresses, bounds: this.#addressBounds }];
  }

  #callerScopes({ key, token, tenant }: Caller): readonly Scope[] {
    if (key === null) return [];
    const meters = this.#callers;
    const { grants } = key;
    const scopes: Scope[] = [
      {
        id: `key ${key.id}`,
        name: "Your key",
        meters,
        bounds: this.#keyBounds(key),
        ...budgetOf(grants.characters, Number.POSITIVE_INFINITY),
      },
    ];
    if (tenant !== "") {
      const bounds = boundsOf(this.#options.tenantLimits(tenant));
      scopes.push({ id: `tenant ${tenant}`, name: "Your tenant", meters, bounds });
    }
    if (token === null) return scopes;
    const bounds = this.#boundsOfSubject(token.grants);
    scopes.push({ id: subjectId(key, token), name: "Your token's subject", meters, bounds });
    const { characters } = token.grants;
    if (characters === undefined) return scopes;
    const budget = budgetOf(characters, this.#endOf(token));
    return [
      ...scopes,
      { id: `token ${key.id} ${token.id}`, name: "Your token", meters, bounds: NO_BOUNDS, ...budget },
    ];
  }

  #keyBounds(key: Key): Bounds {
    const known = this.#boundsOfKeys.get(key);
    if (known !== undefined) return known;
    const { limits, grants } = key;
    const { maxRtpPorts } = this.#options.settings;
    const bounds = {
      ...boundsOf(limits),
      ...smallest("connections", limits.connections, grants.connections),
      ...bound("rtp_ports", limits.rtp_ports ?? maxRtpPorts),
      ...perMinuteOf("characters_per_minute", limits.characters_per_minute, grants.characters_per_minute),
      ...perMinuteOf("utterances_per_minute", grants.utterances_per_minute),
      ...bodyBytes(limits.bytes_per_second ?? 0),
    };
    this.#boundsOfKeys.set(key, bounds);
    return bounds;
  }

  #boundsOfSubject(grants: Grants): Bounds {
    const { connections, characters_per_minute, utterances_per_minute } = grants;
    if (
      connections === undefined &&
      characters_per_minute === undefined &&
      utterances_per_minute === undefined
    ) {
      return this.#subjectBounds;
    }
    return subjectBounds(this.#options.settings, grants);
  }

  /** When nobody can speak by this token any more. */
  #endOf({ expiresMs, grants }: NonNullable<Caller["token"]>): number {
    const { clock, wallMs } = this.#options;
    const lastJoinMs = expiresMs + 60_000;
    const ends = [lastJoinMs + (grants.seconds ?? 60) * 1000, (grants.session_until ?? 0) * 1000];
    return clock.nowMs() + Math.max(...ends) - wallMs();
  }

  // ---- counting ----------------------------------------------------------------------------------------------------

  #beginUtterance(scopes: readonly Scope[]): () => void {
    for (const scope of scopes) this.#mustCount(scope, "utterances");
    return this.#hold(scopes, "utterances");
  }

  #spend(scopes: readonly Scope[], { characters, utterances }: Spending): void {
    for (const scope of scopes) this.#mustAfford(scope, characters);
    for (const scope of scopes) {
      this.#mustRate(scope, "characters_per_minute", characters);
      this.#mustRate(scope, "utterances_per_minute", utterances);
    }
    for (const scope of scopes) this.#pay(scope, characters, utterances);
  }

  #giveBack(scopes: readonly Scope[], { characters, utterances }: Spending): void {
    for (const scope of scopes) this.#pay(scope, -characters, -utterances);
  }

  #pay(scope: Scope, characters: number, utterances: number): void {
    this.#take(scope, "characters_per_minute", characters);
    this.#take(scope, "utterances_per_minute", utterances);
    if (scope.budget === undefined) return;
    const meter = this.#meterOf(scope);
    meter.spent += characters;
    meter.keptUntilMs = scope.budget.untilMs;
    this.#shared?.spent(scope.id, characters, scope.budget.untilMs);
  }

  /** At all nodes. */
  #countIn({ id, meters }: Scope, what: Counted): number {
    return (meters.find(id)?.count(what) ?? 0) + (this.#shared?.countOf(id, what) ?? 0);
  }

  /** Gives what lets it go (idempotent). */
  #hold(scopes: readonly Scope[], what: Counted): () => void {
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

  #take(scope: Scope, what: Rated, count: number): void {
    const rate = scope.bounds[what];
    if (rate === undefined || count === 0) return;
    this.#meterOf(scope).take(what, { count, rate, nowMs: this.#nowMs });
    this.#shared?.took(scope.id, what, { count, perMs: rate.perMs });
  }

  #mustCount(scope: Scope, what: Counted): void {
    const limit = scope.bounds[what];
    if (limit === undefined || this.#countIn(scope, what) < limit) return;
    const code = CODES[what];
    throw new LimitError(code, `${scope.name} has ${limit} ${NAMES[what]} at once, which is its limit`, {
      rate: { limit, remaining: 0, resetMs: RETRY_FULL_MS },
      retryAfterMs: what === "utterances" || what === "proxied_requests" ? RETRY_UTTERANCE_MS : RETRY_FULL_MS,
    });
  }

  #mustRate(scope: Scope, what: Rated, count: number): void {
    const rate = scope.bounds[what];
    if (rate === undefined || count === 0) return;
    const state = this.#rateState(scope, what, rate);
    if (count <= state.remaining) return;
    if (count > rate.burst) {
      const message = `Text is too long: ${count} characters, and ${scope.name.toLowerCase()} may have ${rate.burst} spoken in a minute`;
      throw new LimitError("text_too_long", message, { rate: state });
    }
    throw new LimitError("rate_limited", `${scope.name} ${REASONS[what]}: try again later`, {
      rate: state,
      retryAfterMs: Math.ceil((count - state.remaining) / rate.perMs),
    });
  }

  /** Counted apart from other bodies: who is slowed down is not refused something else for it. Gives how long it is over its rate, ms. */
  #streamed({ id, meters, bounds: { upload_bytes: rate } }: Scope, bytes: number): number {
    if (rate === undefined) return 0;
    const nowMs = this.#nowMs;
    const meter = meters.of(id, nowMs);
    // Nobody more can be counted.
    if (meter === null) return Number.POSITIVE_INFINITY;
    meter.take("upload_bytes", { count: bytes, rate, nowMs });
    return Math.max(0, meter.level("upload_bytes", rate, nowMs) - rate.burst) / rate.perMs;
  }

  #mustAfford(scope: Scope, characters: number): void {
    const { budget } = scope;
    if (budget === undefined || characters === 0) return;
    const limit = budget.characters;
    const remaining = limit - (scope.meters.find(scope.id)?.spent ?? 0);
    if (characters <= remaining) return;
    const message = `${scope.name} has ${Math.max(0, remaining)} characters left of ${limit}, and the text has ${characters}`;
    throw new LimitError("budget_exhausted", message, { rate: { limit, remaining, resetMs: 0 } });
  }

  #rateState(scope: Scope, what: Rated, rate: Rate): RateState {
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

function subjectId({ id }: Pick<Key, "id">, { subject }: Pick<Token, "subject">): string {
  return `subject ${id} ${subject}`;
}

const NO_BOUNDS: Bounds = {};

function addressBounds(settings: LimitSettings): Bounds {
  const { opensPerSecond, failuresPerMinute } = settings;
  return {
    ...bound("connections", settings.connectionsPerAddress),
    ...bound("sessions", settings.sessionsPerAddress),
    ...bound("proxied_requests", settings.proxiedPerClient),
    ...bound("mp3_streams", settings.mp3PerClient),
    ...bound("opus_renditions", settings.opusPerClient),
    ...(opensPerSecond === 0 ? {} : { opens: perSecond(opensPerSecond, OPENS_BURST_SECONDS) }),
    ...bodyBytes(settings.bytesPerSecond),
    ...(failuresPerMinute === 0 ? {} : { failures: perMinute(failuresPerMinute) }),
  };
}

function subjectBounds(settings: LimitSettings, grants: Partial<Grants>): Bounds {
  return {
    ...bound("connections", grants.connections ?? settings.connectionsPerSubject),
    ...bound("sessions", settings.sessionsPerSubject),
    ...bound("proxied_requests", settings.proxiedPerClient),
    ...bound("mp3_streams", settings.mp3PerClient),
    ...bound("opus_renditions", settings.opusPerClient),
    ...perMinuteOf("characters_per_minute", grants.characters_per_minute ?? settings.charactersPerMinute),
    ...perMinuteOf("utterances_per_minute", grants.utterances_per_minute),
  };
}

/** 0: no limit. */
function bound(what: Counted, limit: number): CountBounds {
  return limit === 0 ? {} : { [what]: limit };
}

function smallest(what: Counted, ...limits: readonly (number | undefined)[]): CountBounds {
  const named = limits.filter((limit) => limit !== undefined);
  return named.length === 0 ? {} : { [what]: Math.min(...named) };
}

/** 0: no limit. */
function perMinuteOf(what: Rated, ...counts: readonly (number | undefined)[]): RateBounds {
  const named = counts.filter((count) => count !== undefined).filter((count) => count > 0);
  return named.length === 0 ? {} : { [what]: perMinute(Math.min(...named)) };
}

function boundsOf(limits: KeyLimits): CountBounds & RateBounds {
  const { opens_per_second: opens } = limits;
  return {
    ...smallest("connections", limits.connections),
    ...smallest("sessions", limits.sessions),
    ...smallest("utterances", limits.utterances),
    ...smallest("proxied_requests", limits.proxied_requests),
    ...smallest("mp3_streams", limits.mp3_streams),
    ...smallest("opus_renditions", limits.opus_renditions),
    ...smallest("rtp_ports", limits.rtp_ports),
    ...perMinuteOf("characters_per_minute", limits.characters_per_minute),
    ...(opens === undefined ? {} : { opens: perSecond(opens, OPENS_BURST_SECONDS) }),
  };
}

/** 0: no limit. */
function bodyBytes(bytesPerSecond: number): RateBounds {
  if (bytesPerSecond === 0) return {};
  const rate = perSecond(bytesPerSecond, BYTES_BURST_SECONDS);
  return { body_bytes: rate, upload_bytes: rate };
}

function budgetOf(characters: number | undefined, untilMs: number): Pick<Scope, "budget"> {
  return characters === undefined ? {} : { budget: { characters, untilMs } };
}
