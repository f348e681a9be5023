/** TCP ports of loopback for a program that needs its port before it starts. */
import { createServer } from "node:net";

/** Below those that Linux gives to connections: between here and the program's start none can take the port away. */
const [FROM, TO] = [11_000, 32_000];
const MAX_TRIES = 50;

/** Free a moment ago: it was listened on and let go. */
export function freePort(): Promise<number> {
  return firstOf(1);
}

/** The first of two in a row. */
export function freePortPair(): Promise<number> {
  return firstOf(2);
}

async function firstOf(count: number): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const first = FROM + Math.floor(Math.random() * (TO - FROM));
    const ports = Array.from({ length: count }, (_, index) => first + index);
    const areFree = await Promise.all(ports.map(isFree));
    if (areFree.every(Boolean)) return first;
  }
  throw new Error(`No ${count} free ports in a row`);
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
