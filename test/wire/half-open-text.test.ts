/** A line that dies silently while a text comes in tokens: nobody knows which of them arrived, and none is lost or said twice. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import WebSocket from "ws";
import { FaultLink } from "../../bench/chaos/fault-link.ts";
import { type Connection, connect, type WebSocketConstructor } from "../../src/client/index.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";

const QUERY = "format=none&events=words&role=both";
/** One token ends within a character. */
const TOKENS = ["Alpha ", "bravo \ud83d", "\ude00 char", "lie. ", "Delta ", "echo ", "fox", "trot golf."];
const TEXT = TOKENS.join("");
const WORDS = TEXT.split(" ").map((word) => word.replace(/\.$/, ""));

let upstream: FakeUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: 5 }));
  gateway = await gatewayAt(upstream.url);
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

function lengthIn(unit: "utf16" | "cp", text: string): number {
  return unit === "utf16" ? text.length : [...text].length;
}

function wordsOf(client: TestClient): string[] {
  return client.eventsOf("words").flatMap(({ words }) => words.map(({ text }) => text));
}

describe.concurrent("a line that dies after some tokens", () => {
  const places = TOKENS.flatMap((_, index) => [
    { unit: "utf16" as const, count: index + 1 },
    { unit: "cp" as const, count: index + 1 },
  ]);
  it.each(places)(
    "$count of them, in $unit: hello says how much came, and the rest is sent",
    async (place) => {
      const { unit, count } = place;
      const path = `/live/dead-${unit}-${count}?${QUERY}&offsets=${unit}`;
      await using watcher = await TestClient.connect(gateway, path);
      const dead = await TestClient.connect(gateway, path);
      const { resume_token } = await dead.next("hello");
      for (const text of TOKENS.slice(0, count))
        dead.send({ type: "text", text, utterance_id: "u", voice_id: "v" });
      dead.send({ type: "ping", id: 1 });
      await dead.next("pong");
      // The gateway sees no end of it: its socket stands.
      await using back = await TestClient.connect(gateway, `${path}&resume=${resume_token}`);
      const { texts } = await back.next("hello");
      const came = TOKENS.slice(0, count).join("");
      // In code points, half a character is not there yet.
      const received = unit === "cp" ? came.replace(/\ud83d$/, "") : came;
      expect(texts).toEqual([{ utterance_id: "u", text_received: lengthIn(unit, received), ended: false }]);
      // All of it again, in one piece that begins somewhere before.
      const from = TOKENS.slice(0, Math.min(count, 1)).join("").length;
      back.send({ type: "text", text: TEXT.slice(from), utterance_id: "u", offset: from });
      // What was on its way comes late.
      dead.send({ type: "text", text: TOKENS[count - 1], utterance_id: "u", offset: 0, voice_id: "v" });
      back.send({ type: "end", utterance_id: "u" });
      const done = await watcher.next("utterance.done");
      expect(done).toMatchObject({ outcome: "done", characters_spoken: TEXT.length });
      expect(wordsOf(watcher)).toEqual(WORDS);
      expect(back.eventsOf("error")).toEqual([]);
      dead.socket.terminate();
    },
  );
});

describe("a token that says where it begins", () => {
  it("behind a hole is refused with what has come, and the text goes on from there", async () => {
    await using client = await TestClient.connect(gateway, `/live/hole?${QUERY}`);
    client.send({ type: "text", text: "Alpha ", utterance_id: "u", voice_id: "v", offset: 0 });
    client.send({ type: "text", text: "charlie.", utterance_id: "u", offset: 12 });
    client.send({ type: "text", text: "Nothing.", utterance_id: "w", offset: 3 });
    expect(await client.next("error")).toMatchObject({
      code: "text_missing",
      utterance_id: "u",
      field: "offset",
      message: "Text before offset 12 has not come: expected an offset of 6 at most",
    });
    expect(await client.next("error", 2)).toMatchObject({ code: "text_missing", utterance_id: "w" });
    client.send({ type: "text", text: "bravo charlie.", utterance_id: "u", offset: 6 });
    client.send({ type: "end", utterance_id: "u" });
    await client.next("utterance.done");
    expect(wordsOf(client)).toEqual(["Alpha", "bravo", "charlie"]);
  });

  it("may come again behind the end; more than came is refused", async () => {
    await using client = await TestClient.connect(gateway, `/live/again?${QUERY}`);
    client.send({ type: "text", text: `${"Long ".repeat(40)}end.`, utterance_id: "u", voice_id: "v" });
    client.send({ type: "end", utterance_id: "u" });
    client.send({ type: "text", text: "Long ", utterance_id: "u", offset: 195 });
    client.send({ type: "text", text: "end. More.", utterance_id: "u", offset: 200 });
    expect(await client.next("error")).toMatchObject({ code: "text_after_end" });
    client.send({ type: "ping", id: 1 });
    await client.next("pong");
    expect(client.eventsOf("error").length).toBe(1);
  });

  it("counts half a character that was left out, as its client does", async () => {
    await using client = await TestClient.connect(gateway, `/live/left-out?${QUERY}`);
    client.send({ type: "text", text: "Alpha \ud83d", utterance_id: "u", voice_id: "v", offset: 0 });
    client.send({ type: "text", text: "bravo.", utterance_id: "u", offset: 7 });
    client.send({ type: "text", text: "vo. Charlie.", utterance_id: "u", offset: 10 });
    client.send({ type: "end", utterance_id: "u" });
    await client.next("utterance.done");
    expect(wordsOf(client)).toEqual(["Alpha", "bravo", "Charlie"]);
  });
});

