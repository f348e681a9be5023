/**
 * The ledger of a whole gateway against what its upstream has billed: hundreds of utterances, interrupted ones, requests
 * that are made again, and an upstream that is killed. `voicewire usage` and the upstream's headers say the same number.
 */
import { readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { runCli } from "../../src/cli/commands.ts";
import { temporaryFolder } from "../cli/program.ts";
import {
  type FakeRequest,
  type FakeScript,
  isTimed,
  refusal,
  speaking,
  speechAnswer,
  speechFor,
  startFakeUpstream,
} from "../helpers/fake-upstream.ts";
import { TestKeys } from "../helpers/key-file.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { SPEECHIFY_BILLED, SPEECHIFY_KEY, SPEECHIFY_VOICE, speechify } from "../kit/vendors/speechify.ts";
import { memoryIo } from "../unit/cli/memory-io.ts";
import { configOf } from "../upstream/services/rig.ts";

vi.setConfig({ testTimeout: 120_000 });

type Line = Readonly<Record<string, string | number | boolean | null>>;

function linesIn(path: string): Line[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

async function usage(...argv: string[]) {
  const io = memoryIo(["usage", ...argv], { env: {} });
  const code = await runCli(io);
  return { code, out: io.stdout.text, err: io.stderr.text };
}

const isSpeech = ({ method, path }: FakeRequest): boolean =>
  method === "POST" && path.includes("text-to-speech");

/** Bills half of each text, so that what was counted would be another number. */
class Billing {
  billed = 0;
  requests = 0;

  script(react: (index: number, request: FakeRequest) => "speak" | "refuse" | "break" | "stall"): FakeScript {
    return (request, index) => {
      if (!isSpeech(request)) return speaking()(request, index);
      const speech = speechFor(request, { msPerChar: 4 });
      const how = react(this.requests++, request);
      if (how === "refuse") return refusal(503, "busy");
      const half = Math.ceil(speech.text.length / 2);
      this.billed += half;
      const tail = how === "speak" ? [] : ([how === "break" ? "reset" : "stall"] as const);
      const answer = speechAnswer(speech, { isTimed: isTimed(request), tail });
      return { ...answer, headers: { ...answer.headers, "character-cost": String(half) } };
    };
  }
}

test("usage is what the upstream has billed, to the character", async () => {
  using folder = temporaryFolder();
  const path = folder.file("usage.jsonl");
  const billing = new Billing();
  const react = (index: number) => (index % 11 === 3 ? "refuse" : index % 13 === 5 ? "break" : "speak");
  const upstream = await startFakeUpstream(billing.script(react));
  const gateway = await gatewayAt(upstream.url, { ledger: path, trimMs: 0 });
  const talk = async (session: number): Promise<void> => {
    await using client = await TestClient.connect(gateway, `/live/s${session}?format=pcm_8000`);
    for (let count = 1; count <= 40; count += 1) {
      const utterance_id = `u${count}`;
      client.send({ type: "speak", utterance_id, text: `Session ${session} says number ${count} now.` });
      await client.next("utterance.started", count);
      if (count % 4 === 0) client.send({ type: "interrupt", utterance_id });
      await client.next("utterance.done", count);
    }
  };
  await Promise.all([1, 2, 3, 4, 5, 6].map(talk));

  // The upstream is killed in the middle of an answer, and comes back.
  upstream.use(billing.script(() => "stall"));
  await using client = await TestClient.connect(gateway, "/live/last?format=pcm_8000");
  client.send({ type: "speak", text: "It is killed in the middle of this." });
  await client.next("utterance.started");
  const { port } = new URL(upstream.url);
  await upstream.close();
  await using again = await startFakeUpstream(
    billing.script(() => "speak"),
    { port: Number(port) },
  );
  await client.next("utterance.done");
  await gateway.close();

  const lines = linesIn(path);
  const requests = lines.filter(({ type }) => type === "request");
  expect(again.requests.length + upstream.requests.length).toBeGreaterThan(240);
  expect(requests.filter(({ source }) => source === "header").length).toBeGreaterThan(240);
  expect(requests.filter(({ source }) => source === "refused").length).toBeGreaterThan(10);
  expect(requests.some((line) => line.try === 2)).toBe(true);
  const heard = lines.filter(({ type }) => type === "heard");
  expect(heard.length).toBe(241);
  expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, index) => index + 1));

  const { code, out, err } = await usage(path, "--format", "jsonl", "--by", "tenant");
  expect([code, err]).toEqual([0, ""]);
  expect(JSON.parse(out)).toMatchObject({
    characters: billing.billed,
    characters_counted: 0,
    requests_unknown: 0,
  });
});

