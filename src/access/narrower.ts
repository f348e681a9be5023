/** What allows more than something else does: a new token than the one before it, or a token than the key that mints it. */
import { forbidden } from "./access-error.ts";
import type { Caller } from "./caller.ts";
import { DEFAULT_PARTS, type Grants, isListed } from "./grants.ts";

/**
 * Throws forbidden unless the new caller is the same one, and allowed no more. Another key of the tenant may have signed its token:
 * so connections go on while keys are rotated.
 */
export function mustFollow(next: Caller, now: Caller): void {
  if (!isSame(next, now)) {
    throw forbidden("The new token is of another subject or tenant than the connection's");
  }
  const wider =
    widerLayer(next.token?.grants, now.token?.grants) || widerLayer(next.key?.grants, now.key?.grants);
  if (wider)
    throw forbidden("The new token allows more than the connection's: open a new connection with it");
}

function isSame(next: Caller, now: Caller): boolean {
  const isOfOneKey =
    next.key?.id === now.key?.id && next.subject === now.subject && next.tenant === now.tenant;
  return isOfOneKey || next.identity === now.identity;
}

/** No grants: that layer limits nothing. */
function widerLayer(next: Grants | undefined, now: Grants | undefined): boolean {
  return next !== undefined && now !== undefined && widerGrant(next, now) !== null;
}

/** The name of a grant that allows more than `now` has it; null: none does. */
export function widerGrant(next: Grants, now: Grants): keyof Grants | null {
  const kept: readonly (readonly [name: keyof Grants, isKept: boolean])[] = [
    ["allow", next.allow.every((action) => now.allow.includes(action))],
    ["sessions", isWithin(next.sessions, now.sessions)],
    ["voices", isWithin(next.voices, now.voices)],
    ["models", isWithin(next.models, now.models)],
    ["formats", isWithin(next.formats, now.formats)],
    ["proxy", isWithin(next.proxy ?? DEFAULT_PARTS, now.proxy ?? DEFAULT_PARTS)],
    ["origin", isWithin(next.origin, now.origin)],
    ["characters_per_minute", isAtMost(next.characters_per_minute, now.characters_per_minute)],
    ["utterances_per_minute", isAtMost(next.utterances_per_minute, now.utterances_per_minute)],
    ["connections", isAtMost(next.connections, now.connections)],
    ["priority_max", isAtMost(next.priority_max ?? 0, now.priority_max ?? 0)],
    ["tenant", now.tenant === undefined || next.tenant === now.tenant],
    ["connection", isKept(next.connection, now.connection)],
    ["speech", isKept(next.speech, now.speech)],
  ];
  return kept.find(([, isKept]) => !isKept)?.[0] ?? null;
}

/** Whether each entry names nothing but what an entry of the other list does. No list: everything. */
function isWithin(next: readonly string[] | undefined, now: readonly string[] | undefined): boolean {
  if (now === undefined) return true;
  // `ab*` is within `a*`: its star counts as a character of the name.
  return next?.every((entry) => isListed(now, entry)) ?? false;
}

function isKept(next: object = {}, now: object = {}): boolean {
  const kept = new Map(Object.entries(next));
  return Object.entries(now).every(([key, value]) => kept.get(key) === value);
}

function isAtMost(next: number | undefined, now: number | undefined): boolean {
  return now === undefined || (next !== undefined && next <= now);
}
