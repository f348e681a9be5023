/**
 * What a program gets that imports `voicewire`: the gateway inside its own process (docs/embedding.md).
 *
 *   const gateway = await startGateway({ port: 0 });
 *   console.log(gateway.url);
 *   await gateway.drain();
 */
import { createLog } from "./cli/log.ts";
import { startWithUpstream } from "./cli/serve/start.ts";
import { settingsFrom } from "./cli/settings.ts";
import type { Config } from "./config.ts";
import { GatewayError } from "./errors.ts";
import { systemClock } from "./kit/clock.ts";
import type { Logger } from "./kit/log.ts";

export type { ErrorCode } from "./errors.ts";
export { setHeapGrowth } from "./kit/heap-growth.ts";
export type { Config, Logger };
export { GatewayError };

/** The settings of docs/configuration.md by their keys, each with its default; the environment is not read. */
export interface GatewayOptions extends Partial<Config> {
  /** Where to log, e.g. a pino logger; default: JSON lines on stderr from `logLevel` on. */
  readonly log?: Logger;
}

export interface Gateway {
  /** Where it is reached, without a slash at its end. */
  readonly url: string;
  readonly port: number;
  /** URL of the operations port (`/metrics`); null where `opsPort` is "off". */
  readonly opsUrl: string | null;
  /** Takes nothing new, waits for speech to end (at most `drainMs`), then closes. */
  drain(): Promise<void>;
  /** Ends everything now. Both may be called in any order, any number of times. */
  close(): Promise<void>;
}

/**
 * Starts a gateway; without `upstreamUrl` or `upstreamRegion` it speaks with the embedded service, as a child process.
 * Rejects with GatewayError: `invalid_config`, `port_in_use`, `voice_package_missing`, `upstream_unreachable`, `encoder_failed`; with
 * `cluster` also `bus_lost`, `bus_timeout`, `bus_refused`, `node_name_taken`.
 */
export async function startGateway({ log, ...options }: GatewayOptions = {}): Promise<Gateway> {
  const { config } = settingsFrom({ options });
  if (config.workers !== 1) {
    const what =
      "Setting workers: the gateway is in this process, expected 1; `voicewire serve` starts several";
    throw new GatewayError("invalid_config", what, { field: "workers" });
  }
  const { env } = process;
  const { url, port, opsUrl, drain, close } = await startWithUpstream({
    config,
    log: log ?? createLog({ stderr: stderr(), env }, config.logLevel),
    clock: systemClock,
    env,
  });
  return { url, port, opsUrl, drain, close };
}

function stderr(): Parameters<typeof createLog>[0]["stderr"] {
  return {
    isTty: false,
    columns: () => 80,
    write: (data) => {
      process.stderr.write(data);
    },
    onBroken: () => undefined,
  };
}
