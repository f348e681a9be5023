/** How many files and sockets a process may have open. */
import { readFileSync } from "node:fs";

/** For what a process has open beside its connections: libraries, pipes, threads. */
const OTHER_FILES = 200;

/** Throws where the process may not have so many connections. Node has raised the soft limit to the hard one at its start. */
export function requireConnections(name: string, pid: number, connections: number): void {
  const limit = openFilesLimit(readFileSync(`/proc/${pid}/limits`, "latin1"));
  const needed = connections + OTHER_FILES;
  if (limit >= needed) return;
  throw new Error(
    `The ${name} can't have ${connections} connections: it may open ${limit} files, expected ${needed}; ` +
      `raise the hard limit first (ulimit -Hn ${needed})`,
  );
}

/** The soft limit in the text of proc(5) `limits`. */
export function openFilesLimit(limits: string): number {
  const soft = /^Max open files +(\S+)/m.exec(limits)?.[1];
  if (soft === undefined) throw new Error("No limit of open files: expected a line 'Max open files'");
  return soft === "unlimited" ? Number.POSITIVE_INFINITY : Number(soft);
}
