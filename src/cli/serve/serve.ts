/** `voicewire serve`: the gateway with its upstream, until a signal; drains first, closes at the second signal. */
import { availableParallelism } from "node:os";
import { OriginRules } from "../../access/origin-rules.ts";
import type { Config } from "../../config.ts";
import type { Logger } from "../../kit/log.ts";
import { type Certificate, describeCertificate } from "../../server/tls/certificate.ts";
import { EXIT, usageError } from "../exit.ts";
import { type Flag, parseArguments } from "../flags.ts";
import type { CommandModule } from "../help.ts";
import type { Io, SignalName } from "../io.ts";
import { loadKeys } from "../keys/key-store.ts";
import { areKeysReadable, READABLE_KEYS, strangersMay } from "../keys/strangers.ts";
import { createLog } from "../log.ts";
import { CONFIG_FLAG, settingFlags, settingsOf } from "../settings.ts";
import { lengthenQueue } from "./connection-queue.ts";
import { type Started, startWithUpstream } from "./start.ts";

const FLAGS: readonly Flag[] = [
  ...settingFlags(),
  CONFIG_FLAG,
  { name: "worker", about: "Be one of several workers, and end with the parent", isHidden: true },
];

export const serve: CommandModule = {
  help: {
    name: "serve",
    usage: ["serve [FLAGS]"],
    about:
      "Runs the gateway: the page at /, the sockets and the HTTP interface on one port. Without an account it speaks " +
      "with the embedded voice. Every flag can be set in the environment or in a JSON file too: docs/configuration.md. " +
      "SIGTERM and Ctrl+C let speech end first (drain-ms); a second one closes at once.",
    flags: FLAGS,
    examples: [
      { line: "voicewire serve", about: "http://127.0.0.1:8080/ with the embedded voice" },
      {
        line: "voicewire keys new app && voicewire serve --host 0.0.0.0 --port 80 --keys-file keys.json",
        about: "for everyone who has a key or a token",
      },
      {
        line: "ELEVENLABS_API_KEY=... voicewire serve --upstream-region eu",
        about: "the real vendor, in its EU region",
      },
      { line: "voicewire serve --workers auto", about: "a process for each core" },
      { line: "voicewire serve --config voicewire.json", about: 'settings from a file: {"port": 9000}' },
    ],
  },
  run: runServe,
};

async function runServe(io: Io, args: readonly string[]): Promise<number> {
  const parsed = parseArguments(args, FLAGS);
  const [surplus] = parsed.positionals;
  if (surplus !== undefined) throw usageError(`Argument "${surplus}": serve takes flags only`, surplus);
  if (parsed.has("worker")) return (await import("./workers/worker.ts")).runWorker(io);
  const { config } = settingsOf(io, parsed);
  const log = createLog(io, config.logLevel);
  // From here on a signal ends us in order; before, the default (die at once) is right.
  const signals = new SignalQueue(io);
  try {
    const gateway = await startAll(io, config, log);
    try {
      announce(io, gateway, config);
      await shutDown(gateway, { signals, log, drainMs: config.drainDelayMs + config.drainMs });
    } finally {
      await gateway.close();
    }
  } finally {
    signals.close();
  }
  return EXIT.ok;
}

/** One gateway in this process, or several in others. */
async function startAll({ clock, env, runtime }: Io, config: Config, log: Logger): Promise<Started> {
  const options = { config, log, clock, env };
  const count = config.workers === "auto" ? availableParallelism() : config.workers;
  if (count === 1) {
    const gateway = await startWithUpstream({ ...options, config: { ...config, workers: 1 } });
    await lengthenQueue(gateway.port, log);
    return gateway;
  }
  const { startWorkers } = await import("./workers/supervisor.ts");
  return startWorkers({ ...options, count, platform: runtime.platform });
}

/** The addresses and one line to try, on stdout; everything later is the log's, on stderr. */
function announce(io: Io, { url, opsUrl, certificate, label, nodeName }: Started, config: Config): void {
  const target = certificate === null ? url : namedUrl(url, certificate, config);
  const flag = target === "http://127.0.0.1:8080" ? "" : ` --url ${target}`;
  const keys = config.keysFile === "" ? null : loadKeys(config.keysFile).size;
  io.stdout.write(
    `voicewire speaks with ${label}\n` +
      `  Page  ${url}/\n` +
      (certificate === null ? "" : `  TLS   https and wss: ${describeCertificate(certificate)}\n`) +
      (areKeysReadable(config)
        ? `  TLS   off: ${READABLE_KEYS}; \`voicewire doctor\` says what to do\n`
        : "") +
      (opsUrl === null ? "" : `  Ops   ${opsUrl}/metrics\n`) +
      (config.wyomingPort === 0 ? "" : `  Wyoming  wyoming://${config.host}:${config.wyomingPort}\n`) +
      (nodeName === null ? "" : `  Node  ${nodeName}\n`) +
      `  Keys  ${keys ?? "none"}; ${strangersMay(config)}\n` +
      `  Try   ${keys === null ? "" : "VOICEWIRE_KEY=... "}npx voicewire say${flag} "Hello there, it is a fine day."\n`,
  );
}

/** By a name of the certificate, so that clients trust it, and one that the gateway takes as Host. */
function namedUrl(url: string, { names }: Certificate, config: Config): string {
  const named = new URL(url);
  const rules = new OriginRules(config);
  // A name such as `*.example.com` is no host.
  named.hostname = names.find((name) => !name.includes("*") && rules.takesHost(name)) ?? named.hostname;
  return named.origin;
}

/** Waits for the first signal, then drains until that is done, a second signal comes or the deadline passes. */
async function shutDown(
  gateway: Pick<Started, "drain">,
  {
    signals,
    log,
    drainMs,
  }: { readonly signals: SignalQueue; readonly log: Logger; readonly drainMs: number },
): Promise<void> {
  const first = await signals.next();
  log.info(
    { signal: first, drain_ms: drainMs },
    "Shutting down: speech may end; a second signal closes at once",
  );
  const cut = await Promise.race([gateway.drain(), signals.next()]);
  if (cut !== undefined) log.warn({ signal: cut }, "Closing at once");
}

/** Signals in the order they came, none lost between two waits. */
class SignalQueue {
  readonly #came: SignalName[] = [];
  #waiting: ((signal: SignalName) => void) | undefined;
  readonly close: () => void;

  constructor(io: Io) {
    this.close = io.onSignal((signal) => {
      const waiting = this.#waiting;
      this.#waiting = undefined;
      if (waiting === undefined) this.#came.push(signal);
      else waiting(signal);
    });
  }

  next(): Promise<SignalName> {
    const came = this.#came.shift();
    if (came !== undefined) return Promise.resolve(came);
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }
}
