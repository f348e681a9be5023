/** Texts that are not spoken yet. Each session and socket bounds its own; here is what bounds ten thousand of them. */
import type { ByteRoom } from "../../kit/byte-room.ts";
import { LimitError } from "./limit-error.ts";

/** A UTF-16 code unit; where a text is ASCII it is half of that. */
const BYTES_A_CHARACTER = 2;
const RETRY_MS = 1000;

/** The text of one utterance. */
export class QueuedText {
  readonly #room: ByteRoom;
  #bytes = 0;
  #isOver = false;

  constructor(room: ByteRoom) {
    this.#room = room;
  }

  /** More of it. Throws queue_full. */
  add(characters: number): void {
    if (this.#isOver) return;
    const bytes = characters * BYTES_A_CHARACTER;
    if (!this.#room.hasRoomFor(bytes)) throw queueFull();
    this.#take(bytes);
  }

  /** It was not taken after all. */
  takeBack(characters: number): void {
    if (!this.#isOver) this.#take(-characters * BYTES_A_CHARACTER);
  }

  /** The utterance is over. Idempotent. */
  end(): void {
    this.#take(-this.#bytes);
    this.#isOver = true;
  }

  #take(bytes: number): void {
    this.#bytes += bytes;
    this.#room.take(bytes);
  }
}

function queueFull(): LimitError {
  const message =
    "The texts of all clients that are not spoken yet are as much as the gateway may hold: try again later";
  return new LimitError("queue_full", message, {
    rate: { limit: 0, remaining: 0, resetMs: RETRY_MS },
    retryAfterMs: RETRY_MS,
  });
}
