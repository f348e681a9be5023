/** When the connections of a key or token end, by what these say. */
import type { Caller } from "./caller.ts";

/** For a new token on its way when the old one expires. */
const GRACE_MS = 25_000;

/** When a connection that began at `begunMs` ends. Both are milliseconds since 1970; null: it has no end. */
export function connectionEndOf(caller: Caller, begunMs: number): number | null {
  const { key, token } = caller;
  const seconds = caller.bound("seconds");
  const sessionUntil = caller.bound("session_until");
  const ends = [
    key?.expiresMs ?? null,
    token?.signer.expiresMs ?? null,
    seconds === null ? null : begunMs + seconds * 1000,
    sessionUntil === null ? null : sessionUntil * 1000,
    token !== null && seconds === null && sessionUntil === null ? token.expiresMs + GRACE_MS : null,
  ].filter((end) => end !== null);
  return ends.length === 0 ? null : Math.min(...ends);
}
