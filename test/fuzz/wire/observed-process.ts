/** A program of ours under observation: its log's errors, its heap by Node's inspector, its open files. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import WebSocket from "ws";

const START_MS = 60_000;
const END_MS = 10_000;
const MEGABYTE = 1_048_576;
/** pino's number for an error. */
const ERROR_LEVEL = 50;
/** Lines that say what went wrong: the first ones do. */
const MAX_FAULTS = 20;
const MAX_FAULT_CHARS = 2000;
/** Linux counts the time of a process in ticks of so many ms. */
const TICK_MS = 10;
/** Of the heap: what one leaves waits for the next. */
const COLLECTIONS = 3;

interface InspectorAnswer {
  readonly id?: number;
  readonly result?: { readonly result?: { readonly value?: unknown } };
}

export interface ObservedOptions {
  readonly args: readonly string[];
  /** What it prints when it is ready; its first group is kept. */
  readonly ready: RegExp;
  /** The built program, `dist/main.js`. */
  readonly main: string;
}

export class ObservedProcess implements AsyncDisposable {
  readonly pid: number;
  /** What the ready line said. */
  readonly said: string;
  /** All that it printed until then. */
  readonly printed: string;
  /** Lines of its log of level error and above, and what else it writes to stderr. */
  readonly faults: readonly string[];
  readonly #child: ChildProcess;
  readonly #inspector: WebSocket;
  #asked = 0;

  private constructor(parts: {
    child: ChildProcess;
    inspector: WebSocket;
    printed: string;
    said: string;
    faults: string[];
  }) {
    this.#child = parts.child;
    this.#inspector = parts.inspector;
    this.pid = parts.child.pid ?? 0;
    this.printed = parts.printed;
    this.said = parts.said;
    this.faults = parts.faults;
  }

  static async start({ args, ready, main }: ObservedOptions): Promise<ObservedProcess> {
    const clean = Object.entries(process.env).filter(([name]) => !/^(VOICEWIRE_|ELEVENLABS_)/.test(name));
    const child = spawn(process.execPath, ["--inspect=127.0.0.1:0", main, ...args], {
      env: Object.fromEntries(clean),
      stdio: ["ignore", "pipe", "pipe"],
    });
    const faults: string[] = [];
    let inspectorUrl = "";
    let inspector: WebSocket | null = null;
    let printed = "";
    let rest = "";
    child.stdout?.on("data", (data: Buffer) => {
      printed += data.toString();
    });
    child.stderr?.on("data", (data: Buffer) => {
      const lines = (rest + data.toString()).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        inspectorUrl ||= /^Debugger listening on (ws:\S+)/.exec(line)?.[1] ?? "";
        // It has crashed, and would neither end nor answer as long as somebody inspects it.
        if (line.startsWith("Waiting for the debugger")) inspector?.terminate();
        if (isFault(line) && faults.length < MAX_FAULTS) faults.push(line.slice(0, MAX_FAULT_CHARS));
      }
    });
    const deadline = performance.now() + START_MS;
    while (inspectorUrl === "" || !ready.test(printed)) {
      if (child.exitCode !== null || performance.now() > deadline) {
        child.kill("SIGKILL");
        throw new Error(`The program did not start: ${printed} ${faults.join("\n")}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    inspector = new WebSocket(inspectorUrl);
    await once(inspector, "open");
    return new ObservedProcess({ child, inspector, printed, said: ready.exec(printed)?.[1] ?? "", faults });
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Used by JavaScript and by its buffers, behind a collection of garbage, MB. */
  async heapMb(): Promise<number> {
    for (let collection = 0; collection < COLLECTIONS; collection += 1)
      await this.#ask("HeapProfiler.collectGarbage", {});
    const value = await this.#ask("Runtime.evaluate", {
      expression: "(({ heapUsed, external }) => heapUsed + external)(process.memoryUsage())",
      returnByValue: true,
    });
    return Math.round((Number(value) / MEGABYTE) * 10) / 10;
  }

  /** Time of the processor that it has taken in all its threads, ms; 0 where it has ended. */
  cpuMs(): number {
    if (!this.isAlive) return 0;
    // Behind the name, which may have spaces: the 12th and 13th field are those of user and system.
    const fields = readFileSync(`/proc/${this.pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  }

  /** Sockets and files. */
  openFiles(): number {
    return readdirSync(`/proc/${this.pid}/fd`).length;
  }

  async #ask(method: string, params: object): Promise<unknown> {
    this.#asked += 1;
    const id = this.#asked;
    const answered = new Promise<unknown>((resolve, reject) => {
      const finish = (): void => {
        this.#inspector.off("message", take);
        this.#inspector.off("close", lose);
      };
      const take = (data: Buffer): void => {
        const answer = JSON.parse(data.toString()) as InspectorAnswer;
        if (answer.id !== id) return;
        finish();
        resolve(answer.result?.result?.value);
      };
      const lose = (): void => {
        finish();
        reject(new Error("The program has ended"));
      };
      this.#inspector.on("message", take);
      this.#inspector.on("close", lose);
    });
    this.#inspector.send(JSON.stringify({ id, method, params }));
    return await answered;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#inspector.terminate();
    if (!this.isAlive) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), END_MS);
    await exited;
    clearTimeout(timer);
  }
}

/** The inspector greets on stderr; the log's lines are JSON; anything else is what Node says of a fault. */
function isFault(line: string): boolean {
  if (line.trim() === "" || /^(?:Debugger|For help, see|Waiting for the debugger)/.test(line)) return false;
  if (!line.startsWith("{")) return true;
  const { level } = JSON.parse(line) as { readonly level?: number };
  return level === undefined || level >= ERROR_LEVEL;
}
