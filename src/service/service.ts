/**
 * The embedded speech service: the interface of facts/service-interface.md over HTTP, with a real voice behind it.
 * GET /service/stats (not part of the interface) tells what it has done; /service/faults makes it fail on request.
 */
import { GatewayError } from "../errors.ts";
import { type Logger, silentLog } from "../kit/log.ts";
import { FaultBoard } from "./faults/board.ts";
import { createServer } from "./http/server.ts";
import { registerStats } from "./http/stats.ts";
import { ConcurrencyGate, findTier, TIERS } from "./http/tiers.ts";
import { openStore } from "./store/store.ts";
import { requireVoicePackage } from "./voice/package.ts";
import { VoicePool, type VoiceStats } from "./voice/pool.ts";
import { Webhooks } from "./webhooks/webhooks.ts";

export interface ServiceOptions {
  readonly host: string;
  /** 0 = any free one. */
  readonly port: number;
  /** Threads that speak, each with an engine of its own; default 1. */
  readonly voiceWorkers?: number;
  /** The only API key that is accepted; without it any key and none are. */
  readonly key?: string;
  /** Whose plan is played (TIERS): output formats, concurrency; default "enterprise", which allows everything. */
  readonly tier?: string;
  /** Where history, samples and webhooks are kept; default: a temporary folder, removed on closing. */
  readonly dataFolder?: string;
  /** Webhooks may also call private addresses, and by http; default: only public ones, by https. */
  readonly webhooksAllowPrivate?: boolean;
  readonly log?: Logger;
}

export interface RunningService {
  readonly url: string;
  readonly port: number;
  stats(): VoiceStats;
  /** Stops listening, ends open responses and the workers. Idempotent. */
  close(): Promise<void>;
}

/**
 * Resolves when requests are answered at full speed. Throws GatewayError `voice_package_missing`, `port_in_use`, or
 * `invalid_config` for an unknown tier or an address that can't be listened on.
 */
export async function startService(options: ServiceOptions): Promise<RunningService> {
  const tier = findTier(options.tier ?? "enterprise");
  if (tier === undefined) {
    const message = `Cannot start the service: tier is "${options.tier}", expected one of ${TIERS.join(", ")}`;
    throw new GatewayError("invalid_config", message, { field: "tier" });
  }
  requireVoicePackage();
  const log = options.log ?? silentLog;
  const store = await openStore({ folder: options.dataFolder ?? null });
  const webhooks = new Webhooks(store.database, {
    log,
    allowPrivate: options.webhooksAllowPrivate ?? false,
  });
  const voices = new VoicePool({ workers: options.voiceWorkers ?? 1, log });
  const gate = new ConcurrencyGate(tier);
  const context = { voices, key: options.key, tier, gate, faults: new FaultBoard(), store, webhooks, log };
  const app = createServer(context, log);
  registerStats(app, context, voices);
  // The port is taken first, so that a taken one is told at once; who comes meanwhile waits for the voice.
  let started: Promise<void> | undefined;
  app.addHook("onRequest", async () => started);
  let closing: Promise<void> | undefined;
  const close = () => {
    // Requests write to the store until they are over.
    closing ??= Promise.all([app.close(), voices.close()])
      .then(() => webhooks.close())
      .then(() => store.close());
    return closing;
  };
  try {
    await app.listen({ host: options.host, port: options.port });
  } catch (thrown) {
    await close();
    throw listenFailure(thrown, options);
  }
  try {
    started = voices.start();
    await started;
  } catch (thrown) {
    await close();
    throw thrown;
  }
  webhooks.start();
  const address = app.server.address();
  const port = typeof address === "object" && address !== null ? address.port : options.port;
  const host = options.host.includes(":") ? `[${options.host}]` : options.host;
  log.info({ port, workers: voices.stats.workers }, "Speech service listening");
  return { url: `http://${host}:${port}`, port, stats: () => voices.stats, close };
}

function listenFailure(cause: unknown, { host, port }: ServiceOptions): GatewayError {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  if (code === "EADDRINUSE") {
    const message = `Cannot listen on ${host}:${port}: the port is taken by another program, expected a free one`;
    return new GatewayError("port_in_use", message, { cause });
  }
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new GatewayError("invalid_config", `Cannot listen on ${host}:${port}: ${reason}`, { cause });
}
