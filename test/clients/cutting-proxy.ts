/** A network that breaks: passes bytes on between a client and a server of loopback, until it cuts what stands. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class CuttingProxy implements AsyncDisposable {
  /** Connections that were taken so far. */
  opened = 0;
  readonly #server: Server;
  readonly #standing = new Set<Socket>();

  private constructor(targetPort: number) {
    this.#server = createServer((client) => {
      this.opened += 1;
      const target = connect(targetPort, "127.0.0.1");
      for (const [socket, other] of [
        [client, target],
        [target, client],
      ] as const) {
        this.#standing.add(socket);
        socket.on("data", (bytes) => other.write(bytes));
        // Either side's end is both sides' end, broken or not.
        socket.on("error", () => other.destroy());
        socket.on("close", () => {
          this.#standing.delete(socket);
          other.destroy();
        });
      }
    });
  }

  /** `targetUrl`: of the server, on 127.0.0.1. */
  static async start(targetUrl: string): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(Number(new URL(targetUrl).port));
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Ends every connection that stands, without a word; new ones are taken. */
  cut(): void {
    for (const socket of this.#standing) socket.resetAndDestroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.cut();
    await once(this.#server, "close");
  }
}
