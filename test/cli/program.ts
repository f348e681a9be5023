/** Runs the built program (`node dist/main.js`) as a user would; needs `npm run build` or tsc before. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll } from "vitest";
import type { Event } from "../../src/protocol/events.ts";
import { isVoicePackageInstalled } from "../../src/service/voice/engine/package.ts";
import { watch } from "../helpers/watched-log.ts";

const MAIN = fileURLToPath(new URL("../../dist/main.js", import.meta.url));

/** For vi.setConfig: these tests start whole programs, on machines that may be busy; each waits for conditions. */
export const PATIENT = { testTimeout: 120_000, hookTimeout: 120_000 };

/** Takes a minute and more to speak: whoever listens or interrupts is in time. */
export const LONG_TEXT = Array.from(
  { length: 40 },
  (_, index) => `Sentence number ${index + 1} is spoken.`,
).join(" ");

/** Why end-to-end tests can't run here; undefined where they can. */
export function missingForSpeech(): string | undefined {
  if (!existsSync(MAIN)) return "dist/ is not built";
  return isVoicePackageInstalled() ? undefined : "the optional voice package is not installed";
}

/** Whether a program of this name can be started. */
export function hasProgram(name: string): boolean {
  return spawnSync(name, ["-version"], { stdio: "ignore" }).error === undefined;
}

export interface Ended {
  readonly code: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

/** A program that runs; ended by force when the test's scope is left. */
export class Program implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  #stdout: Buffer[] = [];
  #stderr = "";
  #wake: () => void = () => undefined;

  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    // The environment of whoever runs the tests must not change what they see.
    const clean = Object.entries(process.env).filter(([name]) => !/^(VOICEWIRE_|ELEVENLABS_)/.test(name));
    this.child = spawn(process.execPath, [MAIN, ...args], {
      env: { ...Object.fromEntries(clean), ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.child.stdout?.on("data", (chunk: Buffer) => {
      this.#stdout.push(chunk);
      this.#wake();
    });
    this.child.stderr?.on("data", (chunk: Buffer) => {
      this.#stderr += chunk.toString();
      this.#wake();
    });
    // A program that has ended does not read its stdin any more; that is its right.
    this.child.stdin?.on("error", () => undefined);
    this.ended = new Promise((resolve) => {
      this.child.once("close", (code) => {
        resolve({ code, stdout: Buffer.concat(this.#stdout), stderr: this.#stderr });
        this.#wake();
      });
    });
  }

  get stdout(): Buffer {
    return Buffer.concat(this.#stdout);
  }
  get stderr(): string {
    return this.#stderr;
  }

  write(text: string): void {
    this.child.stdin?.write(text);
  }
  endInput(): void {
    this.child.stdin?.end();
  }

  /** Resolves when `isReached` holds; looks again at each output. Throws with what was written at the deadline. */
  async until(isReached: () => boolean, deadlineMs = 60_000): Promise<void> {
    const deadline = performance.now() + deadlineMs;
    while (!isReached()) {
      const leftMs = deadline - performance.now();
      if (leftMs <= 0 || this.child.exitCode !== null) {
        throw new Error(
          `Not reached; exit ${this.child.exitCode}; stdout: ${this.stdout}; stderr: ${this.stderr}`,
        );
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(leftMs, 100));
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    watch.look("stderr of a program", this.#stderr);
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    // Not "close": a child of its own that was left behind would hold the pipes open, and this test with them.
    const exited = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGKILL");
    await exited;
  }
}

/** Runs to the end, with all of stdin given at once. */
export async function run(
  args: readonly string[],
  options: { stdin?: string; env?: Record<string, string> } = {},
): Promise<Ended> {
  await using program = new Program(args, options.env);
  if (options.stdin !== undefined) program.write(options.stdin);
  program.endInput();
  return await program.ended;
}

/** The events that `--json` printed. */
export function eventsIn(stdout: Buffer): Event[] {
  const lines = stdout.toString().trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Event);
}

export interface Served {
  readonly program: Program;
  readonly url: string;
}

/** `voicewire serve` on a free port, ready. */
export async function serve(args: readonly string[] = [], env: Record<string, string> = {}): Promise<Served> {
  const program = new Program(["serve", "--port", "0", ...args], env);
  try {
    await program.until(() => /Page {2}http:\S+\//.test(program.stdout.toString()));
  } catch (error) {
    await program[Symbol.asyncDispose]();
    throw error;
  }
  const url = /Page {2}(http:\S+)\//.exec(program.stdout.toString())?.[1] ?? "";
  return { program, url };
}

/** A folder for the test's files; removed when its scope is left. */
export function temporaryFolder(): Disposable & { file(name: string): string } {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-cli-"));
  return {
    file: (name) => join(folder, name),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true }),
  };
}

/** One `voicewire serve` and a folder for all tests of a block; what it is stands there while they run. */
export function useServed(
  args: readonly string[] = [],
  env: Record<string, string> = {},
): { readonly url: string; readonly stdout: string; readonly program: Program; file(name: string): string } {
  const folder = temporaryFolder();
  let served: Served | undefined;
  beforeAll(async () => {
    served = await serve(["--log-level", "warn", ...args], env);
  });
  afterAll(async () => {
    await served?.program[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });
  const known = (): Served => {
    if (served === undefined) throw new Error("Asked before the first test, or it did not start");
    return served;
  };
  return {
    get url() {
      return known().url;
    },
    get stdout() {
      return known().program.stdout.toString();
    },
    get program() {
      return known().program;
    },
    file: folder.file,
  };
}
