/**
 * Whether the client may speak: its key comes with the handshake or with the first message. What it says before that is
 * known waits: clients send all they have without waiting for answers.
 */
import { GatewayError } from "../errors.ts";
import { fault, type SocketFault } from "../protocol/elevenlabs/socket-faults.ts";
import type { Credentials } from "../protocol/elevenlabs/socket-settings.ts";
import type { KeyCheck } from "./ports.ts";

export interface KeyGateOptions<M> {
  readonly check: KeyCheck | undefined;
  readonly credentials: Credentials;
  readonly onMessage: (message: M) => void;
  readonly onRefused: (reason: "missing" | "wrong") => void;
  /** Too much was said before the key was known, or asking failed. */
  readonly onError: (thrown: unknown) => void;
}

/** Messages that wait. */
const MAX_WAITING = 256;

export class KeyGate<M extends { readonly credentials: Credentials }> {
  readonly #options: KeyGateOptions<M>;
  #state: "waiting" | "asking" | "open" | "closed" = "waiting";
  #waiting: M[] = [];

  constructor(options: KeyGateOptions<M>) {
    this.#options = options;
    if (options.check === undefined) this.#state = "open";
    else if (!isEmpty(options.credentials)) this.#ask(options.check, options.credentials);
  }

  push(message: M): void {
    const { check, onMessage, onRefused, onError } = this.#options;
    if (this.#state === "closed") return;
    if (this.#state === "open" || check === undefined) {
      onMessage(message);
      return;
    }
    if (this.#waiting.length >= MAX_WAITING) {
      this.close();
      onError(
        new GatewayError("queue_full", `More than ${MAX_WAITING} messages wait for the key to be checked`),
      );
      return;
    }
    this.#waiting.push(message);
    if (this.#state === "asking") return;
    if (isEmpty(message.credentials)) {
      this.close();
      onRefused("missing");
    } else this.#ask(check, message.credentials);
  }

  /** Lets nothing through any more. Idempotent. */
  close(): void {
    this.#state = "closed";
    this.#waiting = [];
  }

  #ask(check: KeyCheck, credentials: Credentials): void {
    this.#state = "asking";
    // A check that throws is a check that rejects.
    Promise.resolve()
      .then(() => check(credentials))
      .then((isRight) => this.#answered(isRight))
      .catch((thrown: unknown) => {
        if (this.#state === "closed") return;
        this.close();
        this.#options.onError(thrown);
      });
  }

  #answered(isRight: boolean): void {
    if (this.#state === "closed") return;
    if (!isRight) {
      this.close();
      this.#options.onRefused("wrong");
      return;
    }
    this.#state = "open";
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const message of waiting) this.push(message);
  }
}

/** As the vendor words it. */
export function refusedKey(reason: "missing" | "wrong"): SocketFault {
  return reason === "wrong"
    ? fault("invalid_api_key", "Invalid API key")
    : fault("authentication_required", "No API key came with the handshake or the first message");
}

function isEmpty(credentials: Credentials): boolean {
  return Object.keys(credentials).length === 0;
}
