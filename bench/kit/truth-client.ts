/** A WebSocket client that keeps everything it gets: for benches that look at what was heard, not how fast. */
import { once } from "node:events";
import WebSocket from "ws";
import type { Event } from "../../src/protocol/events.ts";

const DEADLINE_MS = 30_000;

export class TruthClient implements AsyncDisposable {
  readonly #socket: WebSocket;
  readonly #wakes = new Set<() => void>();
  readonly events: Event[] = [];
  readonly #frames: Buffer[] = [];
  #audio = Buffer.alloc(0);
  /** Called with each frame. */
  onFrame: (frame: Buffer) => void = () => undefined;
  onEvent: (event: Event) => void = () => undefined;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data: Buffer, isBinary) => {
      if (isBinary) {
        this.#frames.push(data);
        this.onFrame(data);
      } else {
        const event = JSON.parse(data.toString()) as Event;
        this.events.push(event);
        this.onEvent(event);
        for (const wake of this.#wakes) wake();
      }
    });
  }

  /** `url`: ws://host:port/live/... */
  static async connect(url: string): Promise<TruthClient> {
    const client = new TruthClient(new WebSocket(url));
    await once(client.#socket, "open");
    return client;
  }

  /** All frames so far, joined. */
  get audio(): Buffer {
    if (this.#frames.length > 0) this.#audio = Buffer.concat([this.#audio, ...this.#frames.splice(0)]);
    return this.#audio;
  }

  eventsOf<T extends Event["type"]>(type: T): Extract<Event, { type: T }>[] {
    return this.events.filter((event): event is Extract<Event, { type: T }> => event.type === type);
  }

  send(message: object): void {
    this.#socket.send(JSON.stringify(message));
  }

  /** Waits for the first event that `isIt`; fails after half a minute. */
  async next<T extends Event["type"]>(
    type: T,
    isIt: (event: Extract<Event, { type: T }>) => boolean = () => true,
  ): Promise<Extract<Event, { type: T }>> {
    const endMs = performance.now() + DEADLINE_MS;
    for (;;) {
      const found = this.eventsOf(type).find(isIt);
      if (found !== undefined) return found;
      const leftMs = endMs - performance.now();
      const failure = this.events.find((event) => event.type === "error");
      if (leftMs <= 0 || this.#socket.readyState === WebSocket.CLOSED) {
        const types = this.events.slice(-8).map((event) => event.type);
        const state = this.#socket.readyState === WebSocket.OPEN ? "open" : "closed";
        throw new Error(`No ${type} came (${state}, last: ${types}): ${JSON.stringify(failure ?? null)}`);
      }
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

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#socket.readyState === WebSocket.CLOSED) return;
    this.#socket.close();
    await once(this.#socket, "close");
  }
}
