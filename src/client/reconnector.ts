/** Brings a broken connection back: tries again with growing waits, a bounded number of times, until it is joined. */
import type { HelloEvent } from "../protocol/events.ts";
import { type BackoffOptions, backoffMs } from "./backoff.ts";
import type { VoicewireError } from "./client-error.ts";
import { type Opening, openSocket } from "./open-socket.ts";
import type { SocketEnd, WebSocketLike } from "./socket.ts";

export interface ReconnectOptions extends BackoffOptions {
  /** Tries in a row until it gives up; default 10, `Infinity` = for ever. */
  readonly maxTries?: number;
  /** 0-1; default `Math.random`. */
  readonly random?: () => number;
}

/** Before each try: why the connection, or the try before, ended, and how long the wait is. */
export interface Waiting {
  /** 1 for the first try. */
  readonly attempt: number;
  readonly delayMs: number;
  readonly code: number;
  readonly reason: string;
  /** Why the gateway closed the connection, or refused the try before; null where it gave no reason. */
  readonly error: VoicewireError | null;
}

export interface ReconnectHandlers {
  /** What to open now. */
  opening(): Opening;
  waiting(how: Waiting): void;
  joined(socket: WebSocketLike, hello: HelloEvent): void;
  /** No more tries; `end` is the latest close. */
  givenUp(end: SocketEnd): void;
}

/** As the table of docs/protocol.md says, and 1006: the network broke. */
const WORTH_A_TRY: ReadonlySet<number> = new Set([1001, 1006, 4408, 4429, 4500, 4502, 4504]);
const DEFAULT_MAX_TRIES = 10;

export function isWorthATry(code: number): boolean {
  return WORTH_A_TRY.has(code);
}

export class Reconnector {
  readonly #options: ReconnectOptions;
  readonly #handlers: ReconnectHandlers;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #abandon: (() => void) | null = null;
  #waitingFor: number | null = null;

  constructor(options: ReconnectOptions, handlers: ReconnectHandlers) {
    this.#options = options;
    this.#handlers = handlers;
  }

  /** `error`: why the gateway closed the connection, and when it wants it back. */
  start(end: SocketEnd, error: VoicewireError | null): void {
    this.#wait(1, end, error);
  }

  /** Between a socket's end and the next one's `hello`. */
  get isTrying(): boolean {
    return this.#waitingFor !== null || this.#abandon !== null;
  }

  /** Does not wait any longer for the next try; without one to come it does nothing. */
  tryNow(): void {
    if (this.#waitingFor === null) return;
    clearTimeout(this.#timer);
    this.#try(this.#waitingFor);
  }

  /** No more tries, and no handler is called. */
  cancel(): void {
    clearTimeout(this.#timer);
    this.#waitingFor = null;
    this.#abandon?.();
    this.#abandon = null;
  }

  #wait(attempt: number, end: SocketEnd, error: VoicewireError | null): void {
    if (attempt > (this.#options.maxTries ?? DEFAULT_MAX_TRIES)) {
      this.#handlers.givenUp(end);
      return;
    }
    const random = (this.#options.random ?? Math.random)();
    const delayMs = Math.max(backoffMs(attempt, random, this.#options), error?.retryAfterMs ?? 0);
    this.#waitingFor = attempt;
    this.#timer = setTimeout(() => this.#try(attempt), delayMs);
    this.#handlers.waiting({ attempt, delayMs, ...end, error });
  }

  #try(attempt: number): void {
    this.#waitingFor = null;
    const opening = this.#handlers.opening();
    this.#abandon = openSocket(opening, {
      joined: (socket, hello) => {
        this.#abandon = null;
        this.#handlers.joined(socket, hello);
      },
      failed: (error, end) => {
        this.#abandon = null;
        const isLate = error.code === "token_expired" && opening.tokens?.isRenewable === true;
        if (!error.isRetryable && !isLate) this.#handlers.givenUp(end);
        else this.#wait(attempt + 1, end, error.isFromGateway ? error : null);
      },
    });
  }
}
