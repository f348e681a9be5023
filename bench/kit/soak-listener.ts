/** A listener's socket of the soak: counts, holds nothing, and stops reading when told to. */
import type { Delivery, Listener, SendResult } from "../../src/delivery/listener.ts";
import type { Event } from "../../src/protocol/events.ts";
import type { OffsetUnit } from "../../src/protocol/vocabulary.ts";

export class SoakListener implements Listener {
  /** Called with each event; null = events are only counted. */
  readonly #onEvent: ((event: Event) => void) | null;
  readonly #decoder = new TextDecoder();
  /** Called once, when the session ends the connection. */
  onEnd: (() => void) | null = null;
  frames = 0;
  events = 0;
  isEnded = false;
  #isStalled = false;
  #waitingBytes = 0;

  constructor(onEvent: ((event: Event) => void) | null) {
    this.#onEvent = onEvent;
  }

  deliver(batch: readonly Delivery[], offsets: OffsetUnit): SendResult {
    for (const item of batch) {
      const isFrame = item instanceof Uint8Array;
      const bytes = isFrame ? item : item.json(offsets);
      this.#waitingBytes += bytes.length;
      if (isFrame) this.frames += 1;
      else this.#take(bytes);
    }
    return this.#outcome();
  }

  notify(event: Event): SendResult {
    this.#waitingBytes += JSON.stringify(event).length;
    this.events += 1;
    this.#onEvent?.(event);
    return this.#outcome();
  }

  bufferedBytes(): number {
    return this.#waitingBytes;
  }

  /** The close handler runs before it returns, as the server library has it. */
  end(): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.onEnd?.();
  }

  stall(): void {
    this.#isStalled = true;
  }

  /** Everything that waits is read; the session has to be told. */
  readOn(): void {
    this.#isStalled = false;
    this.#waitingBytes = 0;
  }

  get isStalled(): boolean {
    return this.#isStalled;
  }

  #take(bytes: Uint8Array): void {
    this.events += 1;
    if (this.#onEvent !== null) this.#onEvent(JSON.parse(this.#decoder.decode(bytes)) as Event);
  }

  #outcome(): SendResult {
    if (this.#isStalled) return "buffered";
    this.#waitingBytes = 0;
    return "sent";
  }
}
