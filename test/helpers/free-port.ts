/** A TCP port of loopback for a program that needs its port before it starts. */
import { once } from "node:events";
import { createServer } from "node:net";

/** Free a moment ago: it was listened on and let go. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (typeof address !== "object" || address === null) throw new Error("No port: not listening");
  return address.port;
}
