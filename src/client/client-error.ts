/** What goes wrong, as one class: the gateway's own codes (docs/protocol.md) and five of the client's own. */
import type { ErrorBody } from "../protocol/events.ts";

/**
 * `not_connected`: a command on a connection that has ended. `connect_failed`: no WebSocket came about.
 * `connect_timeout`: no `hello` in time. `connection_lost`: the connection ended before the answer came. `token_failed`: the
 * function that gets tokens got none.
 */
export type ClientErrorCode =
  | "not_connected"
  | "connect_failed"
  | "connect_timeout"
  | "connection_lost"
  | "token_failed";

const CLIENT_CODES: ReadonlySet<string> = new Set([
  "not_connected",
  "connect_failed",
  "connect_timeout",
  "connection_lost",
  "token_failed",
] satisfies ClientErrorCode[]);

export class VoicewireError extends Error {
  /** A code of the gateway's table or of the client's own. */
  readonly code: string;
  /** Whether the very same call may succeed later. */
  readonly isRetryable: boolean;
  /** How long to wait before trying again, ms, where the gateway says. */
  readonly retryAfterMs: number | undefined;
  /** The offending field of the command, where the gateway says. */
  readonly field: string | undefined;

  constructor(body: ErrorBody) {
    super(body.message);
    this.name = "VoicewireError";
    this.code = body.code;
    this.isRetryable = body.retryable;
    this.retryAfterMs = body.retry_after_ms;
    this.field = body.field;
  }

  /** Whether the gateway said so itself; otherwise no word of it came. */
  get isFromGateway(): boolean {
    return !CLIENT_CODES.has(this.code);
  }
}

/** An error of the client's own; all of them may pass when tried again. */
export function clientError(code: ClientErrorCode, message: string): VoicewireError {
  return new VoicewireError({ code, message, retryable: true });
}
