/** A real nats-server on loopback, in a folder of its own, that a test kills, stops and starts again. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../helpers/free-port.ts";
import { until } from "../helpers/until.ts";

/** Debian has it where only root looks. */
const PATH = `${process.env.PATH}:/usr/sbin:/usr/local/sbin`;

const isInstalled = spawnSync("nats-server", ["-v"], { stdio: "ignore", env: { PATH } }).error === undefined;

/** In CI its absence fails. */
export const isNatsMissing = !isInstalled && process.env.CI === undefined;
/** For the names of what is left out. */
export const IF_NATS_MISSING = isNatsMissing ? " (skipped: nats-server is not installed)" : "";

/** Of tests that ran into their deadline, too: they do not unwind. */
const running = new Set<NatsServer>();

/** For `afterAll`. */
export async function endNatsServers(): Promise<void> {
  await Promise.all([...running].map((server) => server[Symbol.asyncDispose]()));
}

export interface NatsServerOptions {
  /** More of its configuration file. */
  readonly config?: string;
  /** True unless set. */
  readonly jetstream?: boolean;
  readonly port?: number;
}

export class NatsServer {
  readonly port: number;
  readonly #folder: string;
  #child: ChildProcess | null = null;
  #said = "";

  private constructor(port: number, options: NatsServerOptions) {
    this.port = port;
    this.#folder = mkdtempSync(join(tmpdir(), "voicewire-nats-"));
    const jetstream = options.jetstream ?? true;
    writeFileSync(
      join(this.#folder, "nats.conf"),
      [
        `listen: "127.0.0.1:${port}"`,
        jetstream ? `jetstream { store_dir: "${this.#folder}/store", max_mem: 256MB, max_file: 64MB }` : "",
        options.config ?? "",
      ].join("\n"),
    );
  }

  static async start(options: NatsServerOptions = {}): Promise<NatsServer> {
    const server = new NatsServer(options.port ?? (await freePort()), options);
    running.add(server);
    await server.start();
    return server;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const child = spawn("nats-server", ["-c", join(this.#folder, "nats.conf")], {
      stdio: ["ignore", "ignore", "pipe"],
      env: { PATH },
    });
    this.#child = child;
    this.#said = "";
    child.stderr.on("data", (data: Buffer) => {
      this.#said += data.toString();
    });
    await until("nats-server is ready", () => {
      if (child.exitCode !== null) throw new Error(`nats-server ended: ${this.#said}`);
      return this.#said.includes("Server is ready");
    });
  }

  /** As a crash does: nothing is said to its clients. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, "exit");
    child.kill("SIGKILL");
    await exit;
  }

  pause(): void {
    this.#child?.kill("SIGSTOP");
  }

  resume(): void {
    this.#child?.kill("SIGCONT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    running.delete(this);
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
