/** What every bench starts with: its options, the processes it needs, and the rows that it reports to the runner. */
import { existsSync, readFileSync } from "node:fs";
import type {
  GatewayCommands,
  GatewayOptions,
  LoadCommands,
  UpstreamCommands,
  UpstreamOptions,
} from "./commands.ts";
import { cpuMs, stolenMs } from "./cpu.ts";
import { Fixture } from "./fixture.ts";
import { wait } from "./monotonic.ts";

/** One line of the results table; texts as they are printed. */
export interface Row {
  readonly figure: string;
  readonly measured: string;
  readonly baseline: string;
  readonly ratio: string;
  readonly target: string;
  /** null: there is no target, or it could not be measured. */
  readonly isOk: boolean | null;
}

/** What a bench tells the runner. */
export type Report =
  | { readonly type: "method"; readonly lines: readonly string[] }
  | { readonly type: "row"; readonly row: Row }
  | { readonly type: "note"; readonly text: string };

/** Set by the runner for each bench process. */
export interface BenchOptions {
  readonly isShort: boolean;
  /** How often each contestant runs. */
  readonly rounds: number;
  /** Length of P4; null = its own. */
  readonly minutes: number | null;
  readonly outFolder: string;
  /** File URL of the build under test, slash at the end. */
  readonly distUrl: string;
  /** File URL of another build to compare with; null = none. */
  readonly againstUrl: string | null;
  /** Folder for CPU profiles of the gateway; null = none. */
  readonly profileFolder: string | null;
}

/** The three kinds of gateway that the load can drive. */
export type Contestant = "voicewire" | "against" | "baseline";

export class Bench {
  readonly options: BenchOptions;
  /** The short form proves that everything runs end to end; its figures mean nothing. */
  readonly isShort: boolean;

  constructor() {
    this.options = JSON.parse(process.argv[2] ?? "{}") as BenchOptions;
    this.isShort = this.options.isShort;
  }

  method(...lines: string[]): void {
    this.#report({ type: "method", lines });
  }
  row(row: Row): void {
    this.#report({ type: "row", row });
  }
  note(text: string): void {
    this.#report({ type: "note", text });
  }

  /** The full value, or the one of the short form. */
  pick<T>(full: T, short: T): T {
    return this.isShort ? short : full;
  }

  get contestants(): Contestant[] {
    return this.options.againstUrl === null
      ? ["voicewire", "baseline"]
      : ["voicewire", "baseline", "against"];
  }

  start<C extends object>(
    name: string,
    options: object,
    nodeFlags: readonly string[] = [],
  ): Promise<Fixture<C>> {
    return Fixture.start<C>(name, { outFolder: this.options.outFolder, options, nodeFlags });
  }

  startUpstream(options: UpstreamOptions = { speed: 4, chunkMs: 100 }): Promise<Fixture<UpstreamCommands>> {
    return this.start<UpstreamCommands>("upstream", options);
  }

  startLoad(): Promise<Fixture<LoadCommands>> {
    return this.start<LoadCommands>("load", {});
  }

  startGateway(
    contestant: Contestant,
    upstreamPort: number,
    settings: GatewayOptions["settings"] = {},
    more: Pick<GatewayOptions, "services" | "voices" | "isQuiet"> = {},
  ): Promise<Fixture<GatewayCommands>> {
    const { againstUrl, distUrl } = this.options;
    const options: GatewayOptions = {
      upstreamUrl: `http://127.0.0.1:${upstreamPort}`,
      distUrl: contestant === "against" ? (againstUrl ?? distUrl) : distUrl,
      settings,
      ...more,
    };
    return contestant === "baseline"
      ? this.start<GatewayCommands>("baseline", options)
      : this.start<GatewayCommands>("gateway", options, nodeFlagsOf(options.distUrl));
  }

  /** Runs `measure` with a CPU profile of the fixture if profiles were asked for. */
  async profiled<T>(fixture: Fixture<object>, label: string, measure: () => Promise<T>): Promise<T> {
    const { profileFolder } = this.options;
    if (profileFolder === null) return await measure();
    const path = `${profileFolder}/${label}.cpuprofile`;
    await fixture.profile("start", path);
    const result = await measure();
    await fixture.profile("stop", path);
    this.note(`CPU profile: ${path} (the profiler itself costs a few percent)`);
    return result;
  }

  #report(report: Report): void {
    process.send?.(report);
  }
}

/**
 * A bench's whole life: failures go to the runner as an exit code, and a bench whose runner is gone, or that is told
 * to stop, ends at once; its fixtures end with it.
 */
