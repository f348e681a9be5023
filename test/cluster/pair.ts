/** Two gateways that share a bus in memory, each a node of its own. */
import { type MemoryBus, MemoryHub, type MemoryHubOptions } from "../../src/cluster/bus/memory-bus.ts";
import type { Config } from "../../src/config.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { gatewayAt, type TestGateway } from "../helpers/start-gateway.ts";

export interface TestNode {
  readonly name: string;
  readonly gateway: TestGateway;
  readonly bus: MemoryBus;
}

let names = 0;

export async function startNode(
  hub: MemoryHub,
  upstreamUrl: string,
  settings: Partial<Config> = {},
): Promise<TestNode> {
  const bus = hub.open();
  names += 1;
  const name = `node-${names}`;
  const cluster = { nodeName: name, connect: () => Promise.resolve(bus) };
  return { name, bus, gateway: await gatewayAt(upstreamUrl, { trimMs: 0, ...settings }, { cluster }) };
}

/** Two that know each other. */
export async function startPair(
  upstreamUrl: string,
  settings: Partial<Config> = {},
  bus: Pick<MemoryHubOptions, "maxMessageBytes"> = {},
) {
  const hub = new MemoryHub({ clock: systemClock, ...bus });
  const [one, two] = [
    await startNode(hub, upstreamUrl, settings),
    await startNode(hub, upstreamUrl, settings),
  ];
  return {
    hub,
    one,
    two,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([one.gateway.close(), two.gateway.close()]);
    },
  };
}
