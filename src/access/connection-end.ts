/** When the connections of a key or token end, by what these say. */
import type { Caller } from "./caller.ts";

/** For a new token on its way when the old one expires. */
const GRACE_MS = 25_000;

/** When a connection that began at `begunMs` ends. Both are milliseconds since 1970; null: it has no end. */
export function connectionEndOf(caller: Caller, begunMs: number): number | null {
  const { key, token } = caller;
  const seconds = caller.bound("seconds");
  const sessionUntil = caller.bound("session_until");
  // Without a list of them: it is asked several times for each connection.
  let endsMs = key?.expiresMs ?? Number.POSITIVE_INFINITY;
  const signerMs = token?.signer.expiresMs ?? null;
  if (signerMs !== null) endsMs = Math.min(endsMs, signerMs);
  if (seconds !== null) endsMs = Math.min(endsMs, begunMs + seconds * 1000);
  if (sessionUntil !== null) endsMs = Math.min(endsMs, sessionUntil * 1000);
  if (token !== null && seconds === null && sessionUntil === null) {
    endsMs = Math.min(endsMs, token.expiresMs + GRACE_MS);
  }
  return endsMs === Number.POSITIVE_INFINITY ? null : endsMs;
}
