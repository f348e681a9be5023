/** Everything that a connection hands out, in its order: what a run is judged by. */
import type { Connection, Event, FramePosition, ReconnectedEvent } from "../../src/client/index.ts";
import { monotonicMs } from "../kit/monotonic.ts";

export type Item = { readonly wallMs: number } & (
  | { readonly kind: "frame"; readonly atMs: number; readonly bytes: Uint8Array }
  | { readonly kind: "event"; readonly event: Event }
  /** A new socket; on another timeline where `gapMs` is null. */
  | { readonly kind: "joined"; readonly gapMs: number | null; readonly isTakenOver: boolean }
);

export class Hearing {
  readonly items: Item[] = [];
  readonly #wakes = new Set<() => void>();

  constructor(connection: Connection) {
    connection.onAudio((frame, position) => this.#frame(frame, position));
    connection.onEvent((event) => this.#add({ kind: "event", event, wallMs: monotonicMs() }));
    connection.on("reconnected", (how) => this.#joined(how));
  }

  /** Resolves with what `find` finds first, now or later; null at the deadline. */
  async first<T>(find: (items: readonly Item[]) => T | null, deadlineMs: number): Promise<T | null> {
    const endMs = monotonicMs() + deadlineMs;
    for (;;) {
      const found = find(this.items);
      const leftMs = endMs - monotonicMs();
      if (found !== null || leftMs <= 0) return found;
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          clearTimeout(timer);
          this.#wakes.delete(wake);
          resolve();
        };
        const timer = setTimeout(wake, leftMs);
        this.#wakes.add(wake);
      });
    }
  }

  #frame(bytes: Uint8Array, { atMs }: FramePosition): void {
    // Nobody waits for a frame alone.
    this.items.push({ kind: "frame", atMs, bytes, wallMs: monotonicMs() });
  }

  #joined({ gapMs, takenOver }: ReconnectedEvent): void {
    this.#add({ kind: "joined", gapMs, isTakenOver: takenOver, wallMs: monotonicMs() });
  }

  #add(item: Item): void {
    this.items.push(item);
    for (const wake of [...this.#wakes]) wake();
  }
}
