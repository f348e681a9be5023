/** The table of commands, and the one place where a command's error becomes a message and an exit code. */

import { VERSION } from "../version.ts";
import { EXIT, exitCodeOf, messageWithCode, usageError } from "./exit.ts";
import { type CommandModule, renderOverview, renderPage } from "./help.ts";
import type { Io } from "./io.ts";
import { didYouMean } from "./suggest.ts";

interface CommandRow {
  readonly name: string;
  readonly summary: string;
  /** Loaded when it is called: `say` need not load the gateway's server, nor `--help` anything. */
  load(): Promise<CommandModule>;
}

const COMMANDS: readonly CommandRow[] = [
  {
    name: "serve",
    summary: "Run the gateway: page, sockets and HTTP on one port",
    load: async () => (await import("./serve/serve.ts")).serve,
  },
  {
    name: "say",
    summary: "Speak a text, a pipe of tokens or a dialogue: to the terminal or to a file",
    load: async () => (await import("./say/say.ts")).say,
  },
  {
    name: "listen",
    summary: "Follow a session: audio to a file or a pipe, captions to the terminal",
    load: async () => (await import("./listen/listen.ts")).listen,
  },
  {
    name: "captions",
    summary: "Follow a session: its captions to files, OBS, Zoom and YouTube",
    load: async () => (await import("./captions/captions.ts")).captions,
  },
  {
    name: "keys",
    summary: "Make, list and withdraw the keys of a gateway",
    load: async () => (await import("./keys/keys.ts")).keys,
  },
  {
    name: "token",
    summary: "Sign a short token for one client of a gateway with keys",
    load: async () => (await import("./keys/token.ts")).token,
  },
  {
    name: "service",
    summary: "Run the embedded speech service alone: a local stand-in for the vendor",
    load: async () => (await import("./serve/service.ts")).service,
  },
  {
    name: "usage",
    summary: "What speech has cost: sums and exports of the ledgers of gateways",
    load: async () => (await import("./usage/usage.ts")).usage,
  },
  {
    name: "replay",
    summary: "Run a recorded session again: what happened, and where it first differs",
    load: async () => (await import("./replay/replay.ts")).replay,
  },
  {
    name: "doctor",
    summary: "Check the installation, the upstream and the key; say what to do",
    load: async () => (await import("./doctor/doctor.ts")).doctor,
  },
];

/** Runs the command line; never throws. Stack traces are for VOICEWIRE_DEBUG=1 only. */
export async function runCli(io: Io): Promise<number> {
  try {
    return await dispatch(io);
  } catch (thrown) {
    const code = exitCodeOf(thrown);
    io.stderr.write(`voicewire: ${messageWithCode(thrown)}\n`);
    if (io.env.VOICEWIRE_DEBUG === "1" && thrown instanceof Error) io.stderr.write(`${thrown.stack}\n`);
    else if (code === EXIT.other) io.stderr.write(`${DEBUG_ADVICE}\n`);
    return code;
  }
}

const DEBUG_ADVICE =
  "`voicewire doctor` checks the installation; VOICEWIRE_DEBUG=1 shows where this came from";

async function dispatch(io: Io): Promise<number> {
  const [first, ...rest] = io.argv;
  const columns = io.stdout.columns();
  if (first === undefined || first === "--help" || first === "-h") {
    // Without a command the help is what was missing, not what was asked for.
    const output = first === undefined ? io.stderr : io.stdout;
    output.write(renderOverview(COMMANDS, columns));
    return first === undefined ? EXIT.usage : EXIT.ok;
  }
  if (first === "--version" || first === "-v" || first === "version") {
    io.stdout.write(`voicewire ${VERSION}\n`);
    return EXIT.ok;
  }
  if (first === "help") {
    const [topic] = rest;
    const page =
      topic === undefined ? renderOverview(COMMANDS, columns) : renderPage((await find(topic)).help, columns);
    io.stdout.write(page);
    return EXIT.ok;
  }
  const command = await find(first);
  if (asksForHelp(rest)) {
    io.stdout.write(renderPage(command.help, columns));
    return EXIT.ok;
  }
  return await command.run(io, rest);
}

/** `--help` anywhere before `--`, so that it works on a line that is not finished. */
function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return (end === -1 ? args : args.slice(0, end)).some(
    (argument) => argument === "--help" || argument === "-h",
  );
}

async function find(name: string): Promise<CommandModule> {
  const row = COMMANDS.find((candidate) => candidate.name === name);
  if (row !== undefined) return await row.load();
  const hint = didYouMean(name, ["help", ...COMMANDS.map((candidate) => candidate.name)]);
  throw usageError(`Unknown command "${name}"${hint === "" ? ": see voicewire --help" : hint}`, name);
}
