/**
 * Keeps one connection to the gateway: joins, says how it stands, and joins again where the connection itself can't come
 * back. A connection that broke and comes back is the same one.
 */
import { backoffMs } from "../client/backoff.ts";
import type { Connection } from "../client/index.ts";
import { VoicewireError } from "../client/index.ts";

export type LinkState =
  | { readonly kind: "connecting"; readonly attempt: number }
  | { readonly kind: "open"; readonly connection: Connection }
  /** `error`: why it was refused; null where the gateway did not answer at all. */
  | {
      readonly kind: "waiting";
      readonly attempt: number;
      readonly delayMs: number;
      readonly error: { readonly code: string; readonly message: string } | null;
    }
  /** It will not try again by itself; `error` says why. */
  | { readonly kind: "ended"; readonly error: { readonly code: string; readonly message: string } };

export interface LinkOptions {
  readonly open: () => Promise<Connection>;
  readonly onState: (state: LinkState) => void;
}

/** A session that nobody has opened yet is looked for at least this often: its first words should be heard. */
const MAX_ABSENT_DELAY_MS = 1000;
/** Closes after which the same call can't succeed (docs/protocol.md): bad input, no token, refused, conflict, too large. */
const FINAL_CLOSES: ReadonlySet<number> = new Set([1000, 4400, 4401, 4403, 4409, 4413]);

export class GatewayLink {
  readonly #options: LinkOptions;
  #state: LinkState = { kind: "connecting", attempt: 0 };
  /** The connection that tries to come back by itself. */
  #returning: Connection | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  get state(): LinkState {
    return this.#state;
  }

  start(): void {
    this.#join(0);
  }

  /** Does not wait any longer for the next attempt. */
  retryNow(): void {
    if (this.#state.kind !== "waiting" && this.#state.kind !== "ended") return;
    if (this.#returning !== null) {
      this.#returning.tryNow();
      return;
    }
    clearTimeout(this.#timer);
    this.#join(this.#state.kind === "waiting" ? this.#state.attempt : 1);
  }

  #join(attempt: number): void {
    this.#become({ kind: "connecting", attempt });
    this.#options.open().then(
      (connection) => this.#joined(connection),
      (error: unknown) => this.#refused(error, attempt),
    );
  }

  #joined(connection: Connection): void {
    this.#become({ kind: "open", connection });
    connection.on("reconnecting", ({ attempt, delayMs, error }) => {
      this.#returning = connection;
      const soonMs = patienceMs(delayMs, error);
      clearTimeout(this.#timer);
      if (soonMs < delayMs) this.#timer = setTimeout(() => connection.tryNow(), soonMs);
      this.#become({ kind: "waiting", attempt, delayMs: soonMs, error });
    });
    connection.on("reconnected", () => {
      this.#returning = null;
      this.#become({ kind: "open", connection });
    });
    connection.closed.then(({ code, reason }) => {
      this.#returning = null;
      if (FINAL_CLOSES.has(code))
        this.#become({ kind: "ended", error: { code: reason || "session_closed", message: reason } });
      else this.#wait(1, null);
    });
  }

  #refused(error: unknown, attempt: number): void {
    const isKnown = error instanceof VoicewireError;
    // What was pasted is no token.
    if (isKnown && error.code === "token_failed") this.#become({ kind: "ended", error });
    else if (!isKnown || !error.isFromGateway) this.#wait(attempt + 1, null);
    else if (error.isRetryable) this.#wait(attempt + 1, error);
    else this.#become({ kind: "ended", error });
  }

  #wait(attempt: number, error: VoicewireError | null): void {
    const fullMs = backoffMs(attempt, Math.random());
    const delayMs = patienceMs(fullMs, error);
    this.#become({ kind: "waiting", attempt, delayMs, error });
    this.#timer = setTimeout(() => this.#join(attempt), delayMs);
  }

  #become(state: LinkState): void {
    this.#state = state;
    this.#options.onState(state);
  }
}

function patienceMs(fullMs: number, error: VoicewireError | null): number {
  return error?.code === "unknown_session" ? Math.min(fullMs, MAX_ABSENT_DELAY_MS) : fullMs;
}
