/** Gateways of one process that share a bus in memory. */
import { decodeHeartbeat, type Heartbeat } from "../../src/cluster/bus/heartbeat.ts";
import { type MemoryBus, MemoryHub } from "../../src/cluster/bus/memory-bus.ts";
import type { Config } from "../../src/config.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { gatewayAt, type TestGateway } from "./start-gateway.ts";

export interface TestNode {
  readonly name: string;
  readonly gateway: TestGateway;
  readonly bus: MemoryBus;
}

export interface TestNodes extends AsyncDisposable {
  readonly hub: MemoryHub;
  readonly nodes: readonly TestNode[];
  readonly one: TestNode;
  readonly two: TestNode;
}

/** `claimMs`: how long the store takes for a claim. Nodes are called node-1, node-2 and so on. */
export async function startNodes(
  upstreamUrl: string,
  settings: Partial<Config> = {},
  { count = 2, claimMs = 0 }: { readonly count?: number; readonly claimMs?: number } = {},
): Promise<TestNodes> {
  const hub = new MemoryHub({ clock: systemClock });
  const nodes: TestNode[] = [];
  for (let index = 1; index <= count; index += 1) {
    const bus = hub.open();
    if (claimMs > 0) slowDown(bus, claimMs);
    const name = `node-${index}`;
    const cluster = { nodeName: name, connect: () => Promise.resolve(bus) };
    nodes.push({ name, bus, gateway: await gatewayAt(upstreamUrl, { trimMs: 0, ...settings }, { cluster }) });
  }
  const [one, two = one] = nodes;
  if (one === undefined || two === undefined) throw new Error("No nodes");
  return {
    hub,
    nodes,
    one,
    two,
    [Symbol.asyncDispose]: async () => {
      await Promise.all(nodes.map(({ gateway }) => gateway.close()));
    },
  };
}

/** What nodes say of themselves, by name, from now on. */
export async function heartbeatsOf(hub: MemoryHub): Promise<ReadonlyMap<string, Heartbeat>> {
  const heard = new Map<string, Heartbeat>();
  await hub.open().subscribe("node.heartbeat", (bytes) => {
    const heartbeat = decodeHeartbeat(bytes);
    if (heartbeat !== undefined) heard.set(heartbeat.name, heartbeat);
  });
  return heard;
}

function slowDown({ owners }: MemoryBus, ms: number): void {
  const claim = owners.claim.bind(owners);
  owners.claim = async (key, value) => {
    await new Promise((resolve) => setTimeout(resolve, ms));
    return claim(key, value);
  };
}