export function runBench(body: (bench: Bench) => Promise<void>): void {
  const leave = (): never => process.exit(1);
  process.once("disconnect", leave);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, leave);
  const finish = (): void => {
    process.off("disconnect", leave);
    if (process.connected) process.disconnect();
  };
  body(new Bench()).then(finish, (thrown: unknown) => {
    console.error(thrown);
    process.exitCode = 1;
    finish();
  });
}

export interface Window {
  readonly seconds: number;
  /** Server CPU, ms. */
  readonly cpuMs: number;
  readonly frames: number;
  readonly texts: number;
  readonly payloadBytes: number;
  readonly open: number;
  /** Share of one core that each of the other processes took. */
  readonly loadCores: number;
  readonly otherCores: number;
  /** That the host of a virtual machine gave to others while this one wanted them: what is late then is not ours. */
  readonly stolenCores: number;
}

export interface WindowArgs {
  readonly serverPid: number;
  readonly load: Fixture<LoadCommands>;
  readonly group: string;
  readonly seconds: number;
  /** The upstream's or publisher's process, for the note on saturation. */
  readonly otherPid?: number;
}

/** Server CPU and what the load client received between two moments. */
export async function measureWindow(args: WindowArgs): Promise<Window> {
  const { load, group } = args;
  const snapshot = async () => {
    const counters = await load.ask("counters", { group });
    return {
      counters,
      server: cpuMs(args.serverPid),
      stolen: stolenMs(),
      load: cpuMs(load.pid),
      other: args.otherPid === undefined ? 0 : cpuMs(args.otherPid),
    };
  };
  const before = await snapshot();
  await wait(args.seconds * 1000);
  const after = await snapshot();
  const ms = after.counters.atMs - before.counters.atMs;
  return {
    seconds: ms / 1000,
    cpuMs: after.server - before.server,
    frames: after.counters.frames - before.counters.frames,
    texts: after.counters.texts - before.counters.texts,
    payloadBytes: after.counters.payloadBytes - before.counters.payloadBytes,
    open: after.counters.open,
    loadCores: (after.load - before.load) / ms,
    otherCores: (after.other - before.other) / ms,
    stolenCores: (after.stolen - before.stolen) / ms,
  };
}

/** For a bench's note: which cores the window had, and who used them. */
export function coresNote({ cpuMs: serverMs, seconds, loadCores, otherCores, stolenCores }: Window): string {
  const server = (serverMs / seconds / 1000).toFixed(2);
  const others = `load ${loadCores.toFixed(2)}, upstream ${otherCores.toFixed(2)}`;
  return `cores: server ${server}, ${others}, taken by the host ${stolenCores.toFixed(2)}`;
}

/** CPU of the server per delivered frame, us. */
export function usPerFrame(window: Window): number {
  return (window.cpuMs * 1000) / window.frames;
}

/**
 * CPU of the load and the upstream per delivered frame, us: they do the same work beside every build, so it tells how
 * fast the machine's cores were just then.
 */
export function othersUsPerFrame({ loadCores, otherCores, seconds, frames }: Window): number {
  return ((loadCores + otherCores) * seconds * 1e6) / frames;
}

export function speakMessage(text: string, voiceId: string | null = "bench"): string {
  return JSON.stringify({ type: "speak", text, ...(voiceId === null ? {} : { voice_id: voiceId }) });
}

/**
 * Text that the upstream fixture speaks for `seconds`, with as many characters as a voice says in that time. With
 * `{key}` in it where the load puts the key of each turn.
 */
export function speechText(seconds: number, options: { readonly isKeyed?: boolean } = {}): string {
  const words = "the quick brown fox jumps over the lazy dog and ";
  const length = Math.round(seconds * 15);
  const filler = words.repeat(Math.ceil(length / words.length)).slice(0, length);
  return `${seconds}s ${options.isKeyed === true ? "{key} " : ""}${filler}`;
}

/** The flags of Node that the built program has: those that it starts itself with, and the one that it sets at run time. */
function nodeFlagsOf(distUrl: string): string[] {
  const textOf = (file: string) => readFileSync(new URL(file, distUrl), "utf8");
  const [firstLine = ""] = textOf("main.js").split("\n", 1);
  const growth = new URL("kit/heap-growth.js", distUrl);
  const atRunTime = existsSync(growth)
    ? (textOf("kit/heap-growth.js").match(/--heap-[a-z-]+=\d+/) ?? [])
    : [];
  return [...firstLine.split(" ").filter((word) => word.startsWith("--")), ...atRunTime];
}
