/** The built program as an operator starts it: `serve`, with as many workers as are asked for. */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { wait } from "./monotonic.ts";

const READY_DEADLINE_MS = 30_000;
const STOP_DEADLINE_MS = 5000;

export interface ServedOptions {
  /** File URL of the build, slash at the end. */
  readonly distUrl: string;
  /** Default: the embedded service, which starts with it, and its default voice. */
  readonly upstreamPort?: number;
  readonly workers: number;
  /** Tells its metrics at `metricsUrl`; default false. */
  readonly hasMetrics?: boolean;
  /** Default: a free one. */
  readonly port?: number;
  /** More flags of `serve`. */
  readonly args?: readonly string[];
  /** A command that takes the program's own behind it and becomes it; default: none. */
  readonly through?: readonly string[];
  /** Beside the environment of the bench; default: nothing. */
  readonly env?: Readonly<Record<string, string>>;
}

export class ServedProgram implements AsyncDisposable {
  readonly port: number;
  /** Empty where they were not asked for. */
  readonly metricsUrl: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, { port, metricsUrl }: Announced) {
    this.#child = child;
    this.port = port;
    this.metricsUrl = metricsUrl;
  }

  static async start(options: ServedOptions): Promise<ServedProgram> {
    const { distUrl, upstreamPort, workers, hasMetrics = false, env = {} } = options;
    const { port = 0, through = [] } = options;
    const upstream =
      upstreamPort === undefined
        ? []
        : ["--voice", "bench", "--upstream-url", `http://127.0.0.1:${upstreamPort}`];
    const args = [
      ...["serve", "--port", `${port}`, "--ops-port", hasMetrics ? "0" : "off", "--log-level", "error"],
      ...[...upstream, "--workers", `${workers}`],
      // Every session has a request open and one ahead.
      ...["--upstream-connections", `${4096 * workers}`],
      ...(options.args ?? []),
    ];
    const main = fileURLToPath(new URL("main.js", distUrl));
    // The file itself: its first line has the flags of Node.
    const [program = main, ...before] = [...through, main];
    const child = spawn(program, [...before, ...args], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, ...env },
    });
    const announced = await announcedBy(child).catch(async (thrown: unknown) => {
      await stop(child);
      throw thrown;
    });
    return new ServedProgram(child, announced);
  }

  /** Of the process that was started; its workers are its children. */
  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Resolves when it has ended. */
  get ended(): Promise<void> {
    return endOf(this.#child);
  }

  kill(signal: "SIGTERM" | "SIGKILL"): void {
    this.#child.kill(signal);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return stop(this.#child);
  }
}

interface Announced {
  readonly port: number;
  readonly metricsUrl: string;
}

/** In one write. */
async function announcedBy(child: ChildProcess): Promise<Announced> {
  let said = "";
  child.stdout?.on("data", (data: Buffer) => {
    said += data.toString();
  });
  for (let waitedMs = 0; waitedMs < READY_DEADLINE_MS; waitedMs += 50) {
    const [, port] = /Page {2}http:\S+:(\d+)\//.exec(said) ?? [];
    const [, metricsUrl = ""] = /Ops {3}(\S+)/.exec(said) ?? [];
    if (port !== undefined) return { port: Number(port), metricsUrl };
    if (child.exitCode !== null) break;
    await wait(50);
  }
  throw new Error("voicewire serve did not start");
}

function endOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
  });
}

/** Its workers end with it. */
async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = endOf(child);
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_DEADLINE_MS);
  child.kill("SIGTERM");
  child.kill("SIGTERM");
  await exited;
  clearTimeout(timer);
}
