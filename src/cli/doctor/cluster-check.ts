/** Whether the cluster's bus can be reached, who is there, and who else may be. */
import { isLoopback } from "../../access/origin-rules.ts";
import { BUS_VERSION, decodeHeartbeat, HEARTBEATS, type Heartbeat } from "../../cluster/bus/heartbeat.ts";
import type { NatsBus } from "../../cluster/bus/nats-bus.ts";
import { type NatsServers, parseNatsUrl } from "../../cluster/bus/nats-options.ts";
import type { Config } from "../../config.ts";
import { type Clock, sleep } from "../../kit/clock.ts";
import { silentLog } from "../../kit/log.ts";
import { connectTo } from "../serve/cluster.ts";
import { type CheckResult, resultWith, type Worry } from "./check-result.ts";

/** Each node says twice a second that it is there: more than two of its heartbeats. */
const LISTEN_MS = 1200;
/** More nodes are counted and not named. */
const MAX_NAMED = 10;

/** Rejects as the bus does: its words name no credentials. */
export async function checkCluster(config: Config, clock: Clock): Promise<CheckResult> {
  if (config.cluster === "") return { status: "ok", detail: "none: this gateway is alone" };
  const servers = parseNatsUrl(config.cluster);
  const bus = await connectTo(config, { log: silentLog, clock });
  try {
    const nodes = await nodesOn(bus, clock);
    const detail = `nats-server ${bus.serverVersion} at ${servers.addresses.join(", ")}, with JetStream; ${seen(nodes)}`;
    return resultWith(detail, [...networkWorries(servers, config), ...nodeWorries(nodes, config)]);
  } finally {
    await bus.close();
  }
}

async function nodesOn(bus: NatsBus, clock: Clock): Promise<readonly Heartbeat[]> {
  const heard = new Map<string, Heartbeat>();
  const listening = await bus.subscribe(HEARTBEATS, (bytes) => {
    const heartbeat = decodeHeartbeat(bytes);
    if (heartbeat === undefined) return;
    if (heartbeat.isLeaving) heard.delete(heartbeat.name);
    else heard.set(heartbeat.name, heartbeat);
  });
  await sleep(clock, LISTEN_MS);
  listening.close();
  return [...heard.values()].sort((one, other) => one.name.localeCompare(other.name));
}

function seen(nodes: readonly Heartbeat[]): string {
  if (nodes.length === 0) return "no node runs";
  const named = nodes
    .slice(0, MAX_NAMED)
    .map(({ name, facts }) => (facts.isDraining ? `${name} (drains)` : name));
  const more = nodes.length > MAX_NAMED ? ` and ${nodes.length - MAX_NAMED} more` : "";
  return `nodes: ${named.join(", ")}${more}`;
}

/** What others on the network could read, or do. */
export function networkWorries(servers: NatsServers, config: Config): readonly Worry[] {
  const { addresses, user, password, token, isTls } = servers;
  const isRemote = addresses.some(
    (address) => !isLoopback(address.replace(/:\d+$/, "").replace(/^\[|\]$/g, "")),
  );
  if (!isRemote) return [];
  const { clusterCredentials, clusterTlsCa, clusterTlsCert, clusterTlsKey } = config;
  const hasSecret = token !== undefined || (user !== undefined && password !== undefined);
  const hasTls = isTls || `${clusterTlsCa}${clusterTlsCert}${clusterTlsKey}` !== "";
  const read = hasSecret ? "its password, texts and audio" : "texts and audio";
  return [
    ...(hasTls
      ? []
      : [{ what: `others on the network can read ${read}`, fix: "give the servers TLS, and use tls://" }]),
    ...(hasSecret || clusterCredentials !== "" || clusterTlsCert !== ""
      ? []
      : [
          {
            what: "who reaches it may listen and speak in every session: it asks for no credentials",
            fix: "let nats-server ask for a user and a password, and give them as VOICEWIRE_CLUSTER",
          },
        ]),
  ];
}

function nodeWorries(nodes: readonly Heartbeat[], { nodeName }: Config): readonly Worry[] {
  const foreign = nodes.filter(({ version }) => version !== BUS_VERSION).map(({ name }) => name);
  const isTaken = nodes.some(({ name }) => name === nodeName);
  return [
    ...(foreign.length === 0
      ? []
      : [
          {
            what: `of another version, so that their sessions can't be reached: ${foreign.join(", ")}`,
            fix: "run the same version of voicewire on all nodes",
          },
        ]),
    ...(isTaken
      ? [
          {
            what: `a node called ${nodeName} runs already`,
            fix: "nothing, if it is this one; else choose another --node-name",
          },
        ]
      : []),
  ];
}
