/** A port of the gateway's: listened on alone, and closed once. */
import {
  type TemplatedApp,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from "uWebSockets.js";
import { GatewayError } from "../errors.ts";

/** Listen options of uSockets: without the second two programs share a port on Linux (SO_REUSEPORT) and neither notices. */
const SHARED_PORT = 0;
const EXCLUSIVE_PORT = 1;

export interface Address {
  readonly host: string;
  readonly port: number;
  /** The setting to change where the port is taken. */
  readonly flag: "port" | "ops-port";
  /** Other processes of this program listen on it, too: the kernel spreads connections over them. Default: false. */
  readonly isShared?: boolean;
}

export interface ListeningPort {
  readonly port: number;
  /** Takes no new connections; open ones live on. Idempotent. */
  stopListening(): void;
  /** Closes every socket. Idempotent. */
  close(): void;
}

/** The library's typings leave out the variant with both a host and options. */
interface ExclusiveListener {
  listen(host: string, port: number, options: number, done: (socket: us_listen_socket | false) => void): void;
}

/** Rejects with port_in_use. */
export function listen(
  app: TemplatedApp,
  { host, port, flag, isShared = false }: Address,
): Promise<ListeningPort> {
  return new Promise((resolve, reject) => {
    const listener: ExclusiveListener = app as unknown as ExclusiveListener;
    listener.listen(host, port, isShared ? SHARED_PORT : EXCLUSIVE_PORT, (socket) => {
      if (socket === false) {
        const why = "another program has it, or the address is not this machine's";
        reject(
          new GatewayError("port_in_use", `Can't listen on ${host}:${port} (${flag}): ${why}`, {
            field: flag,
          }),
        );
        return;
      }
      let state: "listening" | "stopped" | "closed" = "listening";
      resolve({
        port: us_socket_local_port(socket),
        stopListening: () => {
          if (state !== "listening") return;
          state = "stopped";
          us_listen_socket_close(socket);
        },
        close: () => {
          if (state === "closed") return;
          state = "closed";
          app.close();
        },
      });
    });
  });
}
