/** Whether a new token allows no more than the one that a connection came with: `refresh` may keep or narrow its grants. */
import { forbidden } from "./access-error.ts";
import type { Caller } from "./caller.ts";
import { DEFAULT_PARTS, type Grants, isListed } from "./grants.ts";

/** Throws forbidden unless the new caller is the same one, and allowed no more. */
export function mustFollow(next: Caller, now: Caller): void {
  if (next.key?.id !== now.key?.id || next.subject !== now.subject || next.tenant !== now.tenant) {
    throw forbidden("The new token is of another subject, key or tenant than the connection's");
  }
  if (next.token === null) return;
  if (now.token === null || isNoWider(next.token.grants, now.token.grants)) return;
  throw forbidden("The new token allows more than the connection's: connect anew with it");
}

function isNoWider(next: Grants, now: Grants): boolean {
  return (
    next.allow.every((action) => now.allow.includes(action)) &&
    isWithin(next.sessions, now.sessions) &&
    isWithin(next.voices, now.voices) &&
    isWithin(next.models, now.models) &&
    isWithin(next.formats, now.formats) &&
    isWithin(next.proxy ?? DEFAULT_PARTS, now.proxy ?? DEFAULT_PARTS) &&
    isWithin(next.origin, now.origin) &&
    isAtMost(next.characters_per_minute, now.characters_per_minute) &&
    isAtMost(next.utterances_per_minute, now.utterances_per_minute) &&
    isAtMost(next.connections, now.connections) &&
    isAtMost(next.priority_max ?? 0, now.priority_max ?? 0) &&
    (now.tenant === undefined || next.tenant === now.tenant) &&
    isKept(next.connection, now.connection) &&
    isKept(next.speech, now.speech)
  );
}

/** Whether each entry names nothing but what an entry of the other list does. No list: everything. */
function isWithin(next: readonly string[] | undefined, now: readonly string[] | undefined): boolean {
  if (now === undefined) return true;
  // `ab*` is within `a*`: its star is matched as any character of a name is.
  return next?.every((entry) => isListed(now, entry)) ?? false;
}

function isKept(next: object = {}, now: object = {}): boolean {
  const kept = new Map(Object.entries(next));
  return Object.entries(now).every(([key, value]) => kept.get(key) === value);
}

function isAtMost(next: number | undefined, now: number | undefined): boolean {
  return now === undefined || (next !== undefined && next <= now);
}
