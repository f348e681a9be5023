/** Cuts a text into pieces the size of a language model's tokens and sends them one by one. */

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

export interface TokenFeed {
  /** Sends nothing more. Idempotent. */
  cancel(): void;
}

/** Sends the first token at once and the others at a model's pace; `onEnd` follows the last one. */
export function feedTokens(
  tokens: readonly string[],
  handlers: { onToken(token: string): void; onEnd(): void },
): TokenFeed {
  let next = 0;
  const step = () => {
    const token = tokens[next];
    next += 1;
    if (token !== undefined) handlers.onToken(token);
    if (next < tokens.length) return;
    clearInterval(timer);
    handlers.onEnd();
  };
  const timer = setInterval(step, TOKEN_INTERVAL_MS);
  step();
  return { cancel: () => clearInterval(timer) };
}
