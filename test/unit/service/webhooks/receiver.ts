/** A real receiver of webhooks on this machine, which answers as the test says. */
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly response: ServerResponse;
}

export class Receiver {
  /** All that came, in order. */
  readonly received: Received[] = [];
  /** How the next ones are answered. */
  answer: (received: Received) => void = ({ response }) => response.end("thanks");
  /** Connections that were made, requests or not. */
  connections = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #taken: ((received: Received) => void)[] = [];
  #next = 0;

  private constructor(tls?: { readonly key: string; readonly cert: string }) {
    this.#server = tls === undefined ? createServer() : createSecureServer(tls);
    this.#server.on("connection", (socket: Socket) => {
      this.connections += 1;
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
      socket.on("error", () => socket.destroy());
    });
    this.#server.on("request", (request, response: ServerResponse) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        const { method = "", url: path = "", headers } = request;
        const received = { method, path, headers, body: Buffer.concat(parts), response };
        this.received.push(received);
        this.answer(received);
        this.#give();
      });
    });
  }

  static async start(tls?: { readonly key: string; readonly cert: string }): Promise<Receiver> {
    const receiver = new Receiver(tls);
    await new Promise<void>((resolve) => receiver.#server.listen(0, "127.0.0.1", resolve));
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hook?a=1`;
  }

  /** Connections that are open. */
  get open(): number {
    return this.#sockets.size;
  }

  /** The next one that was not taken yet, once it is there. */
  take(): Promise<Received> {
    return new Promise((resolve) => {
      this.#taken.push(resolve);
      this.#give();
    });
  }

  /** Answers with a status from now on. */
  answerWith(status: number, headers: Readonly<Record<string, string>> = {}): void {
    this.answer = ({ response }) => response.writeHead(status, headers).end();
  }

  /** Leaves requests unanswered from now on. */
  staySilent(): void {
    this.answer = () => undefined;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #give(): void {
    for (;;) {
      const received = this.received[this.#next];
      if (received === undefined || this.#taken.length === 0) return;
      this.#next += 1;
      this.#taken.shift()?.(received);
    }
  }
}
