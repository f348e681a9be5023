/** A node dies in the middle of a sentence: another one goes on with it. Gateways that share a bus in memory. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { encodeHeartbeat, HEARTBEATS } from "../../src/cluster/bus/heartbeat.ts";
import { type MemoryBus, MemoryHub } from "../../src/cluster/bus/memory-bus.ts";
import type { Config } from "../../src/config.ts";
import { systemClock } from "../../src/kit/clock.ts";
import type { Logger } from "../../src/kit/log.ts";
import { courseOf } from "../../src/recording/course.ts";
import { replay } from "../../src/recording/player.ts";
import { temporaryFolder } from "../cli/program.ts";
import { heartbeatsOf, startNodes, type TestNodes } from "../helpers/cluster-nodes.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { recordingsIn } from "../helpers/recordings.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { watchedLog } from "../helpers/watched-log.ts";

const TEXT = "One two three four five six seven eight nine ten eleven twelve thirteen fourteen.";
const FRAME_MS = 20;
let upstream: FakeUpstream;
let names = 0;

beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: 40 }));
});
afterAll(async () => {
  await upstream.close();
});

interface TestNode {
  readonly gateway: TestGateway;
  readonly bus: MemoryBus;
}

async function startNode(
  hub: MemoryHub,
  settings: Partial<Config> = {},
  log: Logger = watchedLog,
): Promise<TestNode> {
  const bus = hub.open();
  names += 1;
  const cluster = { nodeName: `node-${names}`, connect: () => Promise.resolve(bus) };
  return { bus, gateway: await gatewayAt(upstream.url, { trimMs: 0, ...settings }, { cluster, log }) };
}

/** Two that know each other: each has told the other of its sessions. */
async function startPair(settings: Partial<Config> = {}, maxMessageBytes?: number) {
  const bounds = maxMessageBytes === undefined ? {} : { maxMessageBytes };
  const hub = new MemoryHub({ clock: systemClock, ...bounds });
  const [one, two] = [await startNode(hub, settings), await startNode(hub, settings)];
  // Silent for so long, a node may be asked whether it is there.
  await new Promise((resolve) => setTimeout(resolve, 3200));
  return {
    one,
    two,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([one.gateway.close(), two.gateway.close()]);
    },
  };
}

const QUERY = "format=ulaw_8000&events=words&lead_ms=200";

/** End of the audio that the client has, ms on the timeline. */
function endMs(client: TestClient): number {
  return (client.eventsOf("hello")[0]?.audio?.start_ms ?? 0) + client.frames.length * FRAME_MS;
}

/** Words that the client has heard: all of their audio has come. */
function heardWords(client: TestClient): string[] {
  const end = endMs(client);
  return client
    .eventsOf("words")
    .flatMap(({ words }) => words)
    .filter((word) => word.end_ms <= end)
    .map((word) => word.text);
}