it("hello tells of texts whose end came, and of none of another's", async () => {
  const path = `/live/ended?${QUERY}`;
  await using watcher = await TestClient.connect(gateway, path);
  const dead = await TestClient.connect(gateway, path);
  const { resume_token } = await dead.next("hello");
  dead.send({ type: "text", text: "Alpha ".repeat(30), utterance_id: "u", voice_id: "v" });
  dead.send({ type: "end", utterance_id: "u" });
  dead.send({ type: "speak", text: "Bravo.", utterance_id: "whole", voice_id: "v" });
  await dead.next("utterance.queued", 2);
  await using back = await TestClient.connect(gateway, `${path}&resume=${resume_token}`);
  expect((await back.next("hello")).texts).toEqual([{ utterance_id: "u", text_received: 180, ended: true }]);
  await using listener = await TestClient.connect(gateway, `/live/ended?role=listener&format=none`);
  expect((await listener.next("hello")).texts).toBeUndefined();
  // A whole text under its own id is safe to repeat.
  back.send({ type: "speak", text: "Bravo.", utterance_id: "whole", voice_id: "v" });
  expect(await back.next("error")).toMatchObject({ code: "utterance_id_taken", utterance_id: "whole" });
  await watcher.next("utterance.done", 2);
  expect(wordsOf(watcher).filter((word) => word === "Bravo").length).toBe(1);
  dead.socket.terminate();
});

describe.concurrent("the client, over a line that falls silent and breaks later", () => {
  const words = Array.from({ length: 60 }, (_, index) => `word${index}`);
  const tokens = words.flatMap((word) => [
    word.slice(0, 3),
    `${word.slice(3)}${word.endsWith("9") ? ". " : " "}`,
  ]);

  async function stream(connection: Connection, named: boolean): Promise<void> {
    const id = named ? { utterance_id: "u" } : {};
    for (const [index, token] of tokens.entries()) {
      if (!connection.text(token, index === 0 ? { ...id, voice_id: "v" } : id))
        await connection.ready(id.utterance_id);
      if (index === 71) connection.flush(id.utterance_id);
      await new Promise((resolve) => setTimeout(resolve, 8));
    }
    connection.end(id.utterance_id);
  }

  // From within hello to the end of the text; two lines die, one after the other.
  const runs = [1400, 1700, 1900, 2200, 2600, 3000, 3600].map((afterBytes, index) => ({
    afterBytes,
    named: index % 2 === 0,
    offsets: index % 3 === 0 ? ("cp" as const) : ("utf16" as const),
  }));
  it.each(runs)("after $afterBytes bytes: says each word once", async ({ afterBytes, named, offsets }) => {
    let hits = 2;
    const struck: string[] = [];
    await using link = await FaultLink.open({
      targetPort: gateway.port,
      marker: /GET \/live\/([\w-]+)/,
      faultOf: () => {
        hits -= 1;
        return hits < 0 ? null : { kind: "half-open", afterBytes, ms: 250 };
      },
      onStruck: (session) => struck.push(session),
      bytesPerSecond: null,
    });
    await using watcher = await TestClient.connect(gateway, `/live/silent-${afterBytes}?${QUERY}`);
    const connection = await connect({
      baseUrl: `http://127.0.0.1:${link.port}`,
      session: `silent-${afterBytes}`,
      settings: { format: "none", events: ["words", "presence"], role: "both", offsets },
      WebSocket: WebSocket as unknown as WebSocketConstructor,
      reconnect: { firstDelayMs: 20, maxDelayMs: 50 },
    });
    const errors: string[] = [];
    connection.on("error", ({ code, message }) => errors.push(`${code}: ${message}`));
    await stream(connection, named);
    const done = await watcher.next("utterance.done");
    expect(struck.length).toBeGreaterThan(0);
    expect(errors).toEqual([]);
    expect(done.outcome).toBe("done");
    expect(wordsOf(watcher)).toEqual(words);
    await connection.close();
  });
});
