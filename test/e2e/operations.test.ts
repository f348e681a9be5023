/** What an operator asks of a gateway: whether it lives, whether it takes callers, and its figures. */
import { once } from "node:events";
import { Agent, get, type IncomingMessage } from "node:http";
import { expect, it, vi } from "vitest";
import { Pacer } from "../../src/fanout/pacer.ts";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";

async function ask(url: string, agent: Agent): Promise<{ status: number; type: string; body: string }> {
  const [answer] = (await once(get(url, { agent }), "response")) as [IncomingMessage];
  let body = "";
  for await (const piece of answer.setEncoding("utf8")) body += String(piece);
  return { status: answer.statusCode ?? 0, type: answer.headers["content-type"] ?? "", body };
}

/** Prometheus text, version 0.0.4: each sample's name with its labels, and its value. Throws at any other line. */
function samplesOf(text: string): Map<string, number> {
  const samples = new Map<string, number>();
  for (const line of text.split("\n")) {
    if (line === "" || /^# (?:HELP|TYPE) [a-z_\d]+ /.test(line)) continue;
    const [, name = "", value = ""] =
      /^([a-z_\d]+(?:\{(?:[a-z_\d]+="[^"]*",?)*\})?) ([-+.\deE]+|NaN|\+Inf)$/.exec(line) ?? [];
    if (name === "") throw new Error(`No sample: ${line}`);
    if (samples.has(name)) throw new Error(`A sample twice: ${name}`);
    samples.set(name, Number(value));
  }
  return samples;
}

it("lives, is ready, counts what it does, and is ready no more while it drains", async () => {
  await using upstream = await startFakeUpstream();
  await using gateway = await gatewayAt(upstream.url);
  // One connection for all: while it drains, no other is taken.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const at = (path: string) => ask(`${gateway.url}${path}`, agent);
  try {
    const health = await at("/healthz");
    expect(health.status).toBe(200);
    expect(JSON.parse(health.body)).toMatchObject({
      status: "ok",
      server: expect.stringMatching(/^voicewire/),
    });
    expect(await at("/readyz")).toMatchObject({ status: 200, body: '{"status":"ready"}' });

    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000");
    client.send({ type: "speak", text: "Hello there, general listener, who has time." });
    await client.next("utterance.started");
    const metrics = await at("/metrics");
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
    await drained;
    expect(client.eventsOf("utterance.done")).toMatchObject([{ outcome: "done" }]);
  } finally {
    agent.destroy();
  }
});

it("the pacer catches up behind each piece of speech that is read", async () => {
  const catchUp = vi.spyOn(Pacer.prototype, "catchUp");
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
