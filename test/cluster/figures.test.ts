/** What a node of a cluster says on its operations port. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { LiveView, OpenedSession } from "../../src/protocol/live-view.ts";
import { heartbeatsOf, startNodes, type TestNode, type TestNodes } from "../helpers/cluster-nodes.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";

let upstream: FakeUpstream;
let nodes: TestNodes;

beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: 5 }));
  nodes = await startNodes(upstream.url);
  const heard = await heartbeatsOf(nodes.hub);
  await until("they know one another", () => heard.size === 2);
});
afterAll(async () => {
  await nodes[Symbol.asyncDispose]();
  await upstream.close();
});

async function figuresOf({ opsUrl }: { readonly opsUrl: string | null }): Promise<Map<string, number>> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  const lines = text.split("\n").filter((line) => line.startsWith("voicewire_cluster_"));
  return new Map(lines.map((line) => [line.split(" ")[0] ?? "", Number(line.split(" ")[1])]));
}

async function readiness({ gateway }: TestNode) {
  const answer = await fetch(`${gateway.opsUrl}/readyz`);
  return { status: answer.status, bus: ((await answer.json()) as { bus?: string }).bus };
}

it("a node counts its nodes, sessions, relayed clients and what they cost on the bus", async () => {
  const { one, two } = nodes;
  await using near = await TestClient.connect(one.gateway, "/live/figures?format=ulaw_8000&pace=burst");
  await near.next("hello");
  await using far = await TestClient.connect(
    two.gateway,
    "/live/figures?format=ulaw_8000&pace=burst&role=listener",
  );
  await far.next("hello");
  near.send({ type: "speak", text: "Hello there.", voice_id: "v" });
  await far.next("utterance.done");
  const [owner, other] = await Promise.all([figuresOf(one.gateway), figuresOf(two.gateway)]);
  expect(owner.get('voicewire_cluster_nodes{state="alive"}')).toBe(2);
  expect(owner.get("voicewire_cluster_sessions_owned")).toBe(1);
  expect(other.get("voicewire_cluster_sessions_owned")).toBe(0);
  expect(other.get("voicewire_cluster_sessions_kept")).toBe(1);
  expect(other.get("voicewire_cluster_sessions_not_kept_total")).toBe(0);
  expect(owner.get('voicewire_cluster_relayed_connections{side="hosted"}')).toBe(1);
  expect(other.get('voicewire_cluster_relayed_connections{side="arrived"}')).toBe(1);
  const sentBytes = owner.get('voicewire_cluster_relay_bytes_total{direction="out"}') ?? 0;
  expect(sentBytes).toBeGreaterThan(far.audio.length);
  expect(other.get('voicewire_cluster_relay_bytes_total{direction="in"}')).toBe(sentBytes);
  expect(other.get('voicewire_cluster_relay_messages_total{direction="in"}')).toBeGreaterThan(0);
});

it("a node's live view has its own sessions, and names the other nodes", async () => {
  const { one, two } = nodes;
  await using near = await TestClient.connect(one.gateway, "/live/seen?format=none");
  await near.next("hello");
  await using far = await TestClient.connect(two.gateway, "/live/seen?format=none&role=listener");
  await far.next("hello");
  const stateOf = async ({ gateway }: TestNode) => {
    const answer = await fetch(`${gateway.opsUrl}/admin/state?session=seen&order=name`);
    return (await answer.json()) as { view: LiveView; opened: OpenedSession | null };
  };
  const [owner, other] = await Promise.all([stateOf(one), stateOf(two)]);
  expect(owner.view.sessions.rows.map(({ name }) => name)).toContain("seen");
  expect(owner.opened?.listeners.map(({ surface }) => surface)).toEqual(["socket", "other node"]);
  expect([other.view.sessions.matching, other.opened]).toEqual([0, null]);
  expect(owner.view.other_nodes).toMatchObject([{ name: other.view.nodes[0]?.name, state: "alive" }]);
});

it("a node without its bus says so, and is ready", async () => {
  const { one } = nodes;
  expect(await readiness(one)).toEqual({ status: 200, bus: "up" });
  one.bus.cut();
  try {
    expect(await readiness(one)).toEqual({ status: 200, bus: "lost" });
    const before = await figuresOf(one.gateway);
    expect(before.get("voicewire_cluster_bus_up")).toBe(0);
    await using refused = await TestClient.connect(one.gateway, "/live/refused");
    await refused.next("error");
    const name = 'voicewire_cluster_claims_refused_total{what="session"}';
    expect((await figuresOf(one.gateway)).get(name)).toBe((before.get(name) ?? 0) + 1);
  } finally {
    one.bus.heal();
  }
});

it("a node whose name another process has is not ready: it takes no new sessions", async () => {
  await using pair = await startNodes(upstream.url);
  const { hub, one } = pair;
  hub.leases.delete(one.name);
  await hub.open().leases.claim(one.name, new TextEncoder().encode("another-process"));
  await expect.poll(() => readiness(one), { timeout: 10_000 }).toEqual({ status: 503, bus: "up" });
  expect(await readiness(pair.two)).toEqual({ status: 200, bus: "up" });
});

it("the metrics are those of docs/configuration.md; a gateway that is alone has none", async () => {
  const page = readFileSync(new URL("../../docs/configuration.md", import.meta.url), "utf8");
  const inDocs = [...page.matchAll(/^\| `(voicewire_cluster_\w+)` \|/gm)].map(([, name]) => name);
  const figures = await figuresOf(nodes.one.gateway);
  expect([...new Set([...figures.keys()].map((name) => name.split("{")[0]))].sort()).toEqual(inDocs.sort());
  await using alone = await gatewayAt(upstream.url);
  expect([...(await figuresOf(alone)).keys()]).toEqual([]);
  expect(await (await fetch(`${alone.opsUrl}/readyz`)).json()).not.toHaveProperty("bus");
});

it("a node that is not told of sessions any more keeps none of them", async () => {
  await using three = await startNodes(upstream.url, {}, { count: 3 });
  const heard = await heartbeatsOf(three.hub);
  await until("they know one another", () => heard.size === 3);
  await using client = await TestClient.connect(three.one.gateway, "/live/kept?role=speaker&format=none");
  await client.next("hello");
  const buddyOf = ({ name }: TestNode): string | null => heard.get(name)?.facts.buddy ?? null;
  const first = buddyOf(three.one);
  const [, ...others] = three.nodes;
  const isFirst = ({ name }: TestNode): boolean => heard.get(name)?.incarnation === first;
  const [buddy, other] = [others.find(isFirst), others.find((node) => !isFirst(node))];
  if (buddy === undefined || other === undefined) throw new Error("Nobody is told of the session");
  const kept = async ({ gateway }: TestNode) =>
    (await figuresOf(gateway)).get("voicewire_cluster_sessions_kept");
  const becomes = (node: TestNode, count: number): Promise<void> =>
    expect.poll(() => kept(node), { timeout: 10_000 }).toBe(count);
  await becomes(buddy, 1);
  expect(await kept(other)).toBe(0);
  buddy.bus.cut();
  await becomes(other, 1);
  buddy.bus.heal();
  await becomes(buddy, 1);
  await becomes(other, 0);
}, 30_000);
