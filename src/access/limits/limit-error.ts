/** More than somebody may have. It says which number, for the RateLimit headers of an answer. */
import { type ErrorCode, GatewayError } from "../../errors.ts";

/** How far somebody is from a bound. */
export interface RateState {
  readonly limit: number;
  readonly remaining: number;
  /** Until all of it is there again. */
  readonly resetMs: number;
}

type LimitCode = Extract<
  ErrorCode,
  | "rate_limited"
  | "connection_limit"
  | "session_limit"
  | "listener_limit"
  | "queue_full"
  | "budget_exhausted"
  | "text_too_long"
>;

export class LimitError extends GatewayError {
  readonly rate: RateState;

  constructor(
    code: LimitCode,
    message: string,
    { rate, retryAfterMs }: { readonly rate: RateState; readonly retryAfterMs?: number },
  ) {
    super(code, message, retryAfterMs === undefined ? {} : { retryAfterMs });
    this.rate = rate;
  }
}

/** The fields of draft-ietf-httpapi-ratelimit-headers-07, section 3; the last one in seconds. */
export function rateHeaders({ limit, remaining, resetMs }: RateState): Record<string, string> {
  return {
    "ratelimit-limit": String(limit),
    "ratelimit-remaining": String(Math.max(0, Math.floor(remaining))),
    "ratelimit-reset": String(Math.ceil(resetMs / 1000)),
  };
}
