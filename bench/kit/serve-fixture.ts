/** A process of a bench from the inside: options from the command line, commands over IPC, gone with its parent. */
import { writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import type { FixtureMessage } from "./fixture.ts";
import { MemoryProbe, type MemorySnapshot } from "./memory.ts";

export interface RunningFixture<Commands extends object> {
  /** 0 where it does not listen. */
  readonly port: number;
  readonly commands: Commands;
}

/** No fixture outlives this, whatever happens to its parent. */
const MAX_LIFE_MS = 30 * 60_000;

/** Off unless asked for: a timer this often would show in the server's CPU. */
const STALL_RESOLUTION_MS = 10;

interface Request {
  readonly id: number;
  readonly name: string;
  readonly args: unknown;
}

export function serveFixture<Options, Commands extends object>(
  start: (options: Options) => RunningFixture<Commands> | Promise<RunningFixture<Commands>>,
): void {
  const options = JSON.parse(process.argv[2] ?? "{}") as Options;
  process.once("disconnect", () => process.exit(0));
  setTimeout(() => process.exit(3), MAX_LIFE_MS).unref();
  const begin = async (): Promise<number> => {
    // A turn later: fixtures call this above the classes that they use.
    await Promise.resolve();
    const { port, commands } = await start(options);
    const memory = new MemoryProbe();
    const table = {
      ...commands,
      ...new Profiler().commands,
      ...new StallWatch().commands,
      memory: (): Promise<MemorySnapshot> => memory.take(),
    } as Record<string, (args: unknown) => unknown>;
    process.on("message", (message) => {
      const { id, name, args } = message as Request;
      const command = table[name];
      answer(id, async () => {
        if (command === undefined) throw new Error(`unknown command ${name}`);
        return await command(args);
      });
    });
    return port;
  };
  answer(0, begin);
}

function answer(id: number, work: () => Promise<unknown>): void {
  work().then(
    (result) => reply({ id, result: result ?? null }),
    (thrown: unknown) =>
      reply({ id, error: thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown) }),
  );
}

function reply(message: FixtureMessage): void {
  if (process.connected) process.send?.(message);
}

/** CPU profiles of the fixture itself, for `--profile`. */
class Profiler {
  #session: Session | null = null;
  readonly commands = {
    "profile.start": async (): Promise<void> => {
      this.#session = new Session();
      this.#session.connect();
      await this.#session.post("Profiler.enable");
      await this.#session.post("Profiler.start");
    },
    "profile.stop": async ({ path }: { path: string }): Promise<void> => {
      const session = this.#session;
      if (session === null) return;
      const { profile } = await session.post("Profiler.stop");
      writeFileSync(path, JSON.stringify(profile));
      session.disconnect();
      this.#session = null;
    },
  };
}

/** How long the fixture's own event loop stood still: tells a busy machine from a slow program. */
class StallWatch {
  #histogram: IntervalHistogram | null = null;
  readonly commands = {
    "stalls.start": (): void => {
      this.#histogram = monitorEventLoopDelay({ resolution: STALL_RESOLUTION_MS });
      this.#histogram.enable();
    },
    /** The longest stall, ms. */
    "stalls.stop": (): number => {
      const histogram = this.#histogram;
      if (histogram === null) return 0;
      histogram.disable();
      return Math.max(0, histogram.max / 1e6 - STALL_RESOLUTION_MS);
    },
  };
}
