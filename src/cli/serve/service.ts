/** `voicewire service`: the embedded speech service alone, on a port of its own; also the child that serve starts. */
import { isLoopback } from "../../access/origin-rules.ts";
import { toGatewayError } from "../../errors.ts";
import { EXIT, usageError } from "../exit.ts";
import { choiceFlag, type Flag, integerFlag, type ParsedArguments, parseArguments } from "../flags.ts";
import type { CommandModule } from "../help.ts";
import type { Io, Parent } from "../io.ts";
import { createLog } from "../log.ts";
import type { ParentMessage, ServiceReport } from "./service-messages.ts";

const DEFAULT_PORT = 8090;
const LOG_LEVELS = ["silent", "error", "warn", "info", "debug"] as const;

const FLAGS: readonly Flag[] = [
  { name: "host", value: "TEXT", about: "Address to listen on (default 127.0.0.1)" },
  { name: "port", value: "N", about: `Port to listen on; 0 picks a free one (default ${DEFAULT_PORT})` },
  {
    name: "voice-workers",
    value: "N",
    about: "Threads that speak, 1-64 (default 1)",
  },
  {
    name: "key",
    value: "TEXT",
    about: "Ask for this key in xi-api-key (without it every key is taken, and none)",
  },
  { name: "insecure", about: "Without a key, listen on an address that other machines reach" },
  {
    name: "allowed-hosts",
    value: "TEXT",
    about: "Names by which it is reached, with commas, beside localhost and --host",
  },
  {
    name: "allow-origin",
    value: "TEXT",
    about: "Origins whose pages may use it, with commas, e.g. https://*.example.com; loopback ones may",
  },
  { name: "tier", value: "TEXT", about: "Answer as this plan of the vendor would, e.g. free, creator, pro" },
  {
    name: "data",
    value: "FOLDER",
    about: "Keep history, voices and webhooks there (default: only while it runs)",
  },
  {
    name: "voice-models",
    value: "FOLDER",
    about:
      "Speaks with the neural voice models in it, a folder each; needs sherpa-onnx-node (docs/service.md)",
  },
  {
    name: "webhooks-allow-private",
    about: "Let webhooks call private addresses, and by http: for receivers on your own network",
  },
  {
    name: "faults",
    about: "For tests: obey x-voicewire-fault, and answer under /service (docs/faults.md)",
  },
  { name: "log-level", value: "CHOICE", about: `${LOG_LEVELS.join("|")}; default info` },
  { name: "parent", about: "Report the port over IPC and end with the parent", isHidden: true },
];

export const service: CommandModule = {
  help: {
    name: "service",
    usage: ["service [FLAGS]"],
    about:
      "Runs the embedded speech service: the vendor's interface with a real voice (eSpeak NG), without an account. " +
      "Point any client of the vendor at it, or a gateway with --upstream-url.",
    flags: FLAGS,
    examples: [
      { line: "voicewire service", about: `listens on http://127.0.0.1:${DEFAULT_PORT}` },
      {
        line: `voicewire serve --upstream-url http://127.0.0.1:${DEFAULT_PORT}`,
        about: "a gateway that uses it, in another terminal",
      },
      {
        line: `curl -s http://127.0.0.1:${DEFAULT_PORT}/v1/voices`,
        about: "the voices, as the vendor's interface lists them",
      },
    ],
  },
  run: runService,
};

async function runService(io: Io, args: readonly string[]): Promise<number> {
  const parsed = parseArguments(args, FLAGS);
  if (!parsed.has("parent")) return await runUntilSignal(io, parsed, null);
  const { parent } = io;
  if (parent === undefined) {
    throw usageError("Flag --parent: there is no IPC channel, expected to be forked by a gateway", "parent");
  }
  try {
    return await runUntilSignal(io, parsed, parent);
  } catch (thrown) {
    const { code, message } = toGatewayError(thrown);
    parent.send({ type: "failed", code, message } satisfies ServiceReport);
    return EXIT.other;
  }
}

/** `parent`: the gateway whose child this is; null where it runs alone. */
async function runUntilSignal(io: Io, parsed: ParsedArguments, parent: Parent | null): Promise<number> {
  // Before anything slow: a parent that dies while we start would not be noticed any more.
  const ended = endOf(io, parent);
  const gatewayKey =
    parent === null ? undefined : await Promise.race([listenTo(parent), ended.then(() => undefined)]);
  if (parent !== null && gatewayKey === undefined) return EXIT.ok;
  const { startService } = await import("../../service/service.ts");
  const voiceWorkers = integerFlag(parsed, "voice-workers", { min: 1, max: 64, fallback: 0 });
  const key = parsed.text("key");
  const allowedHosts = parsed.text("allowed-hosts");
  const allowedOrigins = parsed.text("allow-origin");
  const tier = parsed.text("tier");
  const dataFolder = parsed.text("data");
  const voiceModels = parsed.text("voice-models");
  const host = parsed.text("host") ?? "127.0.0.1";
  if (key === undefined && parent === null && !parsed.has("insecure") && !isLoopback(host)) {
    const text = `Flag --host: other machines reach ${host}, and anybody there could use the service; give --key, or start with --insecure`;
    throw usageError(text, "host");
  }
  const starting = startService({
    host,
    port: integerFlag(parsed, "port", { min: 0, max: 65_535, fallback: DEFAULT_PORT }),
    ...(voiceWorkers === 0 ? {} : { voiceWorkers }),
    ...(key === undefined ? {} : { key }),
    ...(gatewayKey === undefined ? {} : { gatewayKey }),
    ...(allowedHosts === undefined ? {} : { allowedHosts }),
    ...(allowedOrigins === undefined ? {} : { allowedOrigins }),
    ...(tier === undefined ? {} : { tier }),
    ...(dataFolder === undefined ? {} : { dataFolder }),
    ...(voiceModels === undefined ? {} : { voiceModels }),
    webhooksAllowPrivate: parsed.has("webhooks-allow-private"),
    faults: parsed.has("faults"),
    log: createLog(io, choiceFlag(parsed, "log-level", LOG_LEVELS) ?? (parent === null ? "info" : "warn")),
  });
  const running = await Promise.race([starting, ended.then(() => undefined)]);
  if (running === undefined) {
    // Nobody wants it any more: what is still coming up goes down again.
    starting.then((late) => late.close()).catch(() => undefined);
    return EXIT.ok;
  }
  if (parent === null) {
    io.stdout.write(`Speech service on ${running.url}\nTry: curl -s ${running.url}/v1/voices\n`);
  } else {
    parent.send({ type: "listening", url: running.url, port: running.port } satisfies ServiceReport);
  }
  await ended;
  await running.close();
  return EXIT.ok;
}

/**
 * Resolves with the key that the parent sends. From then on its pings are answered on the event loop that the requests
 * are answered on: while that is blocked, the parent gets no pong.
 */
function listenTo(parent: Parent): Promise<string> {
  return new Promise((resolve) => {
    parent.onMessage((received) => {
      const message = received as ParentMessage;
      if (message.type === "key") resolve(message.key);
      else parent.send({ type: "pong" } satisfies ServiceReport);
    });
  });
}

/**
 * Resolves at SIGTERM, SIGINT or the parent's end. A child leaves SIGINT to its parent: Ctrl+C goes to both, and the
 * parent has speech to drain first.
 */
function endOf(io: Io, parent: Parent | null): Promise<void> {
  return new Promise((resolve) => {
    parent?.onGone(resolve);
    const unlisten = io.onSignal((signal) => {
      if (parent !== null && signal === "SIGINT") return;
      unlisten();
      resolve();
    });
  });
}
