/**
 * How many connections may wait until the program accepts them. The server library asks the kernel for 512, and has no setting
 * for it. In a storm of reconnects a stall of 100 ms fills that: the first packet of whoever comes then is dropped, and sent
 * again after a second (bench d1).
 *
 * listen(2) may be called once more on a socket that listens already, and sets a new length. Node only does so for a socket that it
 * is given when it starts, so a short-lived process gets ours, lengthens the queue, and ends; the socket is still ours then.
 */
import { spawn } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Logger } from "../../kit/log.ts";

/** Connections. Linux takes no more than net.core.somaxconn, 4096 where nobody has changed it. */
export const CONNECTION_QUEUE = 4096;
/** The number under which the process finds the socket. */
const GIVEN_FD = 3;
const LENGTHEN = `const server = require("node:net").createServer(); server.listen({ fd: ${GIVEN_FD} }, ${CONNECTION_QUEUE}, () => server.close());`;
/** State of a socket that listens, in /proc/net/tcp. */
const LISTENING = "0A";

/**
 * Lengthens the queues of what listens on `port` in this process. Never rejects: with a short queue all works but storms. Linux only.
 */
export async function lengthenQueue(port: number, log: Logger): Promise<void> {
  try {
    const fds = listeningFds(port);
    const codes = await Promise.all(fds.map(lengthen));
    if (fds.length === 0 || codes.some((code) => code !== 0))
      log.debug({ port }, "Connections wait in a short queue");
  } catch (thrown) {
    log.debug({ port, detail: String(thrown) }, "Connections wait in a short queue");
  }
}

function lengthen(fd: number): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const child = spawn("/proc/self/exe", ["-e", LENGTHEN], {
      stdio: ["ignore", "ignore", "ignore", fd],
      timeout: 10_000,
    });
    child.once("error", reject);
    child.once("exit", resolve);
  });
}

/** Numbers of this process's sockets that listen on `port`. Throws where /proc does not tell. */
function listeningFds(port: number): number[] {
  const sockets = new Set(inodesOf(port).map((inode) => `socket:[${inode}]`));
  return readdirSync("/proc/self/fd")
    .filter((fd) => sockets.has(linkOf(`/proc/self/fd/${fd}`)))
    .map(Number);
}

function inodesOf(port: number): string[] {
  const isOurs = (address = ""): boolean => Number.parseInt(address.split(":").at(-1) ?? "", 16) === port;
  return ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
    .flatMap((file) => readFileSync(file, "latin1").split("\n"))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, address, , state]) => state === LISTENING && isOurs(address))
    .map((columns) => columns[9] ?? "");
}

/** "" where the file is closed meanwhile. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return "";
    throw thrown;
  }
}
