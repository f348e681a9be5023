/** What an operator asks of a gateway: whether it lives, whether it takes callers, and its figures. */
import { once } from "node:events";
import { Agent, get, type IncomingMessage } from "node:http";
import { expect, it, vi } from "vitest";
import { Pacer } from "../../src/delivery/pacer.ts";
import { VERSION } from "../../src/version.ts";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { freePort } from "../helpers/free-port.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";

async function ask(url: string, agent: Agent): Promise<{ status: number; type: string; body: string }> {
  const [answer] = (await once(get(url, { agent }), "response")) as [IncomingMessage];
  let body = "";
  for await (const piece of answer.setEncoding("utf8")) body += String(piece);
  return { status: answer.statusCode ?? 0, type: answer.headers["content-type"] ?? "", body };
}

/**
 * Prometheus text, version 0.0.4: each sample's name with its labels, and its value. Throws at any other line. What has no
 * value yet is NaN, in any case: prom-client writes "Nan".
 */
function samplesOf(text: string): Map<string, number> {
  const samples = new Map<string, number>();
  for (const line of text.split("\n")) {
    if (line === "" || /^# (?:HELP|TYPE) [a-z_\d]+ /.test(line)) continue;
    const [, name = "", value = ""] =
      /^([a-z_\d]+(?:\{(?:[a-z_\d]+="[^"]*",?)*\})?) ([-+.\deE]+|[Nn]a[Nn]|\+Inf)$/.exec(line) ?? [];
    if (name === "") throw new Error(`No sample: ${line}`);
    if (samples.has(name)) throw new Error(`A sample twice: ${name}`);
    samples.set(name, Number(value));
  }
  return samples;
}

it("lives, is ready, counts what it does, and is ready no more while it drains", async () => {
  await using upstream = await startFakeUpstream();
  await using gateway = await gatewayAt(upstream.url);
  // One connection for all: while it drains, the public port takes no other.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const at = (path: string) => ask(`${gateway.url}${path}`, agent);
  const atOps = (path: string) => ask(`${gateway.opsUrl}${path}`, new Agent());
  try {
    expect(await at("/healthz")).toMatchObject({ status: 200, body: '{"status":"ok","server":"voicewire"}' });
    expect(await at("/readyz")).toMatchObject({ status: 200, body: '{"status":"ready"}' });
    const health = await atOps("/healthz");
    expect([health.status, JSON.parse(health.body)]).toEqual([
      200,
      { status: "ok", server: `voicewire/${VERSION}` },
    ]);

    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000");
    client.send({ type: "speak", text: "Hello there, general listener, who has time." });
    await client.next("utterance.started");
    const metrics = await atOps("/metrics");
    expect(metrics).toMatchObject({
      status: 200,
      type: expect.stringMatching(/^text\/plain; version=0\.0\.4/),
    });
    const samples = samplesOf(metrics.body);
    expect(samples.get("voicewire_sessions")).toBe(1);
    expect(samples.get("voicewire_sessions_opened_total")).toBe(1);
    // The upstream has said it all, and more than is taken ahead of what is heard.
    expect(samples.get("voicewire_waiting_audio_bytes")).toBeGreaterThan(0);
    expect(samples.get("voicewire_recent_audio_bytes")).toBeGreaterThan(0);

    const drained = gateway.drain();
    expect(await at("/readyz")).toMatchObject({ status: 503, body: '{"status":"draining"}' });
    expect((await at("/healthz")).status).toBe(200);
    const readiness = await atOps("/readyz");
    expect([readiness.status, JSON.parse(readiness.body)]).toEqual([
      503,
      {
        status: "draining",
        server: `voicewire/${VERSION}`,
        sessions: 1,
        upstream: {
          open: expect.any(Number),
          queued: 0,
          regions: [{ name: new URL(upstream.url).host, healthy: true }],
        },
      },
    ]);
    await drained;
    expect(client.eventsOf("utterance.done")).toMatchObject([{ outcome: "done" }]);
  } finally {
    agent.destroy();
  }
});

it("the public port has no metrics and says where they are; the operations port has nothing for other origins", async () => {
  await using upstream = await startFakeUpstream();
  await using gateway = await gatewayAt(upstream.url);
  const refused = await fetch(`${gateway.url}/metrics`);
  expect([refused.status, await refused.text()]).toEqual([404, expect.stringContaining("ops-port")]);
  for (const [path, status] of [["metrics", 200] as const, ["live/s/audio.wav", 404] as const]) {
    const answer = await fetch(`${gateway.opsUrl}/${path}`, { headers: { origin: "http://localhost:3000" } });
    expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([status, null]);
    await answer.arrayBuffer();
  }
});

it("the operations port may be fixed or off, is closed with the gateway, and stops the start where it is taken", async () => {
  await using upstream = await startFakeUpstream();
  const without = await gatewayAt(upstream.url, { opsPort: "off" });
  expect(without.opsUrl).toBeNull();
  await Promise.all([without.close(), without.close(), without.drain()]);
  const opsPort = await freePort();
  const first = await gatewayAt(upstream.url, { opsPort });
  expect(first.opsUrl).toBe(`http://127.0.0.1:${opsPort}`);
  await expect(gatewayAt(upstream.url, { opsPort })).rejects.toMatchObject({
    code: "port_in_use",
    message: expect.stringContaining(`127.0.0.1:${opsPort} (ops-port)`),
  });
  expect((await fetch(`${first.opsUrl}/readyz`)).status).toBe(200);
  const port = await freePort();
  const both = gatewayAt(upstream.url, { port, opsPort: port });
  await expect(both).rejects.toMatchObject({ message: expect.stringContaining("(ops-port)") });
  await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow();
  await Promise.all([first.close(), first.close()]);
  await expect(fetch(`${first.opsUrl}/readyz`)).rejects.toThrow();
  await using again = await gatewayAt(upstream.url, { opsPort });
  expect((await fetch(`${again.opsUrl}/readyz`)).status).toBe(200);
});

it("the pacer catches up behind each piece of speech that is read", async () => {
  const catchUp = vi.spyOn(Pacer.prototype, "wakeOverdue");
  try {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000");
    const before = catchUp.mock.calls.length;
    client.send({ type: "speak", text: "Hello there." });
    await client.next("utterance.started");
    expect(catchUp.mock.calls.length).toBeGreaterThan(before);
  } finally {
    catchUp.mockRestore();
  }
});
