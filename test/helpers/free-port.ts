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

/** The first of two in a row. */
export async function freePortPair(): Promise<number> {
  for (let tries = 0; tries < 50; tries += 1) {
    const port = await freePort();
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port + 1, "127.0.0.1", () => resolve(true));
    });
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
    if (isFree) return port;
  }
  throw new Error("No two free ports in a row");
}
