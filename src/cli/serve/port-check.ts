/** Whether a port can be listened on: asked before anything slow is started, and by doctor. */
import { createServer } from "node:net";

interface Address {
  readonly host: string;
  readonly port: number;
}

/** The system's reason (`EADDRINUSE`, `EADDRNOTAVAIL`, ...) why nothing can listen there; undefined where it can. */
export function listenFailure({ host, port }: Address): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/** A port that nothing listens on just now. Rejects with the system's error. */
export function findFreePort(host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen({ host, port: 0, exclusive: true }, () => {
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

/** What to do about it. */
export function portAdvice(failure: string, flag: "port" | "ops-port" = "port"): string {
  const host = flag === "port" ? "host" : "ops-host";
  if (failure === "EADDRNOTAVAIL" || failure === "ENOTFOUND")
    return `set ${host} to an address of this machine`;
  if (failure === "EACCES") return `choose a port from 1024 on with --${flag}`;
  return `end the program that has it, or choose another with --${flag} (0 picks a free one)`;
}
