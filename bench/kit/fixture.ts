/** A process of a bench as the bench sees it: started, asked over IPC, ended by its own handle. */
import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import type { MemorySnapshot } from "./memory.ts";

type Args<F> = F extends () => unknown ? undefined : F extends (args: infer A) => unknown ? A : never;
type Result<F> = F extends (...args: never[]) => infer R ? Awaited<R> : never;

const READY_DEADLINE_MS = 20_000;
const STOP_DEADLINE_MS = 3000;
/** Longest answer to a command: the longest scenario of the load takes a few minutes. */
const ANSWER_DEADLINE_MS = 10 * 60_000;

interface Pending {
  resolve(value: unknown): void;
  reject(error: Error): void;
  readonly timer: NodeJS.Timeout;
}

export interface FixtureStart {
  /** Folder of the bundled benches. */
  readonly outFolder: string;
  readonly options: object;
  /** Of its Node, default none. */
  readonly nodeFlags?: readonly string[];
}

export class Fixture<Commands extends object> implements AsyncDisposable {
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  #nextId = 1;
  #port = 0;
  #isEnded = false;

  private constructor(name: string, child: ChildProcess) {
    this.#name = name;
    this.#child = child;
    child.on("message", (message) => this.#onMessage(message as FixtureMessage));
    child.once("exit", () => this.#onExit());
  }

  /** Resolves when the fixture listens. Rejects with what it reported where it can't. */
  static async start<C extends object>(name: string, start: FixtureStart): Promise<Fixture<C>> {
    const child = fork(join(start.outFolder, "fixtures", `${name}.js`), [JSON.stringify(start.options)], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      execArgv: [...(start.nodeFlags ?? [])],
    });
    const fixture = new Fixture<C>(name, child);
    try {
      fixture.#port = (await fixture.#answer(0, READY_DEADLINE_MS)) as number;
    } catch (thrown) {
      await fixture.stop();
      throw thrown;
    }
    return fixture;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }
  /** The port it listens on; 0 where it does not. */
  get port(): number {
    return this.#port;
  }

  /** The fixture checks nothing: both ends are built from the same types. */
  ask<K extends keyof Commands & string>(name: K, args: Args<Commands[K]>): Promise<Result<Commands[K]>> {
    return this.#order(name, args ?? null) as Promise<Result<Commands[K]>>;
  }

  /** Starts or ends a CPU profile in the fixture; `path` is where it is written. */
  async profile(action: "start" | "stop", path: string): Promise<void> {
    await this.#order(`profile.${action}`, { path });
  }

  /** Watches from now on for how long the fixture's event loop stands still. */
  async startStallWatch(): Promise<void> {
    await this.#order("stalls.start", null);
  }
  /** The longest stall since, ms. */
  async stopStallWatch(): Promise<number> {
    return (await this.#order("stalls.stop", null)) as number;
  }

  /** What the fixture holds, after it has collected its garbage. */
  async memory(): Promise<MemorySnapshot> {
    return (await this.#order("memory", null)) as MemorySnapshot;
  }

  /** Ends the process: it leaves by itself when the channel closes, or is killed. Idempotent. */
  async stop(): Promise<void> {
    if (this.#isEnded) return;
    const exited = new Promise<void>((resolve) => {
      this.#child.once("exit", () => resolve());
    });
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), STOP_DEADLINE_MS);
    if (this.#child.connected) this.#child.disconnect();
    await exited;
    clearTimeout(timer);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #order(name: string, args: unknown): Promise<unknown> {
    const id = this.#nextId++;
    const answer = this.#answer(id, ANSWER_DEADLINE_MS);
    this.#child.send({ id, name, args });
    return answer;
  }

  #answer(id: number, deadlineMs: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pending.delete(id);
        reject(new Error(`Fixture ${this.#name} does not answer: waited ${deadlineMs} ms`));
      }, deadlineMs);
      this.#pending.set(id, { resolve, reject, timer });
    });
  }

  #onMessage(message: FixtureMessage): void {
    const pending = this.#pending.get(message.id);
    if (pending === undefined) return;
    this.#pending.delete(message.id);
    clearTimeout(pending.timer);
    if (message.error === undefined) pending.resolve(message.result);
    else pending.reject(new Error(`Fixture ${this.#name} failed: ${message.error}`));
  }

  #onExit(): void {
    this.#isEnded = true;
    for (const { reject, timer } of this.#pending.values()) {
      clearTimeout(timer);
      reject(new Error(`Fixture ${this.#name} ended: expected an answer`));
    }
    this.#pending.clear();
  }
}

/** Id 0 is the report of the port. */
export interface FixtureMessage {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: string;
}
