/** A client's socket in memory: what was sent, read back from the wire, and how full it says it is. */
import type { Delivery, Listener, SendResult } from "../../src/delivery/listener.ts";
import type { Event } from "../../src/protocol/events.ts";
import type { OffsetUnit } from "../../src/protocol/vocabulary.ts";

const DECODER = new TextDecoder();

export interface Sent {
  readonly frame?: Uint8Array;
  readonly event?: Event;
  /** Which cork it left in. */
  readonly cork: number;
}

export class MemoryListener implements Listener {
  readonly sent: Sent[] = [];
  /** Bytes that wait; raise it to make the socket full. */
  buffered = 0;
  isFull = false;
  ended: { code: number; reason: string } | null = null;
  #corks = 0;

  deliver(batch: readonly Delivery[], offsets: OffsetUnit): SendResult {
    this.#corks += 1;
    let worst: SendResult = "sent";
    for (const item of batch) {
      this.beforeSend();
      if (item instanceof Uint8Array) this.sent.push({ frame: new Uint8Array(item), cork: this.#corks });
      else this.#keep(DECODER.decode(item.json(offsets)));
      if (this.isFull) worst = "buffered";
    }
    return worst;
  }

  notify(event: Event): SendResult {
    this.#keep(JSON.stringify(event));
    return this.isFull ? "buffered" : "sent";
  }

  /** Called before each message of a batch. */
  beforeSend = (): void => undefined;

  #keep(text: string): void {
    this.sent.push({ event: JSON.parse(text) as Event, cork: this.#corks });
  }

  bufferedBytes(): number {
    return this.isFull ? Math.max(this.buffered, 1_000_000) : this.buffered;
  }

  end(code: number, reason: string): void {
    this.ended ??= { code, reason };
  }

  // Plain loops: some tests ask for these after each millisecond.
  get frames(): Uint8Array[] {
    const frames: Uint8Array[] = [];
    for (const { frame } of this.sent) if (frame !== undefined) frames.push(frame);
    return frames;
  }

  get events(): Event[] {
    const events: Event[] = [];
    for (const { event } of this.sent) if (event !== undefined) events.push(event);
    return events;
  }

  eventsOf<T extends Event["type"]>(type: T): Extract<Event, { type: T }>[] {
    return this.events.filter((event): event is Extract<Event, { type: T }> => event.type === type);
  }
}
