/** Where a fixture's uWebSockets.js listens. */
import { type TemplatedApp, us_socket_local_port } from "uWebSockets.js";

/** A free port of 127.0.0.1. */
export function listenUws(app: TemplatedApp): Promise<number> {
  return new Promise((resolve, reject) => {
    app.listen("127.0.0.1", 0, (token) => {
      if (token === false) reject(new Error("Connections can't be taken on 127.0.0.1: no free port"));
      else resolve(us_socket_local_port(token));
    });
  });
}
