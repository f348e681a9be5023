/**
 * The embedded speech service: the vendor's interface over HTTP, with a real voice behind it.
 * For tests it fails on request, and says under /service what it has done: with the option `faults` only.
 */
import { OriginRules } from "../access/origin-rules.ts";
import { GatewayError } from "../errors.ts";
import { systemClock } from "../kit/clock.ts";
import { type Logger, silentLog } from "../kit/log.ts";
import { FaultBoard } from "./faults/board.ts";
import type { ServiceContext } from "./http/context.ts";
import { createServer } from "./http/server.ts";
import { SingleUseTokens } from "./http/single-use-tokens.ts";
import { registerStats } from "./http/stats.ts";
import { ConcurrencyGate, findTier, TIERS } from "./http/tiers.ts";
import { TemporaryFiles } from "./media/temporary-file.ts";
import { Uploads } from "./media/upload.ts";
import { openStore } from "./store/store.ts";
import { requireVoicePackage } from "./voice/engine/package.ts";
import { openNeuralVoices } from "./voice/neural/open-neural-voices.ts";
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
  /** The key of the gateway whose child this is: every request must have it, whatever it asks for; pages get no CORS headers. */
  readonly gatewayKey?: string;
  /** Names that it is reached by, with commas, beside localhost and `host`; default none. Any other Host gets 421. */
  readonly allowedHosts?: string;
  /** Origins whose pages may use it, with commas, beside its own and loopback ones; default none. Any other gets 403. */
  readonly allowedOrigins?: string;
  /** Whose plan is played (TIERS): output formats, concurrency; default "enterprise", which allows everything. */
  readonly tier?: string;
  /** Where history, samples and webhooks are kept; default: a temporary folder, removed on closing. */
  readonly dataFolder?: string;
  /** Webhooks may also call private addresses, and by http; default: only public ones, by https. */
  readonly webhooksAllowPrivate?: boolean;
  /** A folder of neural voice models, a folder each (docs/service.md); default: there are none. */
  readonly voiceModels?: string;
  /** Scripted faults and everything under /service (docs/faults.md); default: there is none of it. */
  readonly faults?: boolean;
  /** Whether the first requests are answered as fast as later ones; default true. */
  readonly warmsUp?: boolean;
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
 * Resolves when requests are answered, at full speed where it warms up. Throws GatewayError `voice_package_missing`, `port_in_use`,
 * `voice_engine_missing`, `voice_model_incomplete`, `voice_model_broken`, or
 * `invalid_config` for an unknown tier, an address that can't be listened on, or a host or origin that is none.
 */
export async function startService(options: ServiceOptions): Promise<RunningService> {
  const tier = findTier(options.tier ?? "enterprise");
  if (tier === undefined) {
    const message = `Cannot start the service: tier is "${options.tier}", expected one of ${TIERS.join(", ")}`;
    throw new GatewayError("invalid_config", message, { field: "tier" });
  }
  const origins = new OriginRules(options);
  requireVoicePackage();
  const log = options.log ?? silentLog;
  const neural = await openNeuralVoices(options.voiceModels, { log, warmsUp: options.warmsUp ?? true });
  const store = await openStore({ folder: options.dataFolder ?? null, log });
  const webhooks = new Webhooks(store.database, {
    log,
    allowPrivate: options.webhooksAllowPrivate ?? false,
  });
  const voices = new VoicePool({
    workers: options.voiceWorkers ?? 1,
    log,
    warmsUp: options.warmsUp,
    engine: neural.engine,
  });
  const gate = new ConcurrencyGate(tier);
  const temporaryFiles = new TemporaryFiles();
  // Who has the key is a server or a gateway: its one address stands for many clients. Anybody else is one client.
  const standsForMany = options.key !== undefined || options.gatewayKey !== undefined;
  const context: ServiceContext = {
    voices,
    neuralVoices: neural.voices,
    key: options.key,
    gatewayKey: options.gatewayKey,
    origins,
    tokens: new SingleUseTokens(systemClock),
    tier,
    gate,
    faults: options.faults === true ? new FaultBoard() : null,
    store,
    temporaryFiles,
    uploads: new Uploads(
      temporaryFiles,
      standsForMany ? { maxUploadsPerClient: Number.POSITIVE_INFINITY } : {},
    ),
    webhooks,
    log,
  };
  const app = createServer(context, log);
  if (context.faults !== null) registerStats(app, context, voices);
  // The port is taken first, so that a taken one fails at once; who comes meanwhile waits for the voice.
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
