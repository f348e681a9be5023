/** How much of what was published has not reached the server. The library keeps all of it and never says no. */

/** Until as much was published the server is not asked. */
const ASK_AFTER_BYTES = 64 * 1024;
/** Subject and framing of a message, about. */
const MESSAGE_OVERHEAD_BYTES = 64;

export class SendWindow {
  readonly #connection: { flush(): Promise<void> };
  #published = 0;
  #reached = 0;
  #isAsking = false;

  /** `flush` resolves when the server has read what was published before. */
  constructor(connection: { flush(): Promise<void> }) {
    this.#connection = connection;
  }

  get waitingBytes(): number {
    return this.#published - this.#reached;
  }

  /** A message was published. */
  sent(bytes: number): void {
    this.#published += bytes + MESSAGE_OVERHEAD_BYTES;
    if (!this.#isAsking && this.waitingBytes >= ASK_AFTER_BYTES) this.#ask();
  }

  #ask(): void {
    const published = this.#published;
    this.#isAsking = true;
    this.#connection.flush().then(
      () => {
        this.#reached = published;
        this.#isAsking = false;
        // What was published meanwhile may be the last for long.
        if (this.waitingBytes >= ASK_AFTER_BYTES) this.#ask();
      },
      // The connection is lost, and with it all that waited.
      () => undefined,
    );
  }
}
