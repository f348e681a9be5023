/** HTTP at one node, the session at another: two gateways that share a bus in memory. */
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Config } from "../../src/config.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { TestKeys, tokenFor } from "../helpers/key-file.ts";
import { TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { startPair as startClusterPair, type TestNode } from "./pair.ts";

const TEXT = "Hello there, general listener.";
let upstream: FakeUpstream;

beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: 40 }));
});
afterAll(async () => {
  await upstream.close();
});

const startPair = (settings: Partial<Config> = {}) => startClusterPair(upstream.url, settings);

/** An answer that goes on. */
class Following implements AsyncDisposable {
  readonly response: IncomingMessage;
  readonly #chunks: Buffer[] = [];
  /** Whether it ended as a whole answer does; null: it has not ended. */
  isWhole: boolean | null = null;

  private constructor(response: IncomingMessage) {
    this.response = response;
    response.on("data", (chunk: Buffer) => this.#chunks.push(chunk));
    response.on("error", () => undefined);
    response.on("close", () => {
      this.isWhole = response.complete;
    });
  }

  static async open({ gateway }: TestNode, path: string, headers: Record<string, string> = {}) {
    const [response] = await once(get(`${gateway.url}${path}`, { agent: false, headers }), "response");
    return new Following(response as IncomingMessage);
  }

  get body(): Buffer {
    return Buffer.concat(this.#chunks);
  }
  get text(): string {
    return this.body.toString("utf8");
  }

  async has(text: string): Promise<void> {
    await until(`"${text}"`, () => this.text.includes(text), { deadlineMs: 15_000 });
  }
  async isOver(): Promise<void> {
    await until("the end of the body", () => this.isWhole !== null, { deadlineMs: 15_000 });
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.response.destroy();
    await this.isOver();
  }
}

async function post({ gateway }: TestNode, path: string, body: object, headers: Record<string, string> = {}) {
  const answer = await fetch(`${gateway.url}${path}`, {
    method: "POST",
    body: JSON.stringify(body),
    headers,
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

const say = (node: TestNode, session: string, text = TEXT) =>
  post(node, `/live/${session}/speak`, { text, voice_id: "v" });

const errorOf = ({ body }: { body: Record<string, unknown> }) =>
  body.error as { code: string; retryable: boolean };

describe("commands over HTTP at another node than the session", () => {
  it("speak and interrupt are carried out there, with its answers", async () => {
    await using nodes = await startPair();
    await using near = await TestClient.connect(nodes.one.gateway, "/live/commands?format=ulaw_8000");
    await near.next("hello");
    const spoken = await post(nodes.two, "/live/commands/speak", {
      text: "One two three four five six seven eight nine ten eleven twelve.",
      voice_id: "v",
      utterance_id: "u",
    });
    expect(spoken).toEqual({ status: 202, body: { session: "commands", utterance_id: "u", ahead: 0 } });
    await near.until(() => near.frames.length >= 20);
    const cut = await post(nodes.two, "/live/commands/interrupt", {});
    expect(cut.status).toBe(200);
    const { heard } = await near.next("interrupted");
    expect(cut.body).toMatchObject({ session: "commands", interrupted: [{ utterance_id: "u", heard }] });
    expect((await post(nodes.two, "/live/commands/interrupt", {})).status).toBe(409);
    expect(nodes.two.gateway.counters.sessionsOpened).toBe(0);
  });

  it("what can't be carried out is refused as there", async () => {
    await using nodes = await startPair();
    await using near = await TestClient.connect(nodes.one.gateway, "/live/refusals");
    await near.next("hello");
    for (const [path, body] of [
      ["/live/refusals/interrupt", { utterance_id: "none" }],
      ["/live/refusals/speak", { text: "" }],
      ["/live/nowhere/speak", { text: TEXT }],
      [`/live/${"x".repeat(300)}/speak`, { text: TEXT }],
    ] as const) {
      expect(await post(nodes.two, path, body)).toEqual(await post(nodes.one, path, body));
    }
  });

  it("a key's texts are counted once, at the session's node", async () => {
    using keys = new TestKeys();
    await using nodes = await startPair({ keysFile: keys.path });
    const headers = { authorization: `Bearer ${keys.key}` };
    await using near = await TestClient.connect(nodes.one.gateway, "/live/rights", { headers });
    await near.next("hello");
    const listener = { authorization: `Bearer ${tokenFor({ sessions: ["rights"], allow: ["listen"] })}` };
    const refused = await post(nodes.two, "/live/rights/speak", { text: TEXT, voice_id: "v" }, listener);
    expect([refused.status, errorOf(refused).code]).toEqual([403, "forbidden"]);
    const taken = await post(nodes.two, "/live/rights/speak", { text: TEXT, voice_id: "v" }, headers);
    expect(taken.status).toBe(202);
    await near.next("utterance.done");
  });

  it("while the bus is lost they are to be tried again", async () => {
    await using nodes = await startPair();
    await using near = await TestClient.connect(nodes.one.gateway, "/live/lost");
    await near.next("hello");
    nodes.two.bus.cut();
    const refused = await say(nodes.two, "lost");
    expect(errorOf(refused)).toMatchObject({ code: "bus_lost", retryable: true });
  });

  it("larger than the bus takes they are refused as that, never to be tried again, and others are heard", async () => {
    await using nodes = await startClusterPair(upstream.url, {}, { maxMessageBytes: 8192 });
    await using near = await TestClient.connect(nodes.one.gateway, "/live/large");
    await near.next("hello");
    const refused = await say(nodes.two, "large", "Hello. ".repeat(1400));
    expect(refused).toEqual({
      status: 413,
      body: {
        error: { code: "bus_too_large", message: "A message is larger than the bus takes", retryable: false },
      },
    });
    expect((await say(nodes.two, "large")).status).toBe(202);
    await near.next("utterance.done");
  });
});

describe("audio over HTTP at another node than the session", () => {
  it("is the same bytes as at the session's node", async () => {
    await using nodes = await startPair({ graceMs: 0 });
    const near = await TestClient.connect(nodes.one.gateway, "/live/audio?role=speaker");
    await near.next("hello");
    for (const name of ["ulaw", "wav", "mp3"]) {
      const path = `/live/audio/audio.${name}?pace=burst`;
      await using here = await Following.open(nodes.one, path);
      await using there = await Following.open(nodes.two, path);
      expect(there.response.headers["content-type"]).toBe(here.response.headers["content-type"]);
      expect(there.response.headers["voicewire-start-ms"]).toBe(here.response.headers["voicewire-start-ms"]);
      await say(nodes.two, "audio");
      await near.next("utterance.done", near.eventsOf("utterance.done").length + 1);
      await until(
        "both have it all",
        () => here.body.length > 2000 && here.body.length === there.body.length,
      );
      expect(there.body.equals(here.body)).toBe(true);
    }
    await using last = await Following.open(nodes.two, "/live/audio/audio.wav");
    expect(nodes.two.gateway.counters.sessionsOpened).toBe(0);
    near.socket.close();
    last.response.destroy();
    await last.isOver();
    await until("the session has nobody", () => nodes.one.gateway.counters.sessionsClosed === 1);
  });

  it("ends whole with the session, and is cut when its node is lost", async () => {
    await using nodes = await startPair({ graceMs: 0 });
    const near = await TestClient.connect(nodes.one.gateway, "/live/ends");
    await near.next("hello");
    await using cut = await Following.open(nodes.two, "/live/ends/audio.wav");
    await using events = await Following.open(nodes.two, "/live/ends/captions");
    await events.has("event: hello");
    nodes.two.bus.cut();
    await cut.isOver();
    await events.isOver();
    expect(cut.isWhole).toBe(false);
    expect(events.text).toContain(
      'event: closed\ndata: {"type":"closed","code":"bus_lost","close_code":4502}',
    );
    near.socket.close();
  });

  it("ends behind the utterance when the session's node drains; who asks again hears what follows", async () => {
    await using nodes = await startPair({ drainMs: 20_000 });
    const near = await TestClient.connect(nodes.one.gateway, "/live/moves?format=none");
    await near.next("hello");
    await using far = await Following.open(nodes.two, "/live/moves/audio.ulaw");
    const next = "What follows is said at the other node, but for its beginning, which was sent ahead.";
    for (const text of [TEXT, next]) near.send({ type: "speak", text, voice_id: "v" });
    await near.next("utterance.started");
    const drained = nodes.one.gateway.drain();
    await far.isOver();
    expect(far.isWhole).toBe(false);
    const bytesOf = (text: string) => text.length * 40 * 8;
    expect(far.body.length).toBeGreaterThanOrEqual(bytesOf(TEXT));
    expect(far.body.length).toBeLessThan(bytesOf(TEXT + next));
    await drained;
    await using again = await Following.open(nodes.two, "/live/moves/audio.ulaw");
    expect(again.response.statusCode).toBe(200);
    const left = bytesOf(TEXT + next) - far.body.length;
    await until("the rest", () => again.body.length >= left, { deadlineMs: 15_000 });
  });

  it("one that waits opens the session at its node, and others come to it there", async () => {
    await using nodes = await startPair();
    await using first = await Following.open(nodes.two, "/live/waits/audio.ulaw?wait=true&pace=burst");
    await using speaker = await TestClient.connect(nodes.one.gateway, "/live/waits?role=speaker");
    await speaker.next("hello");
    speaker.send({ type: "speak", text: TEXT, voice_id: "v" });
    await speaker.next("utterance.done");
    await until("it is heard", () => first.body.length > 8000);
    expect([nodes.one, nodes.two].map(({ gateway }) => gateway.counters.sessionsOpened)).toEqual([0, 1]);
  });

  it("HEAD and GET of a session that is nowhere say so, and leave nothing behind", async () => {
    await using nodes = await startPair();
    for (const path of ["audio.wav", "captions", "captions.vtt"]) {
      for (const method of ["HEAD", "GET"]) {
        const answer = await fetch(`${nodes.two.gateway.url}/live/nowhere/${path}`, { method });
        expect(answer.status).toBe(404);
      }
    }
    await using near = await TestClient.connect(nodes.one.gateway, "/live/nowhere");
    await near.next("hello");
    for (const path of ["audio.wav", "captions", "captions.vtt"]) {
      const answer = await fetch(`${nodes.two.gateway.url}/live/nowhere/${path}`, { method: "HEAD" });
      expect(answer.status).toBe(200);
    }
  });

  it("two that open one session at the same time at two nodes are in one", async () => {
    await using nodes = await startPair();
    const path = "/live/both/captions?wait=true";
    await using here = await Following.open(nodes.one, path);
    await using there = await Following.open(nodes.two, path);
    await Promise.all([here.has("event: hello"), there.has("event: hello")]);
    const epochOf = ({ text }: Following) => /"epoch":"(\w+)"/.exec(text)?.[1];
    expect(epochOf(there)).toBe(epochOf(here));
    expect(epochOf(here)).toBeDefined();
  });
});

describe("captions over HTTP at another node than the session", () => {
  it("server-sent events are those of the session's node, and go on behind the last one", async () => {
    await using nodes = await startPair();
    await using near = await TestClient.connect(
      nodes.one.gateway,
      "/live/events?format=ulaw_8000&pace=burst",
    );
    await near.next("hello");
    await using here = await Following.open(nodes.one, "/live/events/captions");
    await using there = await Following.open(nodes.two, "/live/events/captions");
    near.send({ type: "speak", text: TEXT, voice_id: "v" });
    await Promise.all([here.has("event: utterance.done"), there.has("event: utterance.done")]);
    const idsOf = ({ text }: Following) => text.match(/^id: .*$/gm)?.slice(1);
    const cuesOf = ({ text }: Following) => text.match(/^data: \{"type":"cue".*$/gm);
    expect(idsOf(there)).toEqual(idsOf(here));
    expect(cuesOf(there)).toEqual(cuesOf(here));
    expect(cuesOf(there)?.length).toBeGreaterThan(0);
    const [, second = ""] = idsOf(there) ?? [];
    await using again = await Following.open(nodes.two, "/live/events/captions", {
      "last-event-id": second.slice("id: ".length),
    });
    await again.has("event: utterance.done");
    expect(again.text).toContain('"resumed":true');
    expect(idsOf(again)).toEqual(idsOf(there)?.slice(2));
  });

  it("files are those of the session's node, at once and as they grow", async () => {
    await using nodes = await startPair({ graceMs: 0 });
    const near = await TestClient.connect(nodes.one.gateway, "/live/files?format=ulaw_8000&pace=burst");
    await near.next("hello");
    await using growing = await Following.open(nodes.two, "/live/files/captions.vtt");
    expect(growing.response.headers["content-type"]).toBe("text/vtt; charset=utf-8");
    near.send({ type: "speak", text: TEXT, voice_id: "v" });
    await growing.has("listener.");
    for (const path of ["/live/files/captions.vtt?live=false", "/live/files/captions.srt?live=false"]) {
      const [here, there] = await Promise.all(
        [nodes.one, nodes.two].map(async ({ gateway }) => {
          const answer = await fetch(`${gateway.url}${path}`);
          return [answer.status, answer.headers.get("content-type"), await answer.text()];
        }),
      );
      expect(there).toEqual(here);
    }
    near.socket.close();
  });

  it("a growing file is whole when the session ends", async () => {
    await using nodes = await startPair({ graceMs: 0 });
    await using near = await TestClient.connect(nodes.one.gateway, "/live/whole?format=ulaw_8000&pace=burst");
    await near.next("hello");
    await using growing = await Following.open(nodes.two, "/live/whole/captions.srt");
    near.send({ type: "speak", text: TEXT, voice_id: "v" });
    await growing.has("listener.");
    await nodes.one.gateway.close();
    await growing.isOver();
    expect(growing.isWhole).toBe(true);
  });
});

describe("tokens", () => {
  it("do not cross the bus, and let their clients in all the same", async () => {
    using keys = new TestKeys();
    await using nodes = await startPair({ keysFile: keys.path, tokenInUrl: true });
    const headers = { authorization: `Bearer ${keys.key}` };
    await using near = await TestClient.connect(nodes.one.gateway, "/live/secret", { headers });
    await near.next("hello");
    const published: Buffer[] = [];
    const { bus } = nodes.two;
    const publish = bus.publish.bind(bus);
    bus.publish = (subject, bytes) => {
      published.push(Buffer.from(bytes));
      publish(subject, bytes);
    };
    const token = tokenFor({ sessions: ["secret"], allow: ["listen", "captions"] });
    await using far = await TestClient.connect(nodes.two.gateway, `/live/secret?token=${token}`);
    await far.next("hello");
    await using audio = await Following.open(nodes.two, `/live/secret/audio.wav?token=${token}`);
    await using events = await Following.open(nodes.two, `/live/secret/captions?single_use_token=${token}`);
    await events.has("event: hello");
    const file = await fetch(`${nodes.two.gateway.url}/live/secret/captions.vtt?live=false&token=${token}`);
    expect([audio.response.statusCode, file.status]).toEqual([200, 200]);
    expect(Buffer.concat(published).includes("secret")).toBe(true);
    expect(Buffer.concat(published).includes(token)).toBe(false);
  });

  it("that are withdrawn end what they opened", async () => {
    using keys = new TestKeys();
    await using nodes = await startPair({ keysFile: keys.path });
    await using near = await TestClient.connect(nodes.one.gateway, "/live/withdrawn", {
      headers: { authorization: `Bearer ${keys.key}` },
    });
    await near.next("hello");
    const token = tokenFor({ sessions: ["withdrawn"], allow: ["listen"] }, { claims: { jti: "t-1" } });
    const headers = { authorization: `Bearer ${token}` };
    await using audio = await Following.open(nodes.two, "/live/withdrawn/audio.wav", headers);
    await using events = await Following.open(nodes.two, "/live/withdrawn/captions", headers);
    await events.has("event: hello");
    keys.write({ revoked: { tokens: ["t-1"] } });
    await Promise.all([audio.isOver(), events.isOver()]);
    expect(audio.isWhole).toBe(false);
    expect(events.text).toContain('"code":"token_revoked"');
  });
});