/** As a client does: with its token, and where it `hasPlace` the end of its audio. */
async function comeBack(
  gateway: TestGateway,
  path: string,
  { client, hasPlace }: { readonly client: TestClient; readonly hasPlace: boolean },
): Promise<TestClient> {
  const token = client.eventsOf("hello")[0]?.resume_token;
  const place = hasPlace ? `&at_ms=${endMs(client)}` : "";
  for (let tries = 0; tries < 40; tries += 1) {
    const again = await TestClient.connect(gateway, `${path}&resume=${token}${place}`);
    await again.until(() => again.events.length > 0 || again.closed !== null);
    if (again.eventsOf("hello").length > 0) return again;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("It never came back");
}

const WORD = (text: string): string => text.replace(/\W/g, "");

describe.concurrent("the session's node dies in the middle of a sentence", () => {
  for (const hasPlace of [true, false]) {
    it(`another goes on with the word that was not heard, ${hasPlace ? "of which the client says where it is" : "as far as the node was told"}`, async () => {
      await using nodes = await startPair();
      const path = `/live/taken-over?${QUERY}&role=listener`;
      const at = "/live/taken-over?role=speaker&format=none";
      await using speaker = await TestClient.connect(nodes.one.gateway, at);
      const before = await speaker.next("hello");
      await using far = await TestClient.connect(nodes.two.gateway, path);
      await far.next("hello");
      speaker.send({ type: "speak", text: TEXT, voice_id: "v", utterance_id: "u1" });
      speaker.send({ type: "mark", name: "said" });
      speaker.send({ type: "speak", text: "And this.", voice_id: "v", utterance_id: "u2" });
      await far.until(() => heardWords(far).length >= 4);
      nodes.one.bus.cut();
      await far.untilClosed();
      const heard = heardWords(far);
      await using again = await comeBack(nodes.two.gateway, path, { client: far, hasPlace });
      const hello = await again.next("hello");
      expect(hello.epoch).not.toBe(before.epoch);
      expect(hello.former_epoch).toBe(before.epoch);
      expect(hello.utterances).toEqual(["u1", "u2"]);
      const next = TEXT.split(" ")[heard.length] ?? "";
      const resumed = await again.next("utterance.resumed");
      expect(resumed).toMatchObject({ utterance_id: "u1", start: TEXT.indexOf(next) });
      const done = await again.next("utterance.done");
      expect(done).toMatchObject({ utterance_id: "u1", outcome: "done" });
      await again.next("utterance.done", 2);
      const all = [...heard, ...heardWords(again)].map(WORD);
      expect(all).toEqual(`${TEXT} And this.`.split(" ").map(WORD));
    });
  }

  it("its speaker goes on with the text that it left open", async () => {
    await using nodes = await startPair();
    const path = `/live/tokens?${QUERY}&role=both`;
    await using opener = await TestClient.connect(nodes.one.gateway, "/live/tokens?role=speaker&format=none");
    await opener.next("hello");
    await using far = await TestClient.connect(nodes.two.gateway, path);
    await far.next("hello");
    far.send({ type: "text", text: "One two three four. ", voice_id: "v", utterance_id: "u1" });
    far.send({ type: "text", text: "Five six" });
    await far.until(() => heardWords(far).length >= 2);
    nodes.one.bus.cut();
    await far.untilClosed();
    const heard = heardWords(far);
    await using again = await comeBack(nodes.two.gateway, path, { client: far, hasPlace: true });
    // Without an id: the text is this connection's.
    again.send({ type: "text", text: " seven eight." });
    again.send({ type: "end" });
    const done = await again.next("utterance.done");
    expect(done).toMatchObject({ utterance_id: "u1", outcome: "done" });
    expect([...heard, ...heardWords(again)].map(WORD)).toEqual([
      "One",
      "two",
      "three",
      "four",
      "Five",
      "six",
      "seven",
      "eight",
    ]);
  });

  it("its speaker is told how much of its text came, and sends the rest", async () => {
    await using nodes = await startPair();
    const path = `/live/told-texts?${QUERY}&role=both`;
    await using opener = await TestClient.connect(
      nodes.one.gateway,
      "/live/told-texts?role=speaker&format=none",
    );
    await opener.next("hello");
    await using far = await TestClient.connect(nodes.two.gateway, path);
    await far.next("hello");
    const text = "One two three four. Five six seven eight.";
    far.send({ type: "text", text: text.slice(0, 27), voice_id: "v", utterance_id: "u1" });
    await far.until(() => heardWords(far).length >= 2);
    nodes.one.bus.cut();
    // It reaches nobody.
    far.send({ type: "text", text: text.slice(27), utterance_id: "u1" });
    await far.untilClosed();
    const heard = heardWords(far);
    await using again = await comeBack(nodes.two.gateway, path, { client: far, hasPlace: true });
    const { texts } = await again.next("hello");
    expect(texts).toEqual([{ utterance_id: "u1", text_received: 27, ended: false }]);
    again.send({ type: "text", text: text.slice(20), utterance_id: "u1", offset: 20 });
    again.send({ type: "text", text: "More.", utterance_id: "lost", offset: 5 });
    again.send({ type: "end", utterance_id: "u1" });
    expect(await again.next("error")).toMatchObject({ code: "text_missing", utterance_id: "lost" });
    await again.next("utterance.done");
    expect([...heard, ...heardWords(again)].map(WORD)).toEqual(text.split(" ").map(WORD));
  });

  it("an interruption there counts what was heard here", async () => {
    await using nodes = await startPair();
    const path = `/live/cut-later?${QUERY}&role=both`;
    await using opener = await TestClient.connect(
      nodes.one.gateway,
      "/live/cut-later?role=speaker&format=none",
    );
    await opener.next("hello");
    await using far = await TestClient.connect(nodes.two.gateway, path);
    await far.next("hello");
    far.send({ type: "speak", text: TEXT, voice_id: "v", utterance_id: "u1" });
    await far.until(() => heardWords(far).length >= 4);
    nodes.one.bus.cut();
    await far.untilClosed();
    const heard = heardWords(far);
    await using again = await comeBack(nodes.two.gateway, path, { client: far, hasPlace: true });
    await again.until(() => heardWords(again).length >= 3);
    again.send({ type: "interrupt" });
    const cut = await again.next("interrupted");
    const words = cut.heard.text.split(" ");
    expect(words.length).toBeGreaterThanOrEqual(heard.length + 1);
    expect(TEXT.startsWith(cut.heard.text)).toBe(true);
    expect(cut.heard.ms).toBeGreaterThan(heard.length * 150);
    expect(`${cut.heard.text}${cut.unheard_text}`).toBe(TEXT);
  });
});

describe.concurrent("the session's node is cut off from the others in the middle of a sentence", () => {
  it("one of their clients that comes to it is sent back, and hears each word once", async () => {
    await using nodes = await startPair();
    const path = `/live/cut-off?${QUERY}&role=listener`;
    const at = "/live/cut-off?role=speaker&format=none";
    await using speaker = await TestClient.connect(nodes.one.gateway, at);
    await speaker.next("hello");
    await using far = await TestClient.connect(nodes.two.gateway, path);
    const { resume_token: token } = await far.next("hello");
    await using near = await TestClient.connect(nodes.one.gateway, path);
    const { resume_token: nearToken } = await near.next("hello");
    speaker.send({ type: "speak", text: TEXT, voice_id: "v" });
    await far.until(() => heardWords(far).length >= 4);
    nodes.one.bus.cut();
    await far.untilClosed();
    await using refused = await TestClient.connect(nodes.one.gateway, `${path}&resume=${token}`);
    expect(await refused.next("error")).toMatchObject({
      code: "bus_lost",
      retry_after_ms: expect.any(Number),
    });
    await refused.untilClosed();
    near.socket.terminate();
    await using nearAgain = await TestClient.connect(nodes.one.gateway, `${path}&resume=${nearToken}`);
    expect((await nearAgain.next("hello")).resumed).toBe(true);
    const heard = heardWords(far);
    await using again = await comeBack(nodes.two.gateway, path, { client: far, hasPlace: true });
    await again.next("utterance.done");
    expect([...heard, ...heardWords(again)].map(WORD)).toEqual(TEXT.split(" ").map(WORD));
    nodes.one.bus.heal();
    await nearAgain.untilClosed();
    // Whoever comes now is brought to where the session is.
    await using brought = await TestClient.connect(nodes.one.gateway, `${path}&resume=${token}`);
    expect((await brought.next("hello")).former_epoch).toBe(again.eventsOf("hello")[0]?.former_epoch);
  });
});

describe.concurrent("a session that goes on at another node", () => {
  it("is logged and taken over once, however often its node is said to be gone", async () => {
    const hub = new MemoryHub({ clock: systemClock });
    const lines: object[] = [];
    const warn = (fields: object, message: string): void => {
      if (message === "A node is gone: its sessions go on") lines.push(fields);
    };
    const heard = await heartbeatsOf(hub);
    const one = await startNode(hub);
    const two = await startNode(hub, {}, { ...watchedLog, warn });
    const buddyOfOne = () => [...heard.values()][0]?.facts.buddy;
    await until("one tells two of its sessions", () => typeof buddyOfOne() === "string");
    await using client = await TestClient.connect(one.gateway, "/live/said-twice?format=none");
    await client.next("hello");
    const figures = async () => (await fetch(`${two.gateway.opsUrl}/metrics`)).text();
    await expect.poll(figures, { timeout: 10_000 }).toContain("voicewire_cluster_sessions_kept 1\n");
    const [said] = heard.values();
    if (said === undefined) throw new Error("No heartbeat of one");
    const other = hub.open();
    one.bus.cut();
    hub.leases.delete(said.name);
    for (let times = 0; times < 2; times += 1) {
      other.publish(HEARTBEATS, encodeHeartbeat({ ...said, isLeaving: true }));
    }
    await until("it goes on", () => two.gateway.counters.sessionsOpened === 1);
    expect(lines).toEqual([{ sessions: 1 }]);
    await Promise.all([one.gateway.close(), two.gateway.close()]);
  });

  it("was asked for by two owners: the ledger has each request with its owner's epoch", async () => {
    using folder = temporaryFolder();
    const ledger = folder.file("usage.jsonl");
    const epochs: string[] = [];
    {
      await using nodes = await startPair({ ledger });
      const path = `/live/billed?${QUERY}`;
      const speaker = await TestClient.connect(nodes.one.gateway, "/live/billed?role=speaker&format=none");
      epochs.push((await speaker.next("hello")).epoch);
      await using far = await TestClient.connect(nodes.two.gateway, path);
      await far.next("hello");
      speaker.send({ type: "speak", text: TEXT, voice_id: "v", utterance_id: "u1" });
      await far.until(() => heardWords(far).length >= 4);
      nodes.one.bus.cut();
      await far.untilClosed();
      await using again = await comeBack(nodes.two.gateway, path, { client: far, hasPlace: true });
      epochs.push((await again.next("hello")).epoch);
      await again.next("utterance.done");
    }
    type Line = { readonly type: string; readonly utterance: string; readonly epoch: string };
    const lines = readFileSync(ledger, "utf8").trim().split("\n");
    const asked = lines.map((line): Line => JSON.parse(line)).filter(({ type }) => type === "request");
    expect(new Set(asked.map(({ utterance, epoch }) => `${utterance} ${epoch}`))).toEqual(
      new Set(epochs.map((epoch) => `u1 ${epoch}`)),
    );
    expect(new Set(epochs).size).toBe(2);
  });

  it("is recorded at both, and each recording runs again with the same bytes", async () => {
    using folder = temporaryFolder();
    const record = folder.file("recordings");
    {
      await using nodes = await startPair({ record });
      const path = `/live/recorded?${QUERY}&role=both`;
      const at = "/live/recorded?role=speaker&format=none";
      await using opener = await TestClient.connect(nodes.one.gateway, at);
      await opener.next("hello");
      await using far = await TestClient.connect(nodes.two.gateway, path);
      await far.next("hello");
      far.send({ type: "speak", text: TEXT, voice_id: "v", utterance_id: "u1" });
      far.send({ type: "mark", name: "said" });
      far.send({ type: "text", text: "Five six ", voice_id: "v", utterance_id: "u2" });
      await far.until(() => heardWords(far).length >= 4);
      nodes.one.bus.cut();
      await far.untilClosed();
      await using again = await comeBack(nodes.two.gateway, path, { client: far, hasPlace: true });
      again.send({ type: "text", text: "seven eight.", utterance_id: "u2" });
      again.send({ type: "end", utterance_id: "u2" });
      await again.next("utterance.done", 2);
    }
    const recordings = recordingsIn(record);
    const areTaken = recordings.map(({ entries }) => entries.some(({ name }) => name === "restore"));
    expect(areTaken.sort()).toEqual([false, true]);
    const goesOn = recordings.flatMap((recording) =>
      courseOf(recording).happenings.filter(({ what }) => what.startsWith("goes on here")),
    );
    expect(goesOn).toMatchObject([{ kind: "event", atMs: expect.any(Number) }]);
    for (const recording of recordings) {
      const replayed = replay(recording);
      expect(replayed).toMatchObject({ difference: null, entries: recording.entries.length });
      expect(replayed.messages).toBeGreaterThan(20);
    }
  });
});

describe.concurrent("a node drains", () => {
  it("gives its sessions away: an idle one at once, one that speaks at the end of its utterance", async () => {
    await using nodes = await startPair({ drainMs: 20_000 });
    const path = `/live/moves?${QUERY}&role=both`;
    const idlePath = "/live/idle?role=both&format=none";
    await using idle = await TestClient.connect(nodes.one.gateway, idlePath);
    await using client = await TestClient.connect(nodes.one.gateway, path);
    const before = await client.next("hello");
    for (const text of ["One two three four.", "Five six.", "Seven eight."]) {
      client.send({ type: "speak", text, voice_id: "v" });
    }
    await client.until(() => heardWords(client).length >= 2);
    const drained = nodes.one.gateway.drain();
    expect(await idle.untilClosed()).toMatchObject({ code: 4502, reason: "bus_lost" });
    expect(client.eventsOf("utterance.done")).toEqual([]);
    await client.untilClosed();
    expect(client.eventsOf("utterance.done").length).toBe(1);
    const heard = heardWords(client);
    await using again = await comeBack(nodes.two.gateway, path, { client, hasPlace: true });
    expect(await again.next("hello")).toMatchObject({ former_epoch: before.epoch });
    await again.next("utterance.done", 2);
    expect([...heard, ...heardWords(again)].map(WORD)).toEqual([
      "One",
      "two",
      "three",
      "four",
      "Five",
      "six",
      "Seven",
      "eight",
    ]);
    await drained;
  });

  /** Node one is drained in the middle of an utterance, which may not end there: each word is heard once all the same. */
  async function hearThrough(nodes: Awaited<ReturnType<typeof startPair>>, path: string): Promise<void> {
    await using client = await TestClient.connect(nodes.one.gateway, path);
    await client.next("hello");
    client.send({ type: "speak", text: TEXT, voice_id: "v" });
    await client.until(() => heardWords(client).length >= 2);
    await nodes.one.gateway.drain();
    await client.untilClosed();
    const heard = heardWords(client);
    expect(heard.length).toBeLessThan(10);
    await using again = await comeBack(nodes.two.gateway, path, { client, hasPlace: true });
    await again.next("utterance.done");
    expect([...heard, ...heardWords(again)].map(WORD)).toEqual(TEXT.split(" ").map(WORD));
  }

  it("in the middle of an utterance that is longer than it may wait", async () => {
    await using nodes = await startPair({ drainMs: 300 });
    await hearThrough(nodes, `/live/long?${QUERY}&role=both`);
  });

  it("though its buddy's store is slow", async () => {
    await using nodes = await startPair({ drainMs: 300 });
    const { owners } = nodes.two.bus;
    const takeOver = owners.takeOver.bind(owners);
    owners.takeOver = async (...asked) => {
      await new Promise((resolve) => setTimeout(resolve, 2500));
      return takeOver(...asked);
    };
    await hearThrough(nodes, `/live/slow?${QUERY}&role=both`);
  });

  it("and who comes for a session that is on its way to its buddy takes none of its speech", async () => {
    await using nodes = await startPair({ drainMs: 300 });
    const path = `/live/on-its-way?${QUERY}&role=both`;
    await using client = await TestClient.connect(nodes.one.gateway, path);
    const before = await client.next("hello");
    client.send({ type: "speak", text: TEXT, voice_id: "v" });
    await client.until(() => heardWords(client).length >= 2);
    const { bus } = nodes.one;
    const request = bus.request.bind(bus);
    let letGo = (): void => undefined;
    const mayGo = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    bus.request = async (...asked) => {
      if (asked[0].startsWith("hand-over.")) await mayGo;
      return request(...asked);
    };
    const drained = nodes.one.gateway.drain();
    await client.untilClosed();
    await using visitor = await TestClient.connect(nodes.two.gateway, "/live/on-its-way?format=none");
    visitor.send({ type: "ping" });
    // It is asked for at node one, and nobody may have it there.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(visitor.events).toEqual([]);
    letGo();
    await drained;
    await visitor.until(() => visitor.closed !== null || visitor.events.length > 0);
    const heard = heardWords(client);
    await using again = await comeBack(nodes.two.gateway, path, { client, hasPlace: true });
    expect(await again.next("hello")).toMatchObject({ former_epoch: before.epoch });
    await again.next("utterance.done");
    expect([...heard, ...heardWords(again)].map(WORD)).toEqual(TEXT.split(" ").map(WORD));
    visitor.socket.terminate();
  });

  it("and a session with more text than the bus takes at once goes on, as its buddy was told of it", async () => {
    await using nodes = await startPair({ drainMs: 300 }, 16_000);
    const path = `/live/large?${QUERY}&role=both`;
    await using client = await TestClient.connect(nodes.one.gateway, path);
    await client.next("hello");
    const ids = ["u1", "u2", "u3", "u4"];
    const text = `${TEXT} ${"And so on. ".repeat(700)}`;
    for (const utterance_id of ids) client.send({ type: "speak", text, voice_id: "v", utterance_id });
    await client.until(() => heardWords(client).length >= 4);
    await nodes.one.gateway.drain();
    await client.untilClosed();
    const heard = heardWords(client);
    await using again = await comeBack(nodes.two.gateway, path, { client, hasPlace: true });
    expect((await again.next("hello")).utterances).toEqual(ids);
    await again.until(() => heardWords(again).length >= 4);
    const all = [...heard, ...heardWords(again)];
    expect(all.map(WORD)).toEqual(text.split(" ").slice(0, all.length).map(WORD));
  });
});

/** A session of the first node, with a listener at one of the others. */
async function startTalk({ nodes, one }: TestNodes, id: number) {
  const { gateway } = nodes[1 + (id % 2)] ?? one;
  const at = `/live/talk-${id}?role=speaker&format=none`;
  const speaker = await TestClient.connect(one.gateway, at);
  await speaker.next("hello");
  const path = `/live/talk-${id}?${QUERY}&role=listener`;
  const far = await TestClient.connect(gateway, path);
  await far.next("hello");
  return { speaker, far, gateway, path };
}

describe("a node that is loaded dies", () => {
  it("and its sessions are shared out over the others, each with its speech", async () => {
    await using nodes = await startNodes(upstream.url, { graceMs: 60_000 }, { count: 3 });
    const heard = await heartbeatsOf(nodes.hub);
    await until("the nodes know one another", () => heard.size === 3);
    const talks = await Promise.all([0, 1, 2, 3, 4, 5].map((id) => startTalk(nodes, id)));
    const idle: TestClient[] = [];
    for (let at = 0; at < 240; at += 20) {
      const ids = Array.from({ length: 20 }, (_, index) => at + index);
      const some = await Promise.all(
        ids.map((id) => TestClient.connect(nodes.one.gateway, `/live/idle-${id}?format=none`)),
      );
      await Promise.all(some.map((client) => client.next("hello")));
      idle.push(...some);
    }
    const opened = (): number[] => nodes.nodes.map(({ gateway }) => gateway.counters.sessionsOpened);
    const before = opened();
    const [ofOne = 0] = before;
    for (const { speaker } of talks) speaker.send({ type: "speak", text: TEXT, voice_id: "v" });
    for (const { far } of talks) await far.until(() => heardWords(far).length >= 2);
    nodes.one.bus.cut();
    const [, two = 0, three = 0] = before;
    const taken = (): [number, number] => [(opened()[1] ?? 0) - two, (opened()[2] ?? 0) - three];
    await until("all have gone on", () => taken()[0] + taken()[1] === ofOne, { deadlineMs: 15_000 });
    const [atTwo, atThree] = [two + taken()[0], three + taken()[1]];
    // The margin is 50; what is sent within one heartbeat is counted.
    expect(Math.abs(atTwo - atThree), `${before} before, ${opened()} behind`).toBeLessThan(75);
    const heardByAll = await Promise.all(
      talks.map(async ({ far, gateway, path }) => {
        await far.untilClosed();
        const words = heardWords(far);
        await using again = await comeBack(gateway, path, { client: far, hasPlace: true });
        await again.next("utterance.done");
        return [...words, ...heardWords(again)].map(WORD);
      }),
    );
    for (const words of heardByAll) expect(words).toEqual(TEXT.split(" ").map(WORD));
    for (const client of idle) client.socket.terminate();
  }, 60_000);
});
