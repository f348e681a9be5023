/** Sends a new token whenever the gateway warns that the connection's own one expires. */
import type { Connection } from "./connection.ts";
import type { TokenSource } from "./token-source.ts";

/** Where a new token does not move the end, the gateway warns again at once: it gets another one no sooner. */
const MIN_WAIT_MS = 1000;

/** Until the connection is over. */
export function renewTokens(connection: Connection, tokens: TokenSource): void {
  let sinceMs = performance.now();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const renewed = (): void => {
    clearTimeout(timer);
    sinceMs = performance.now();
  };
  const renewIn = (waitMs: number, leftMs: number): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      tokens
        .next()
        .then((token) => connection.refresh(token))
        // What the gateway says against it comes as an `error` event. Until the end there is time for another one.
        .catch(() => {
          const restMs = (leftMs - waitMs) / 2;
          if (connection.isOpen && restMs >= MIN_WAIT_MS) renewIn(restMs, leftMs - waitMs);
        });
    }, waitMs);
  };
  connection.on("warning", ({ code, expires_in_ms: leftMs }) => {
    if (code !== "token_expiring" || leftMs === undefined) return;
    // A token that lives shorter than the warning is early is warned of at once: half of its time is to pass first.
    const ageMs = performance.now() - sinceMs;
    renewIn(Math.max(0, Math.max(MIN_WAIT_MS, leftMs / 2) - ageMs), leftMs);
  });
  connection.on("refreshed", renewed);
  connection.on("reconnected", renewed);
  connection.on("reconnecting", () => clearTimeout(timer));
  connection.closed.then(() => clearTimeout(timer));
}
