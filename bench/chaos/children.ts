/** The processes that a gateway has started: workers, and the speech service. */
import { readFileSync } from "node:fs";

/** Those whose command line has `word`. */
export function childrenOf(pid: number, word: string): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  const pids = text === "" ? [] : text.split(" ").map(Number);
  return pids.filter((child) => argumentsOf(child).includes(word));
}

/** One that has ended meanwhile has none. */
function argumentsOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return [];
    throw thrown;
  }
}

/** Whether there was one to be told. */
export function signalTo(pid: number | undefined, signal: "SIGKILL" | "SIGSTOP"): boolean {
  if (pid === undefined) return false;
  try {
    return process.kill(pid, signal);
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ESRCH") return false;
    throw thrown;
  }
}