test("each line says who pays: of a key, a token, a request that is passed on, and prepared speech", async () => {
  using folder = temporaryFolder();
  using keys = new TestKeys({ server: { tenant: "acme" } });
  const path = folder.file("usage.jsonl");
  await using upstream = await startFakeUpstream(speaking({ msPerChar: 4 }));
  const gateway = await gatewayAt(upstream.url, { ledger: path, keysFile: keys.path, phraseCacheMb: 1 });
  const headers = { authorization: `Bearer ${keys.key}`, "content-type": "application/json" };
  await using client = await TestClient.connect(gateway, "/live/call?format=pcm_8000", {
    headers,
  });
  for (const [count, utterance_id] of ["first", "second"].entries()) {
    client.send({ type: "speak", utterance_id, text: "Hello 😀." });
    await client.next("utterance.done", count + 1);
  }
  client.send({ type: "prepare", prepared_id: "p", text: "Prepared." });
  await client.next("prepared");
  const passed = await fetch(`${gateway.url}/v1/text-to-speech/tone-a/stream`, {
    method: "POST",
    headers,
    body: JSON.stringify({ text: "Passed on.", model_id: "tone" }),
  });
  await passed.arrayBuffer();
  const listed = await fetch(`${gateway.url}/v1/models`, { headers });
  await listed.arrayBuffer();
  const player = await fetch(`${gateway.url}/v1/audio/speech`, {
    method: "POST",
    headers,
    body: JSON.stringify({ input: "By OpenAI.", voice: "tone-a", model: "tone", response_format: "pcm" }),
  });
  await player.arrayBuffer();
  await gateway.close();

  const lines = linesIn(path);
  expect(lines.every(({ tenant, key, v }) => tenant === "acme" && key === "server" && v === 1)).toBe(true);
  const requests = lines.filter(({ type }) => type === "request");
  const shown = requests.map(({ session, utterance, chars_sent, chars_billed, source, cached }) => [
    session,
    utterance,
    chars_sent,
    chars_billed,
    source,
    cached,
  ]);
  expect(shown).toEqual([
    ["call", "first", 8, 8, "header", false],
    ["call", "second", 8, 0, "cache", true],
    ["call", "p", 9, 9, "header", false],
    ["", "", 10, 10, "header", false],
    ["", "", 10, 10, "header", false],
  ]);
  expect(requests.every(({ request_id, cached }) => cached || request_id === "fake-request")).toBe(true);
  const text = readFileSync(path, "utf8");
  for (const secret of ["Hello", "Prepared.", "Passed", keys.key]) expect(text).not.toContain(secret);
  expect((await usage(path)).out).toMatch(/^tenant {2}key .*\nacme {4}server +37 +0 % +5 +0 +1 /);
});

test("a request whose answer never came is counted by its text, and says so", async () => {
  using folder = temporaryFolder();
  const path = folder.file("usage.jsonl");
  await using upstream = await startFakeUpstream((request, index) =>
    isSpeech(request) ? "silence" : speaking()(request, index),
  );
  const gateway = await gatewayAt(upstream.url, { ledger: path });
  await using client = await TestClient.connect(gateway, "/live/s?format=pcm_8000");
  client.send({ type: "speak", text: "Nobody answers." });
  await client.until(() => upstream.requests.some(isSpeech));
  await gateway.close();
  expect(linesIn(path)).toMatchObject([
    { type: "request", chars_sent: 15, chars_billed: null, source: "counted", outcome: "aborted" },
  ]);
  expect((await usage(path, "--by", "tenant")).out).toMatch(/\n- +15 +100 % +1 /);
});

test("what a service bills stands in its body: utterance, ledger and metric have it, and the phrase cache costs nothing", async () => {
  using folder = temporaryFolder();
  const path = folder.file("usage.jsonl");
  await using first = await startFakeUpstream();
  await using service = await startFakeUpstream(speechify());
  const services = [configOf("speechify", service.url, { key: SPEECHIFY_KEY })];
  const gateway = await gatewayAt(first.url, { ledger: path, phraseCacheMb: 1 }, { services });
  await using client = await TestClient.connect(gateway, "/live/s?format=pcm_24000&pace=burst");
  const billed: (number | null)[] = [];
  for (const count of [1, 2]) {
    client.send({ type: "speak", text: "Hello there.", voice_id: `speechify:${SPEECHIFY_VOICE}` });
    billed.push((await client.next("utterance.done", count)).characters_billed);
  }
  expect(billed).toEqual([SPEECHIFY_BILLED, 0]);
  expect(gateway.counters.characters.billed).toBe(SPEECHIFY_BILLED);
  await gateway.close();
  const requests = linesIn(path).filter(({ type }) => type === "request");
  expect(requests.map(({ chars_billed, source }) => [chars_billed, source])).toEqual([
    [SPEECHIFY_BILLED, "body"],
    [0, "cache"],
  ]);
  expect((await usage(path, "--by", "tenant")).out).toMatch(/\n- +99 +0 % +2 /);
});

test("a ledger that can't be written is refused at the start", async () => {
  await using upstream = await startFakeUpstream();
  await expect(gatewayAt(upstream.url, { ledger: "/proc/nowhere/usage.jsonl" })).rejects.toMatchObject({
    code: "invalid_config",
    field: "ledger",
  });
});
