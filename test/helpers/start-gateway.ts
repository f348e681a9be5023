/** A whole gateway on a free port, quiet; and the embedded speech service behind it. */
import { once } from "node:events";
import WebSocket from "ws";
import { type Config, SETTINGS } from "../../src/config.ts";
import { type Gateway, type GatewayOptions, startGateway } from "../../src/gateway.ts";
import { systemClock } from "../../src/kit/clock.ts";
import type { Event } from "../../src/protocol/events.ts";
import { checkedEvent } from "./checked-event.ts";
import { watch, watchedLog } from "./watched-log.ts";

export const DEFAULTS = Object.fromEntries(
  SETTINGS.map((setting) => [setting.key, setting.default]),
) as Config;

/** No test waits a second until a file that it changed is read again. */
export const TEST_WATCH_MS = 20;

export interface TestGateway extends Gateway, AsyncDisposable {
  readonly wsUrl: string;
}

/** `upstreamBaseUrl`: where the speech service is. `settings` and `options` replace the defaults: `upstreamKey` is "test-key". */
export async function gatewayAt(
  upstreamBaseUrl: string,
  settings: Partial<Config> = {},
  options: Partial<GatewayOptions> = {},
): Promise<TestGateway> {
  const gateway = await startGateway({
    // A voice, so that a scripted upstream is asked for speech only and not for its list of voices.
    config: { ...DEFAULTS, port: 0, voice: "test-voice", ...settings },
    upstreamBaseUrl,
    upstreamKey: "test-key",
    clock: systemClock,
    watchMs: TEST_WATCH_MS,
    log: watchedLog,
    pageFolder: new URL("../../dist/page", import.meta.url).pathname,
    ...options,
  });
  return {
    ...gateway,
    wsUrl: gateway.url.replace("http", "ws"),
    [Symbol.asyncDispose]: () => gateway.close(),
  };
}

/** A client that keeps every message in order, and waits for what a test asks for. */
export class TestClient implements AsyncDisposable {
  readonly socket: WebSocket;
  readonly messages: ({ event: Event } | { frame: Buffer })[] = [];
  closed: { code: number; reason: string } | null = null;
  readonly #waiters = new Set<() => void>();

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data: Buffer, isBinary) => {
      this.messages.push(isBinary ? { frame: data } : { event: checkedEvent(data.toString()) });
      for (const wake of this.#waiters) wake();
    });
    socket.on("close", (code, reason) => {
      this.closed = { code, reason: reason.toString() };
      for (const wake of this.#waiters) wake();
    });
  }

  static async connect(
    gateway: { wsUrl: string },
    path: string,
    options: WebSocket.ClientOptions = {},
  ): Promise<TestClient> {
    const client = new TestClient(new WebSocket(`${gateway.wsUrl}${path}`, options));
    await once(client.socket, "open");
    return client;
  }

  get events(): Event[] {
    return this.messages.flatMap((message) => ("event" in message ? [message.event] : []));
  }
  get frames(): Buffer[] {
    return this.messages.flatMap((message) => ("frame" in message ? [message.frame] : []));
  }
  get audio(): Buffer {
    return Buffer.concat(this.frames);
  }

  eventsOf<T extends Event["type"]>(type: T): Extract<Event, { type: T }>[] {
    return this.events.filter((event): event is Extract<Event, { type: T }> => event.type === type);
  }

  send(message: object | string | Buffer): void {
    if (typeof message === "string" || Buffer.isBuffer(message)) {
      this.socket.send(message);
      return;
    }
    if ("text" in message && typeof message.text === "string") watch.said(message.text);
    this.socket.send(JSON.stringify(message));
  }

  /** Waits until `isTrue`, at most `deadlineMs`; fails with what has come so far. */
  async until(isTrue: () => boolean, deadlineMs = 30_000): Promise<void> {
    const endMs = performance.now() + deadlineMs;
    while (!isTrue()) {
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) {
        const types = this.events
          .map((event) => (event.type === "error" ? `error (${event.code})` : event.type))
          .join(" ");
        throw new Error(`Waited in vain; got ${this.frames.length} frames and: ${types}`);
      }
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          this.#waiters.delete(done);
          resolve();
        };
        const timer = setTimeout(done, leftMs);
        this.#waiters.add(done);
      });
    }
  }

  async next<T extends Event["type"]>(type: T, count = 1): Promise<Extract<Event, { type: T }>> {
    await this.until(() => this.eventsOf(type).length >= count);
    const event = this.eventsOf(type)[count - 1];
    if (event === undefined) throw new Error(`No ${type}`);
    return event;
  }

  /** Resolves with the close code and reason. */
  async untilClosed(): Promise<{ code: number; reason: string }> {
    await this.until(() => this.closed !== null);
    return this.closed ?? { code: 0, reason: "" };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.closed !== null) return;
    this.socket.close();
    await this.untilClosed();
  }
}
