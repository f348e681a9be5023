/** This program once more, as a child process that ends with this one. */
import { fork } from "node:child_process";
import { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import { workerUrl } from "../../kit/worker-url.ts";

/** The part of a child process that is used; its end is reported once, whatever ended it. */
export interface Child<Sent, Report> {
  readonly pid: number | undefined;
  /** Does nothing once the child has ended. */
  send(message: Sent): void;
  onReport(listener: (report: Report) => void): void;
  onEnd(listener: (reason: string) => void): void;
  kill(signal: "SIGTERM" | "SIGKILL"): void;
}

export interface ForkOptions {
  readonly env: NodeJS.ProcessEnv;
}

/** Where a child finds its end of the pipe that `forkWithPipe` gives it. */
export const CHILD_PIPE = 4;

/** One thread of its own marks garbage: it has the gateway's cores (docs/architecture.md, Pacing). */
const NODE_FLAGS = ["--v8-pool-size=1"];

/** With an IPC channel; its log goes where ours goes. */
export function forkProgram<Sent extends object, Report>(
  args: readonly string[],
  options: ForkOptions,
): Child<Sent, Report> {
  return start<Sent, Report>(args, options, []).child;
}

/** With a pipe beside, both ways. */
export function forkWithPipe<Sent extends object, Report>(
  args: readonly string[],
  options: ForkOptions,
): { readonly child: Child<Sent, Report>; readonly pipe: Duplex } {
  const { child, pipe } = start<Sent, Report>(args, options, ["pipe"]);
  if (!(pipe instanceof Duplex)) throw new TypeError("The child has no pipe");
  return { child, pipe };
}

function start<Sent extends object, Report>(
  args: readonly string[],
  { env }: ForkOptions,
  more: readonly "pipe"[],
): { readonly child: Child<Sent, Report>; readonly pipe: unknown } {
  const main = fileURLToPath(workerUrl("../../main.ts", import.meta.url));
  const child = fork(main, [...args], {
    stdio: ["ignore", "ignore", "inherit", "ipc", ...more],
    execArgv: NODE_FLAGS,
    env,
  });
  const endListeners: ((reason: string) => void)[] = [];
  let ended: string | undefined;
  const end = (reason: string) => {
    if (ended !== undefined) return;
    ended = reason;
    for (const listener of endListeners) listener(reason);
  };
  child.once("error", (cause) => end(cause.message));
  child.once("exit", (code, signal) => end(signal === null ? `exit code ${code}` : `signal ${signal}`));
  return {
    pipe: child.stdio[CHILD_PIPE],
    child: {
      pid: child.pid,
      send: (message) => {
        // A message that does not arrive needs no handling: the end of the child is reported by `onEnd`.
        if (child.connected) child.send(message, () => undefined);
      },
      onReport: (listener) => {
        child.on("message", (message) => listener(message as Report));
      },
      onEnd: (listener) => {
        if (ended === undefined) endListeners.push(listener);
        else listener(ended);
      },
      kill: (signal) => {
        child.kill(signal);
      },
    },
  };
}
