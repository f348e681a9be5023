/** Clients of the native protocol at one node, their session at another: two gateways that share a bus in memory. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BUS_VERSION } from "../../src/cluster/bus/heartbeat.ts";
import type { Config } from "../../src/config.ts";
import { heartbeatsOf } from "../helpers/cluster-nodes.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { TestKeys, tokenFor } from "../helpers/key-file.ts";
import { TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { startPair as startClusterPair } from "./pair.ts";

const TEXT = "Hello there, general listener.";
let upstream: FakeUpstream;

beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: 40 }));
});
afterAll(async () => {
  await upstream.close();
});

/** Tries again until it is given. */
async function untilGiven(what: string, attempt: () => Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 15_000;
  while (!(await attempt())) {
    if (performance.now() > deadlineMs) throw new Error(`Never came: ${what}`);
  }
}

const startPair = (settings: Partial<Config> = {}) => startClusterPair(upstream.url, settings);

const speak = (text = TEXT) => ({ type: "speak", text, voice_id: "v" });

describe("a client at another node than its session", () => {
  it("hears the same bytes and events as one at the session's node", async () => {
    await using nodes = await startPair();
    const query = "format=ulaw_8000&pace=burst&events=words,characters,marks";
    await using near = await TestClient.connect(nodes.one.gateway, `/live/same?${query}`);
    await near.next("hello");
    await using far = await TestClient.connect(nodes.two.gateway, `/live/same?${query}&role=listener`);
    const hello = await far.next("hello");
    expect(hello.epoch).toBe(near.eventsOf("hello")[0]?.epoch);
    near.send(speak());
    await Promise.all([near.next("utterance.done"), far.next("utterance.done")]);
    expect(far.audio.length).toBeGreaterThan(8000);
    expect(far.audio.equals(near.audio)).toBe(true);
    expect(far.eventsOf("words")).toEqual(near.eventsOf("words"));
    expect(far.eventsOf("characters")).toEqual(near.eventsOf("characters"));
  });

  it("speaks, and what it says is heard everywhere", async () => {
    await using nodes = await startPair();
    await using near = await TestClient.connect(nodes.one.gateway, "/live/far-speaker?pace=burst");
    await near.next("hello");
    await using far = await TestClient.connect(
      nodes.two.gateway,
      "/live/far-speaker?pace=burst&events=words",
    );
    // Before its hello: it waits for its place in the session.
    far.send({ type: "text", text: "Hello ", voice_id: "v", utterance_id: "u1" });
    far.send({ type: "text", text: "there.", utterance_id: "u1" });
    far.send({ type: "end", utterance_id: "u1" });
    expect(await near.next("utterance.done")).toMatchObject({ utterance_id: "u1", outcome: "done" });
    await far.next("utterance.done");
    expect(far.eventsOf("words").flatMap(({ words }) => words.map(({ text }) => text))).toEqual([
      "Hello",
      "there",
    ]);
  });

  it("opens the session where it arrives, and others come to it there", async () => {
    await using nodes = await startPair();
    await using first = await TestClient.connect(nodes.two.gateway, "/live/second-node?pace=burst");
    const hello = await first.next("hello");
    await using second = await TestClient.connect(
      nodes.one.gateway,
      "/live/second-node?pace=burst&role=listener",
    );
    expect((await second.next("hello")).epoch).toBe(hello.epoch);
    first.send(speak());
    await second.next("utterance.done");
    expect(second.audio.equals(first.audio)).toBe(true);
  });

  it("two clients that open a session at the same time at two nodes are in one", async () => {
    await using nodes = await startPair();
    const clients = await Promise.all(
      [nodes.one, nodes.two, nodes.one, nodes.two].map(({ gateway }) =>
        TestClient.connect(gateway, "/live/at-once?pace=burst"),
      ),
    );
    const epochs = await Promise.all(clients.map(async (client) => (await client.next("hello")).epoch));
    expect(new Set(epochs).size).toBe(1);
    for (const client of clients) client.socket.close();
  });

  it("interrupts; the receipt counts what the far listener has played", async () => {
    await using nodes = await startPair();
    await using near = await TestClient.connect(nodes.one.gateway, "/live/cut?format=none");
    await near.next("hello");
    await using far = await TestClient.connect(nodes.two.gateway, "/live/cut?format=ulaw_8000&lead_ms=2000");
    await far.next("hello");
    near.send(speak("One two three four five six seven eight nine ten eleven twelve."));
    await far.until(() => far.frames.length >= 60);
    far.send({ type: "played", at_ms: 400 });
    // So that it is known where it stands.
    far.send({ type: "ping" });
    await far.next("pong");
    far.send({ type: "interrupt" });
    const [receipt] = await Promise.all([near.next("interrupted"), far.next("interrupted")]);
    expect(receipt.heard).toMatchObject({ source: "ack" });
    expect(Math.abs(receipt.heard.ms - 400)).toBeLessThan(200);
  });

  it("plays sounds, and prepares speech at the session's node", async () => {
    await using nodes = await startPair();
    await using near = await TestClient.connect(
      nodes.one.gateway,
      "/live/sounds?format=ulaw_8000&pace=burst&events=words",
    );
    await near.next("hello");
    await using far = await TestClient.connect(nodes.two.gateway, "/live/sounds?role=speaker&pace=burst");
    await far.next("hello");
    const sound = Buffer.alloc(190_000, 0x21);
    far.send({ type: "prepare", prepared_id: "p", text: TEXT, voice_id: "v" });
    expect(await far.next("prepared")).toMatchObject({ prepared_id: "p", characters: TEXT.length });
    far.send({ type: "play", audio: sound.toString("base64"), format: "ulaw_8000" });
    far.send({ type: "play", prepared_id: "p" });
    await near.next("utterance.done", 2);
    expect(near.audio.subarray(0, sound.length).equals(sound)).toBe(true);
    expect(near.eventsOf("words").flatMap(({ words }) => words)).toHaveLength(4);
    far.send({ type: "play", prepared_id: "none" });
    expect(await far.next("error")).toMatchObject({ code: "not_prepared" });
  });

  it("gets an error for what it may not say, as at the session's node", async () => {
    await using nodes = await startPair();
    await using near = await TestClient.connect(nodes.one.gateway, "/live/errors");
    await near.next("hello");
    await using far = await TestClient.connect(nodes.two.gateway, "/live/errors?role=listener");
    await far.next("hello");
    far.send(speak());
    expect(await far.next("error")).toMatchObject({ code: "not_a_speaker" });
    far.send("no json");
    expect((await far.next("error", 2)).message).toContain("JSON");
  });

  it("a session that is refused where it arrives can be opened at another node", async () => {
    await using nodes = await startPair({ maxSessions: 1 });
    await using first = await TestClient.connect(nodes.one.gateway, "/live/first-session");
    await first.next("hello");
    await using refused = await TestClient.connect(nodes.one.gateway, "/live/refused");
    expect(await refused.next("error")).toMatchObject({ code: "session_limit" });
    await refused.untilClosed();
    await using taken = await TestClient.connect(nodes.two.gateway, "/live/refused");
    await taken.next("hello");
  });

  it("a listener whose session is nowhere hears so", async () => {
    await using nodes = await startPair();
    await using far = await TestClient.connect(nodes.two.gateway, "/live/nowhere?role=listener");
    expect(await far.next("error")).toMatchObject({ code: "unknown_session" });
  });

  it("leaves: presence says so, and it comes back to what it missed", async () => {
    await using nodes = await startPair();
    await using near = await TestClient.connect(
      nodes.one.gateway,
      "/live/back?format=ulaw_8000&events=presence",
    );
    await near.next("hello");
    const far = await TestClient.connect(
      nodes.two.gateway,
      "/live/back?format=ulaw_8000&role=listener&lead_ms=300",
    );
    const { resume_token } = await far.next("hello");
    near.send(speak("One two three four five six seven eight nine ten eleven twelve."));
    await far.until(() => far.frames.length >= 20);
    far.socket.terminate();
    await near.until(() => near.eventsOf("presence").some((event) => event.listeners === 1));
    // It may come back at either node.
    const before = far.frames.length;
    await using again = await TestClient.connect(
      nodes.one.gateway,
      `/live/back?format=ulaw_8000&role=listener&lead_ms=300&resume=${resume_token}&at_ms=${before * 20}`,
    );
    expect(await again.next("hello")).toMatchObject({ resumed: true });
    await again.next("utterance.done");
    await near.next("utterance.done");
    const whole = Buffer.concat([far.audio, again.audio]);
    expect(whole.equals(near.audio.subarray(0, whole.length))).toBe(true);
  });
});

