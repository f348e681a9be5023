/**
 * Whose numbers count for a caller, and which numbers they have:
 *
 *   key       `limits` of its entry, and the numbers of its `grants`
 *   tenant    `tenants` of the key file
 *   subject   the numbers of the token's grants, else the settings'
 *   token     `characters` of its grants
 *   address   the settings; not that of a caller with a static key, whose numbers are the key's
 */

import { clientOf } from "../../kit/client-limit.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Caller, Token } from "../caller.ts";
import type { Grants } from "../grants.ts";
import type { Key, KeyLimits } from "../keys.ts";
import { isLoopback } from "../origin-rules.ts";
import { perMinute, perSecond, type Rate } from "./bucket.ts";
import { type Counted, Meters, type Rated } from "./meters.ts";
import { BYTES_BURST_SECONDS } from "./traffic.ts";

/** Most callers, and most addresses, for which something is counted. */
const MAX_CALLERS = 200_000;
const MAX_ADDRESSES = 200_000;
/** Many clients come back at once when a network does. */
const OPENS_BURST_SECONDS = 5;

/** As the settings have them; 0: no limit. */
export interface ScopeSettings {
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
  /** Bytes of one connection, and of the bodies of one client's requests. */
  readonly bytesPerSecond: number;
}

export interface ScopesOptions {
  readonly settings: ScopeSettings;
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly wallMs: () => number;
  readonly tenantLimits: (tenant: string) => KeyLimits;
}

type CountBounds = { readonly [C in Counted]?: number };
type RateBounds = { readonly [R in Rated]?: Rate };

type Bounds = CountBounds & RateBounds;

/** Somebody or something for which is counted, and how much there may be. */
export interface Scope {
  readonly id: string;
  /** As errors name it. */
  readonly name: string;
  readonly meters: Meters;
  /** One object for all whose bounds are the same: a scope is made for each connection. */
  readonly bounds: Bounds;
  /** Characters in all, and until when they count: see Meter. */
  readonly budget?: { readonly characters: number; readonly untilMs: number };
}

export class Scopes {
  readonly #options: ScopesOptions;
  /** Counts of keys, tenants, subjects and tokens. */
  readonly callers = new Meters(MAX_CALLERS);
  readonly addresses = new Meters(MAX_ADDRESSES);
  readonly #addressBounds: Bounds;
  /** Those of subjects whose tokens name no numbers. */
  readonly #subjectBounds: Bounds;
  /** A key that is read again is another object. */
  readonly #boundsOfKeys = new WeakMap<Key, Bounds>();

  constructor(options: ScopesOptions) {
    this.#options = options;
    this.#addressBounds = addressBounds(options.settings);
    this.#subjectBounds = subjectBounds(options.settings, {});
  }

  /** All that count for a connection or a request. */
  of(caller: Caller, address: string): readonly Scope[] {
    const isServer = caller.key !== null && caller.token === null;
    return isServer ? this.ofCaller(caller) : [...this.ofAddress(address), ...this.ofCaller(caller)];
  }

  /** None where addresses have no limits. */
  ofAddress(address: string): readonly Scope[] {
    const { addressLimits } = this.#options.settings;
    if (addressLimits === "off" || (addressLimits === "remote" && isLoopback(address))) return [];
    const id = clientOf(address);
    return [{ id, name: "Your address", meters: this.addresses, bounds: this.#addressBounds }];
  }

  /** None without a key. */
  ofCaller({ key, token, tenant }: Caller): readonly Scope[] {
    if (key === null) return [];
    const meters = this.callers;
    const scopes = [this.ofKey(key), ...(tenant === "" ? [] : [this.ofTenant(tenant)])];
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

  ofKey(key: Key): Scope {
    return {
      id: `key ${key.id}`,
      name: "Your key",
      meters: this.callers,
      bounds: this.#keyBounds(key),
      ...budgetOf(key.grants.characters, Number.POSITIVE_INFINITY),
    };
  }

  ofTenant(tenant: string): Scope {
    const bounds = boundsOf(this.#options.tenantLimits(tenant));
    return { id: `tenant ${tenant}`, name: "Your tenant", meters: this.callers, bounds };
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
}

export function subjectId({ id }: Pick<Key, "id">, { subject }: Pick<Token, "subject">): string {
  return `subject ${id} ${subject}`;
}

const NO_BOUNDS: Bounds = {};

function addressBounds(settings: ScopeSettings): Bounds {
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

function subjectBounds(settings: ScopeSettings, grants: Partial<Grants>): Bounds {
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
