/** A port of the gateway's: listened on alone, and closed once. */
import {
  type TemplatedApp,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from "uWebSockets.js";
import { GatewayError } from "../errors.ts";

/** Listen option of uSockets: without it two programs share a port on Linux and neither notices. */
const EXCLUSIVE_PORT = 1;

export interface Address {
  readonly host: string;
  readonly port: number;
  /** The setting to change where the port is taken. */
  readonly flag: "port" | "ops-port";
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
export function listen(app: TemplatedApp, { host, port, flag }: Address): Promise<ListeningPort> {
  return new Promise((resolve, reject) => {
    const listener: ExclusiveListener = app as unknown as ExclusiveListener;
    listener.listen(host, port, EXCLUSIVE_PORT, (socket) => {
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