describe("keys", () => {
  it("hold at the session's node: a far listener's token does not speak", async () => {
    using keys = new TestKeys();
    await using nodes = await startPair({ keysFile: keys.path });
    const headers = { authorization: `Bearer ${keys.key}` };
    await using near = await TestClient.connect(nodes.one.gateway, "/live/keys", { headers });
    await near.next("hello");
    const token = tokenFor({ sessions: ["keys"], allow: ["listen"] });
    await using far = await TestClient.connect(nodes.two.gateway, "/live/keys?role=listener", {
      headers: { authorization: `Bearer ${token}` },
    });
    await far.next("hello");
    far.send({ type: "interrupt" });
    expect(await far.next("error")).toMatchObject({ code: "forbidden" });
  });
});

describe("clients that send without end to another node's session", () => {
  it("end no connection of others", async () => {
    await using nodes = await startPair();
    await using near = await TestClient.connect(nodes.one.gateway, "/live/flooded?format=none");
    await near.next("hello");
    const path = "/live/flooded?format=none&role=listener";
    await using quiet = await TestClient.connect(nodes.two.gateway, path);
    await quiet.next("hello");
    const connected = Array.from({ length: 40 }, () => TestClient.connect(nodes.two.gateway, path));
    const flooding = await Promise.all(connected);
    await Promise.all(flooding.map((client) => client.next("hello")));
    const longest = JSON.stringify(speak("x".repeat(250_000)));
    for (let round = 0; round < 12; round += 1) for (const client of flooding) client.send(longest);
    quiet.send({ type: "ping" });
    await quiet.next("pong");
    const isAnswered = (client: TestClient) =>
      client.closed !== null || client.eventsOf("error").length === 12;
    await until("all was handled, or refused", () => flooding.every(isAnswered));
    expect([near.closed, quiet.closed]).toEqual([null, null]);
    for (const client of flooding) client.socket.terminate();
  });
});

