/** A WebSocket between Asterisk and the gateway that passes everything on, remembers the texts, and can put in audio and commands of its own. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import WebSocket, { type RawData, WebSocketServer } from "ws";

/** Asterisk ends the call over a message of more than 65,500 bytes. */
const MAX_MESSAGE_BYTES = 64_000;

export class MediaRelay implements AsyncDisposable {
  /** Text messages of the latest connection, as they came. */
  fromAsterisk: string[] = [];
  fromGateway: string[] = [];
  readonly #server: WebSocketServer;
  #asterisk: WebSocket | null = null;

  /** To ws://HOST:PORT. */
  static async start(gatewayUrl: string): Promise<MediaRelay> {
    const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
    await once(server, "listening");
    return new MediaRelay(server, gatewayUrl);
  }

  private constructor(server: WebSocketServer, gatewayUrl: string) {
    this.#server = server;
    server.on("connection", (asterisk, request) => {
      this.fromAsterisk = [];
      this.fromGateway = [];
      this.#asterisk = asterisk;
      const gateway = new WebSocket(`${gatewayUrl}${request.url ?? "/"}`, "media");
      const opened = once(gateway, "open");
      asterisk.on("message", (data: RawData, isBinary) => {
        if (!isBinary) this.fromAsterisk.push(data.toString());
        void opened.then(() => gateway.send(data, { binary: isBinary }));
      });
      gateway.on("message", (data: RawData, isBinary) => {
        if (!isBinary) this.fromGateway.push(data.toString());
        asterisk.send(data, { binary: isBinary });
      });
      asterisk.on("close", () => gateway.close());
      gateway.on("close", () => asterisk.close());
    });
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Frames to Asterisk, ahead of what the gateway sends from now on. */
  inject(frame: Buffer, count: number): void {
    const framesPerMessage = Math.floor(MAX_MESSAGE_BYTES / frame.length);
    for (let left = count; left > 0; left -= framesPerMessage) {
      const frames = Array.from({ length: Math.min(left, framesPerMessage) }, () => frame);
      this.#asterisk?.send(Buffer.concat(frames));
    }
  }

  /** One of chan_websocket's commands (JSON control). */
  command(name: string): void {
    this.#asterisk?.send(JSON.stringify({ command: name }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#server.clients) socket.terminate();
    this.#server.close();
    await once(this.#server, "close");
  }
}
