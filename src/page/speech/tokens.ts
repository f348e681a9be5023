/** Texts as a language model writes them: token by token, each at its own moment. */
import type { TimedToken } from "./streams.ts";

/** About 25 tokens a second, the pace of a hosted model. */
const TOKEN_INTERVAL_MS = 40;

/** Words with the space before them, long ones in two; joined again they are the text, and no character is cut. */
export function tokensOf(text: string): string[] {
  const tokens: string[] = [];
  for (const piece of text.match(/\s*\S+|\s+$/gu) ?? []) {
    const characters = Array.from(piece);
    for (let at = 0; at < characters.length; at += 6) tokens.push(characters.slice(at, at + 6).join(""));
  }
  return tokens;
}

/** The tokens of a text at an even pace. */
export function evenly(tokens: readonly string[]): TimedToken[] {
  return tokens.map((text, index) => ({ atMs: index * TOKEN_INTERVAL_MS, text }));
}

export interface TokenFeed {
  /** Sends nothing more. Idempotent. */
  cancel(): void;
}

export interface TokenHandlers {
  /** Sends a token; resolves when another one may follow. */
  onToken(token: string): Promise<void>;
  onEnd(): void;
}

/**
 * Sends the first token at once and each other one at its moment; those that had to wait for credit follow without a
 * pause, as the model has written them meanwhile. `onEnd` follows the last one.
 */
export function feedTokens(tokens: readonly TimedToken[], handlers: TokenHandlers): TokenFeed {
  const beganAtMs = performance.now();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isCancelled = false;
  const step = (next: number) => {
    if (isCancelled) return;
    const token = tokens[next];
    if (token === undefined) {
      handlers.onEnd();
      return;
    }
    // Where the connection is lost while it waits, nothing more can be sent: that is shown elsewhere.
    handlers.onToken(token.text).then(
      () => wait(next + 1),
      () => undefined,
    );
  };
  const wait = (next: number) => {
    const dueMs = beganAtMs + (tokens[next]?.atMs ?? 0) - performance.now();
    if (dueMs <= 0) step(next);
    else timer = setTimeout(() => step(next), dueMs);
  };
  step(0);
  return {
    cancel: () => {
      isCancelled = true;
      clearTimeout(timer);
    },
  };
}
