/** Section "Tokens": keys for one use, for clients that can't be trusted with the real one. */
import { randomBytes } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { type Clock, systemClock } from "../../../kit/clock.ts";
import { json } from "../answers.ts";
import type { ServiceContext } from "../context.ts";
import { record, STRING } from "../json-schema.ts";
import { literal } from "../kinds.ts";
import { operation, route } from "../operation.ts";
import { required } from "../schema.ts";

const TOKEN_TYPES = ["realtime_scribe", "batch_scribe", "tts_websocket"] as const;
export type TokenType = (typeof TOKEN_TYPES)[number];

const LIFE_MS = 900_000;
const MAX_ALIVE = 10_000;
const TOKEN_BYTES = 24;

const ISSUE = operation({
  method: "POST",
  url: "/v1/single-use-token/:token_type",
  id: "get_single_use_token",
  tag: "Models and account",
  summary: "A token for one use within 15 minutes",
  params: { token_type: required(literal(TOKEN_TYPES), "What it is for.") },
  answer: json(record({ token: STRING }), "The token."),
});

/** The tokens that may still be used: at most 10,000, the oldest are forgotten; each lives 15 minutes. */
export class SingleUseTokens {
  readonly #clock: Pick<Clock, "nowMs">;
  /** In the order of issue, which is that of their ends. */
  readonly #alive = new Map<string, { readonly type: TokenType; readonly endsAtMs: number }>();

  constructor(clock: Pick<Clock, "nowMs">) {
    this.#clock = clock;
  }

  issue(type: TokenType): string {
    const nowMs = this.#clock.nowMs();
    for (const [token, { endsAtMs }] of this.#alive) {
      if (endsAtMs > nowMs && this.#alive.size < MAX_ALIVE) break;
      this.#alive.delete(token);
    }
    const token = `sutkn_${randomBytes(TOKEN_BYTES).toString("hex")}`;
    this.#alive.set(token, { type, endsAtMs: nowMs + LIFE_MS });
    return token;
  }

  /** Whether it may be used for this, and from now on no more; one that was made for something else is left alone. */
  consume(token: string, type: TokenType): boolean {
    const found = this.#alive.get(token);
    if (found === undefined || found.type !== type) return false;
    this.#alive.delete(token);
    return found.endsAtMs > this.#clock.nowMs();
  }
}

/** POST /v1/single-use-token/{token_type}; 422 for a type that there is not. Gives the tokens, for those who take them. */
export function registerTokens(
  app: FastifyInstance,
  context: ServiceContext,
  tokens: SingleUseTokens = new SingleUseTokens(systemClock),
): SingleUseTokens {
  route(app, context, ISSUE, async ({ params }) => ({ token: tokens.issue(params.token_type) }));
  return tokens;
}
