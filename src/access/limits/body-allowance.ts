/** How much of a request's body is read: by its client's rate, and by the memory for all clients. */
import { GatewayError } from "../../errors.ts";
import type { ByteRoom } from "../../kit/byte-room.ts";

const RETRY_MS = 1000;
/** The speech service gives up a body that stands still for a minute. */
const MAX_WAIT_MS = 30_000;

interface BodyRules {
  /** Throws rate_limited where its client has sent too much lately. */
  mustSend(): void;
  sent(bytes: number): void;
  /** A piece of a body that streams. Gives how long the next one has to wait so that the client keeps to its rate, ms. */
  streamed(bytes: number): number;
  onRefused(thrown: unknown): void;
}

export class BodyAllowance {
  readonly #room: ByteRoom;
  readonly #rules: BodyRules;
  #heldBytes = 0;

  constructor(room: ByteRoom, rules: BodyRules) {
    this.#room = room;
    this.#rules = rules;
  }

  /** Before its first byte. Throws rate_limited. */
  begin(): void {
    this.#unlessRefused(() => this.#rules.mustSend());
  }

  /** So much more has come, and is held. Throws memory_limit. */
  take(bytes: number): void {
    this.#rules.sent(bytes);
    this.hold(bytes);
  }

  /** So much more has come of a body that streams, and goes on at once. Gives how long the next piece has to wait, ms. */
  pass(bytes: number): number {
    return Math.min(this.#rules.streamed(bytes), MAX_WAIT_MS);
  }

  /** So much is held. Throws memory_limit. */
  hold(bytes: number): void {
    this.#unlessRefused(() => {
      if (!this.#room.hasRoomFor(bytes)) throw memoryLimit();
    });
    this.#heldBytes += bytes;
    this.#room.take(bytes);
  }

  #unlessRefused(check: () => void): void {
    try {
      check();
    } catch (thrown) {
      this.#rules.onRefused(thrown);
      throw thrown;
    }
  }

  /** Nothing of it is held any more. Idempotent. */
  letGo(): void {
    this.#room.take(-this.#heldBytes);
    this.#heldBytes = 0;
  }
}

function memoryLimit(): GatewayError {
  const message = "What all clients have sent and is not handled is as much as the gateway may hold";
  return new GatewayError("memory_limit", message, { retryAfterMs: RETRY_MS });
}
