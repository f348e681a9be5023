/** A client of the native protocol that remembers what came to it: for tests of whole programs. */
import WebSocket from "ws";
import { until } from "../helpers/until.ts";

/** On a machine that is busy with other tests. */
export const SLOW = { deadlineMs: 60_000 };

export class LiveClient implements Disposable {
  readonly events: Record<string, unknown>[] = [];
  audioBytes = 0;
  /** Code and reason; null while it is open. */
  closed: { readonly code: number; readonly reason: string } | null = null;
  readonly #socket: WebSocket;

  private constructor(url: string) {
    this.#socket = new WebSocket(url);
    this.#socket.on("message", (data: Buffer, isBinary) => {
      if (isBinary) this.audioBytes += data.length;
      else this.events.push(JSON.parse(data.toString()) as Record<string, unknown>);
    });
    this.#socket.on("error", () => undefined);
    this.#socket.on("close", (code, reason) => {
      this.closed = { code, reason: reason.toString() };
    });
  }

  /** Resolves with its `hello`, or when it was closed instead. */
  static async connect(url: string, path: string): Promise<LiveClient> {
    const client = new LiveClient(`${url.replace("http", "ws")}${path}`);
    await until(`hello of ${path}`, () => client.has("hello") || client.closed !== null, SLOW);
    return client;
  }

  has(type: string): boolean {
    return this.events.some((event) => event.type === type);
  }

  send(message: object): void {
    this.#socket.send(JSON.stringify(message));
  }

  [Symbol.dispose](): void {
    this.#socket.terminate();
  }
}
