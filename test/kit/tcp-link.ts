/** A connection between two programs that a test cuts: what comes in on its port goes to another, while it is whole. */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

export class TcpLink {
  readonly port: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;

  private constructor(server: Server, port: number, targetPort: number) {
    this.#server = server;
    this.port = port;
    server.on("connection", (socket) => {
      if (this.#isCut) {
        socket.destroy();
        return;
      }
      const other = connect(targetPort, "127.0.0.1");
      for (const end of [socket, other]) {
        this.#sockets.add(end);
        end.on("error", () => end.destroy());
        end.on("close", () => {
          this.#sockets.delete(end);
          socket.destroy();
          other.destroy();
        });
      }
      socket.pipe(other).pipe(socket);
    });
  }

  static async to(targetPort: number): Promise<TcpLink> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (typeof address !== "object" || address === null) throw new Error("No port: not listening");
    return new TcpLink(server, address.port, targetPort);
  }

  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  heal(): void {
    this.#isCut = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }
}
