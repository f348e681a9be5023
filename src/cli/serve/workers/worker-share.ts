/** What one of several workers has of the settings: limits of the gateway are divided, ports are shared or divided. */
import type { Config } from "../../../config.ts";
import { readPortRange } from "../../../server/carriers/rtp-routes.ts";
import type { ServiceConfig } from "../../../upstream/services/service-config.ts";
import { usageError } from "../../exit.ts";

/** Throws invalid_config for settings that workers can't share. */
export function checkShares(
  config: Config,
  { count, platform }: { readonly count: number; readonly platform: string },
): void {
  if (platform !== "linux") {
    throw usageError(
      "Setting workers: only Linux spreads the connections of one port, expected 1",
      "workers",
    );
  }
  const lastPort = audioSocketPortOf(config, { worker: count, count });
  if (lastPort > MAX_PORT) {
    throw usageError(
      `Setting audiosocketPort: the last of ${count} workers has port ${lastPort}, expected ${MAX_PORT} at most`,
      "audiosocketPort",
    );
  }
  portsOf(config, { worker: count, count });
}

const MAX_PORT = 65_535;

interface WorkerPlace {
  /** 1 is the first. */
  readonly worker: number;
  readonly count: number;
}

/** `port`: that all share. */
export function shareOf(config: Config, place: WorkerPlace & { readonly port: number }): Config {
  const share = (total: number): number => Math.ceil(total / place.count);
  return {
    ...config,
    workers: 1,
    port: place.port,
    opsPort: "off",
    audiosocketPort: audioSocketPortOf(config, place),
    // Nobody could know which worker has which port.
    wyomingPort: place.worker === 1 ? config.wyomingPort : 0,
    rtpPorts: portsOf(config, place),
    maxSessions: share(config.maxSessions),
    maxCalls: share(config.maxCalls),
    upstreamConnections: share(config.upstreamConnections),
    upstreamQueue: share(config.upstreamQueue),
    receivedMb: share(config.receivedMb),
    queuedTextMb: share(config.queuedTextMb),
    soundsMb: share(config.soundsMb),
    phraseCacheMb: share(config.phraseCacheMb),
    opusWorkers: share(config.opusWorkers),
  };
}

/** Each worker may have its share of `max-open` requests open at a service. */
export function sharesOf(services: readonly ServiceConfig[], count: number): ServiceConfig[] {
  return services.map((service) => ({
    ...service,
    maxOpen: service.maxOpen === null ? null : Math.ceil(service.maxOpen / count),
  }));
}

/** What announces a call answers with its own worker's port: only that worker knows the call. */
function audioSocketPortOf({ audiosocketPort }: Config, { worker }: WorkerPlace): number {
  return audiosocketPort === 0 ? 0 : audiosocketPort + worker - 1;
}

/** RTP takes even ports, and the odd one above each stays free for RTCP: each worker has whole pairs. */
function portsOf({ rtpPorts }: Config, { worker, count }: WorkerPlace): string {
  const range = readPortRange(rtpPorts);
  if (range === null) return rtpPorts;
  const first = range.from + (range.from % 2);
  const pairs = Math.floor((range.to - first) / 2) + 1;
  if (pairs < count) {
    throw usageError(
      `Setting rtpPorts: ${pairs} even ports, expected one for each of ${count} workers`,
      "rtpPorts",
    );
  }
  const from = first + 2 * Math.floor((pairs * (worker - 1)) / count);
  const next = first + 2 * Math.floor((pairs * worker) / count);
  return `${from}-${next - 1}`;
}
