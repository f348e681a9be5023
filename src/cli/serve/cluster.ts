/** The gateway's place among others: the bus that it reaches them by, its name and its address. */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Bus } from "../../cluster/bus/bus.ts";
import { isNodeName } from "../../cluster/bus/heartbeat.ts";
import { LateBus } from "../../cluster/bus/late-bus.ts";
import { NatsBus } from "../../cluster/bus/nats-bus.ts";
import type { Config } from "../../config.ts";
import { GatewayError, toGatewayError } from "../../errors.ts";
import type { ClusterPlace } from "../../gateway.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import { usageError } from "../exit.ts";

export interface ClusterOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly clock: Clock;
  /** See LateBus. */
  readonly openMeanwhile?: () => Bus;
}

/** A bus that stands already; whoever does not start a gateway with it closes it. */
interface OpenCluster extends ClusterPlace {
  close(): Promise<void>;
}

/**
 * Undefined without `cluster`. Rejects with invalid_config, bus_refused, and with bus_lost or bus_timeout where no nats-server
 * can be reached and the gateway may not start alone.
 */
export async function openCluster(options: ClusterOptions): Promise<OpenCluster | undefined> {
  const { config, log, clock, openMeanwhile } = options;
  if (config.cluster === "") return undefined;
  const nodeName = nodeNameOf(config);
  const nodeUrl = nodeUrlOf(config);
  const connect = (): Promise<Bus> => connectTo(config, { log, clock });
  const bus = config.startAlone
    ? await LateBus.open({ connect, openMeanwhile, clock, log })
    : await orAdvice(connect);
  return {
    nodeName,
    ...(nodeUrl === undefined ? {} : { nodeUrl }),
    connect: () => Promise.resolve(bus),
    close: () => bus.close(),
  };
}

/** Rejects with invalid_config, bus_refused, bus_lost, bus_timeout. */
export function connectTo(
  config: Config,
  { log, clock }: Pick<ClusterOptions, "log" | "clock">,
): Promise<NatsBus> {
  const { clusterCredentials, clusterTlsCa, clusterTlsCert, clusterTlsKey } = config;
  return NatsBus.connect({
    url: config.cluster,
    cluster: config.clusterName,
    ...(clusterCredentials === "" ? {} : { credentialsFile: clusterCredentials }),
    ...(clusterTlsCa === "" ? {} : { tlsCaFile: clusterTlsCa }),
    ...(clusterTlsCert === "" ? {} : { tlsCertFile: clusterTlsCert }),
    ...(clusterTlsKey === "" ? {} : { tlsKeyFile: clusterTlsKey }),
    log,
    clock,
  });
}

async function orAdvice(connect: () => Promise<Bus>): Promise<Bus> {
  try {
    return await connect();
  } catch (thrown) {
    const { code, message } = toGatewayError(thrown);
    if (code !== "bus_lost" && code !== "bus_timeout") throw thrown;
    const advice = `${message}; or start with --start-alone, to serve without other nodes until it is reached`;
    throw new GatewayError(code, advice, { cause: thrown });
  }
}

/** Two nodes on one machine are two nodes, and so is one that was started again. */
export function nodeNameOf({ nodeName }: Pick<Config, "nodeName">): string {
  if (nodeName === "") {
    const host = hostname()
      .replaceAll(/[^\w-]/g, "-")
      .slice(0, 48);
    return `${host}-${randomBytes(4).toString("hex")}`;
  }
  if (isNodeName(nodeName)) return nodeName;
  throw usageError(
    `Setting nodeName: ${JSON.stringify(nodeName.slice(0, 80))}, expected 1 to 64 letters, digits, _ or -`,
    "nodeName",
  );
}

/** Throws invalid_config. */
export function nodeUrlOf({ nodeUrl }: Pick<Config, "nodeUrl">): string | undefined {
  if (nodeUrl === "") return undefined;
  const url = URL.parse(nodeUrl);
  const isWhole = url !== null && /^https?:$/.test(url.protocol) && url.pathname === "/";
  if (isWhole && url.search === "" && url.hash === "" && url.username === "") return url.origin;
  throw usageError(
    "Setting nodeUrl: expected http:// or https://, a name and maybe a port, e.g. https://a.voice.example.com",
    "nodeUrl",
  );
}
