/** A listener with the tape between: what it is sent is told, how full it says it is is read. */
import type { Delivery, Listener, SendResult } from "../../delivery/listener.ts";
import type { Event } from "../../protocol/events.ts";
import type { Surface } from "../../protocol/live-view.ts";
import type { OffsetUnit } from "../../protocol/vocabulary.ts";
import type { Tape } from "./tape.ts";

export class TapedListener implements Listener {
  readonly #listener: Listener;
  readonly #tape: Tape;
  readonly #number: number;

  /** `number`: which of the session's connections it is. */
  constructor(listener: Listener, { tape, number }: { readonly tape: Tape; readonly number: number }) {
    this.#listener = listener;
    this.#tape = tape;
    this.#number = number;
  }

  // For operators alone: no session acts on them.
  get surface(): Surface {
    return this.#listener.surface ?? "socket";
  }

  get roundTripMs(): number | null {
    return this.#listener.roundTripMs ?? null;
  }

  deliver(batch: readonly Delivery[], offsets: OffsetUnit): SendResult {
    return this.#tape.tell("deliver", [this.#number, batch, offsets], () =>
      this.#listener.deliver(batch, offsets),
    );
  }

  notify(event: Event): SendResult {
    return this.#tape.tell("notify", [this.#number, event], () => this.#listener.notify(event));
  }

  bufferedBytes(): number {
    return this.#tape.read("buffered", 0, () => this.#listener.bufferedBytes());
  }

  end(closeCode: number, reason: string): void {
    this.#tape.tell("end", [this.#number, closeCode, reason], () => this.#listener.end(closeCode, reason));
  }
}
