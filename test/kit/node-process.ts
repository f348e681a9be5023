/** A node of a cluster as a process of its own: test/cluster/node-program.mjs, which a test kills and stops. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { until } from "../helpers/until.ts";

const PROGRAM = fileURLToPath(new URL("../cluster/node-program.mjs", import.meta.url));

export const isBuilt = existsSync(new URL("../../dist/cluster/bus/nats-bus.js", import.meta.url));

/** Of tests that ran into their deadline, too: they do not unwind. */
const running = new Set<NodeProcess>();

/** For `afterAll`. */
export async function endNodeProcesses(): Promise<void> {
  await Promise.all([...running].map((node) => node[Symbol.asyncDispose]()));
}

export class NodeProcess {
  readonly name: string;
  /** Whole lines of its output. */
  readonly lines: string[] = [];
  readonly #child: ChildProcess;

  constructor(url: string, name: string) {
    this.name = name;
    this.#child = spawn(process.execPath, [PROGRAM, url, name], { stdio: ["pipe", "pipe", "inherit"] });
    running.add(this);
    let rest = "";
    this.#child.stdout?.on("data", (data: Buffer) => {
      const lines = (rest + data.toString()).split("\n");
      rest = lines.pop() ?? "";
      this.lines.push(...lines);
    });
  }

  static async join(url: string, name: string): Promise<NodeProcess> {
    const node = new NodeProcess(url, name);
    await node.says("joined");
    return node;
  }

  /** Once more than `before` times. */
  async says(line: string, before = 0): Promise<void> {
    const isSaid = (): boolean => this.lines.filter((said) => said === line).length > before;
    await until(`${this.name} says "${line}"`, isSaid, { deadlineMs: 15_000 });
  }

  write(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  pause(): void {
    this.#child.kill("SIGSTOP");
  }

  resume(): void {
    this.#child.kill("SIGCONT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    running.delete(this);
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exit;
  }
}