describe("a node of another version of the bus", () => {
  it("keeps its sessions: who comes here for one is refused, with a time", async () => {
    await using nodes = await startPair();
    const stranger = nodes.hub.open();
    const incarnation = "another-process";
    const heartbeat = { version: BUS_VERSION + 1, name: "later", incarnation, isLeaving: false };
    stranger.publish("node.heartbeat", Buffer.from(JSON.stringify(heartbeat)));
    await stranger.owners.claim(
      `session.${Buffer.from("theirs").toString("base64url")}`,
      Buffer.from(`later ${incarnation}`),
    );
    await using refused = await TestClient.connect(nodes.one.gateway, "/live/theirs");
    expect(await refused.next("error")).toMatchObject({
      code: "node_version",
      retryable: true,
      retry_after_ms: 5000,
    });
    expect((await refused.untilClosed()).code).toBe(4502);
  });
});

describe("what is lost", () => {
  it("the session's node: its far clients are sent to come back, and open the session at theirs", async () => {
    await using nodes = await startPair();
    const near = await TestClient.connect(nodes.one.gateway, "/live/moves?pace=burst");
    await near.next("hello");
    const far = await TestClient.connect(nodes.two.gateway, "/live/moves?pace=burst");
    const before = await far.next("hello");
    await nodes.one.gateway.close();
    const { code } = await far.untilClosed();
    expect([1001, 4502]).toContain(code);
    await near.untilClosed();
    for (const client of [near, far]) {
      expect(client.eventsOf("error")).toMatchObject([{ code: client.closed?.reason, closing: true }]);
      const [{ retry_after_ms: retryAfterMs } = {}] = client.eventsOf("error");
      expect(retryAfterMs).toBeGreaterThanOrEqual(500);
      expect(retryAfterMs).toBeLessThanOrEqual(1510);
    }
    await using again = await TestClient.connect(nodes.two.gateway, "/live/moves?pace=burst");
    expect((await again.next("hello")).epoch).not.toBe(before.epoch);
    again.send(speak());
    await again.next("utterance.done");
  });

  it("the way to the session's node: each far client hears when to come back, and no two at once", async () => {
    await using nodes = await startPair();
    const near = await TestClient.connect(nodes.one.gateway, "/live/way?pace=burst");
    await near.next("hello");
    const far: TestClient[] = [];
    for (let count = 0; count < 3; count += 1) {
      far.push(await TestClient.connect(nodes.two.gateway, "/live/way?role=listener"));
      await far.at(-1)?.next("hello");
    }
    nodes.one.bus.cut();
    for (const client of far) expect((await client.untilClosed()).reason).toBe("bus_lost");
    expect(far.map((client) => client.eventsOf("error"))).toMatchObject(
      [500, 501, 502].map((retry_after_ms) => [
        { code: "bus_lost", retryable: true, closing: true, retry_after_ms },
      ]),
    );
    near.socket.terminate();
  });

  it("the bus: sessions here go on, new ones are refused with a time, and it heals by itself", async () => {
    await using nodes = await startPair();
    await using near = await TestClient.connect(nodes.one.gateway, "/live/here?pace=burst");
    await near.next("hello");
    nodes.one.bus.cut();
    near.send(speak());
    await near.next("utterance.done");
    await using refused = await TestClient.connect(nodes.one.gateway, "/live/new-one");
    expect(await refused.next("error")).toMatchObject({ code: "bus_lost", retry_after_ms: 1000 });
    nodes.one.bus.heal();
    await using taken = await TestClient.connect(nodes.one.gateway, "/live/new-one");
    await taken.next("hello");
    await using far = await TestClient.connect(nodes.two.gateway, "/live/here?role=listener");
    await far.next("hello");
  });

  it("the way between two nodes that both live: each client hears one voice, and the older owner ends when they meet", async () => {
    await using nodes = await startPair();
    const { one, two, hub } = nodes;
    const heard = await heartbeatsOf(hub);
    await until("they know one another", () => heard.size === 2);
    await using old = await TestClient.connect(one.gateway, "/live/split?format=ulaw_8000&lead_ms=100");
    const before = await old.next("hello");
    one.bus.cut();
    old.send(speak("One two three four five six seven. ".repeat(40)));
    let taken: TestClient | null = null;
    await untilGiven("two takes it over", async () => {
      const client = await TestClient.connect(two.gateway, "/live/split?pace=burst");
      await client.until(() => client.closed !== null || client.eventsOf("hello").length > 0);
      if (client.closed === null) taken = client;
      return taken !== null;
    });
    const current = taken as TestClient | null;
    if (current === null) throw new Error("Not taken over");
    const after = current.eventsOf("hello")[0];
    expect(after?.epoch).not.toBe(before.epoch);
    current.send(speak());
    await current.next("utterance.done");
    expect(old.closed).toBeNull();
    one.bus.heal();
    expect((await old.untilClosed()).code).toBe(4502);
    const { code: why, retry_after_ms: retryAfterMs } = old.eventsOf("error").at(-1) ?? {};
    expect(why).toBe("bus_lost");
    expect(retryAfterMs).toBeGreaterThanOrEqual(200);
    expect(retryAfterMs).toBeLessThanOrEqual(1000);
    expect(current.closed).toBeNull();
    await using again = await TestClient.connect(one.gateway, "/live/split?role=listener");
    expect((await again.next("hello")).epoch).toBe(after?.epoch);
    current.socket.terminate();
  });

  it("an owner that nobody has ever heard: its far clients are sent away to try again", async () => {
    await using nodes = await startPair();
    await using near = await TestClient.connect(nodes.one.gateway, "/live/unheard");
    await near.next("hello");
    nodes.one.bus.cut();
    await using far = await TestClient.connect(nodes.two.gateway, "/live/unheard");
    expect((await far.untilClosed()).code).toBe(4502);
  });

  it("a node's name, to another process: it opens no more sessions, and those that it has go on", async () => {
    await using nodes = await startPair();
    const { one, hub } = nodes;
    await using near = await TestClient.connect(one.gateway, "/live/stays?pace=burst");
    await near.next("hello");
    const { name } = one;
    let tries = 0;
    const lease = hub.leases.find(name);
    if (lease === undefined) throw new Error("No lease");
    const thief = hub.open();
    await thief.leases.takeOver(lease, Buffer.from("another-process"));
    await untilGiven("new sessions are refused", async () => {
      tries += 1;
      const client = await TestClient.connect(one.gateway, `/live/new-${tries}`);
      await client.until(() => client.events.length > 0);
      client.socket.terminate();
      return client.eventsOf("error").some(({ code, retryable }) => code === "bus_lost" && retryable);
    });
    near.send(speak());
    await near.next("utterance.done");
  });

  it("a session that ends is forgotten by all nodes", async () => {
    await using nodes = await startPair({ graceMs: 0 });
    const near = await TestClient.connect(nodes.one.gateway, "/live/short");
    await near.next("hello");
    near.socket.close();
    await until("the session ends", () => nodes.one.gateway.counters.sessionsClosed === 1);
    await using far = await TestClient.connect(nodes.two.gateway, "/live/short?role=listener");
    expect(await far.next("error")).toMatchObject({ code: "unknown_session" });
  });
});
