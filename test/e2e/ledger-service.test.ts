/**
 * The ledger against the `character-cost` headers of the built-in service, to the character, by key and tenant: requests that are
 * made again, cut, failed and answered from the phrase cache, dialogue, and texts of many scripts. Then its exports, twice.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCli } from "../../src/cli/commands.ts";
import { startService } from "../../src/service/service.ts";
import { temporaryFolder } from "../cli/program.ts";
import { TestKeys, tokenFor } from "../helpers/key-file.ts";
import { listening } from "../helpers/listening.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { memoryIo } from "../unit/cli/memory-io.ts";

/** Each is half a character more than it seems, or two code units, or joined of several code points. */
const TEXTS: readonly string[] = [
  "Waves 👋🏽 and smiles 🙂 to all of the family 👩‍👩‍👧.",
  "Grüße aus Köln, und einen schönen Tag!",
  "Здравствуйте, это голосовая служба.",
  "मेरा पार्सल कब आएगा?",
  "こんにちは、荷物は明日届きます。",
  "مرحبا، طردك في الطريق.",
];
const AGAIN = "Thank you for calling. What can I do for you?";

interface Line {
  readonly id: string;
  readonly tenant: string;
  readonly key: string;
  readonly type: string;
  readonly source: string;
  readonly try: number;
  readonly outcome: string;
  readonly cached: boolean;
  readonly chars_billed: number | null;
  readonly request_id: string | null;
}

const folder = temporaryFolder();
const keys = new TestKeys({ server: { tenant: "acme" }, app: { tenant: "lab" } });
const ledger = folder.file("usage.jsonl");
/** What each answer of the service says that it costs, by its request id. */
const costs = new Map<string, number>();
let lines: readonly Line[];

/** Passes requests on to the service, and writes down what its headers say. */
function startCashier(serviceUrl: string) {
  return listening(
    createServer((incoming, outgoing) => {
      const headers = { ...incoming.headers, host: new URL(serviceUrl).host };
      const onward = request(`${serviceUrl}${incoming.url ?? "/"}`, { method: incoming.method, headers });
      onward.on("response", (answer) => {
        const { "request-id": id, "character-cost": cost } = answer.headers;
        if (cost !== undefined) costs.set(String(id), Number(cost));
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.on("error", () => outgoing.destroy());
        answer.pipe(outgoing);
      });
      onward.on("error", () => outgoing.destroy());
      outgoing.on("close", () => onward.destroy());
      incoming.pipe(onward);
    }),
  );
}

async function speak(gateway: TestGateway, credential: string, session: string): Promise<void> {
  await using client = await TestClient.connect(gateway, `/live/${session}?format=pcm_8000&pace=burst`, {
    headers: { authorization: `Bearer ${credential}` },
  });
  let said = 0;
  const say = async (message: object): Promise<void> => {
    said += 1;
    client.send({ type: "speak", utterance_id: `u${said}`, ...message });
    await client.until(() => client.eventsOf("utterance.done").length >= said);
  };
  for (const text of TEXTS) await say({ text: `${text} ${session}` });
  for (let times = 0; times < 2; times += 1) await say({ text: AGAIN });
  await say({
    type: "dialogue",
    inputs: TEXTS.slice(0, 2).map((text) => ({ text: `${session} ${text}`, voice_id: VOICE })),
  });
  // It is cut while it is spoken: what it costs is known by then.
  said += 1;
  client.send({ type: "speak", utterance_id: "cut", text: `${session}. ${AGAIN.repeat(20)}` });
  await client.next("utterance.started", said);
  client.send({ type: "interrupt" });
  await client.until(() => client.eventsOf("utterance.done").length >= said);
}

const VOICE = "21m00Tcm4TlvDq8ikWAM";

beforeAll(async () => {
  const service = await startService({ host: "127.0.0.1", port: 0, warmsUp: false, faults: true });
  const faults = async (body: object): Promise<void> => {
    const answer = await fetch(`${service.url}/service/faults`, {
      method: "PUT",
      body: JSON.stringify(body),
    });
    expect(answer.status).toBe(200);
  };
  try {
    await using cashier = await startCashier(service.url);
    await using gateway = await gatewayAt(cashier.url, {
      ledger,
      keysFile: keys.path,
      voice: VOICE,
      phraseCacheMb: 8,
      // On a busy machine an answer is late: given up before its header came, it would only be counted.
      firstAudioMs: 0,
      upstreamTimeoutMs: 60_000,
    });
    const token = tokenFor({ sessions: ["*"], allow: ["open", "speak", "listen", "interrupt", "proxy"] });
    await Promise.all([speak(gateway, keys.key, "a"), speak(gateway, token, "b")]);
    // Every third is refused, every third breaks off in the middle: they are asked for again, or fail.
    await faults({ faults: [{ kind: "status", status: 503, times: 1000 }], probability: 0.34, seed: 3 });
    await speak(gateway, keys.key, "c");
    await faults({ faults: [{ kind: "reset", after_bytes: 3000 }], probability: 0.5, seed: 5 });
    await speak(gateway, token, "d");
    await faults({ faults: [] });
    const passedOn = await fetch(`${gateway.url}/v1/text-to-speech/${VOICE}`, {
      method: "POST",
      headers: { authorization: `Bearer ${keys.key}`, "content-type": "application/json" },
      body: JSON.stringify({ text: TEXTS.join(" ") }),
    });
    expect((await passedOn.arrayBuffer()).byteLength).toBeGreaterThan(1000);
  } finally {
    await service.close();
  }
  lines = linesOf(readFileSync(ledger, "utf8"));
}, 240_000);
afterAll(() => {
  keys[Symbol.dispose]();
  folder[Symbol.dispose]();
});

function linesOf(text: string): Line[] {
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);
}

async function usage(...argv: string[]): Promise<string> {
  const io = memoryIo(["usage", ...argv], { env: {} });
  const code = await runCli(io);
  expect([code, io.stderr.text]).toEqual([0, ""]);
  return io.stdout.text;
}

describe("a ledger over the built-in service", () => {
  it("has each answer's cost once, and nothing that was not said", () => {
    const told = lines.filter(({ source }) => source === "header");
    expect(told.length).toBeGreaterThan(30);
    expect(new Map(told.map(({ request_id, chars_billed }) => [request_id, chars_billed]))).toEqual(costs);
    expect(told.length).toBe(costs.size);
  });

  it("is of requests that were refused, made again, cut, broken, and answered from the cache", () => {
    const requests = lines.filter(({ type }) => type === "request");
    expect(requests.some((line) => line.source === "refused" && line.chars_billed === 0)).toBe(true);
    expect(requests.some((line) => line.try > 1)).toBe(true);
    expect(requests.some((line) => line.cached)).toBe(true);
    const outcomes = new Set(requests.map(({ outcome }) => outcome));
    expect([...outcomes].sort()).toEqual(["aborted", "done", "upstream_failed", "upstream_truncated"]);
    expect(requests.map(({ source }) => source)).not.toContain("counted");
  });

  it("sums by key and tenant are those of the headers", async () => {
    const rows = (await usage(ledger, "--by", "tenant,key", "--format", "jsonl")).trim().split("\n");
    const sums = rows.map((row) => JSON.parse(row) as { tenant: string; key: string; characters: number });
    const byHeaders = (of: string): number =>
      lines
        .filter(({ tenant }) => tenant === of)
        .reduce((sum, line) => sum + (costs.get(line.request_id ?? "") ?? 0), 0);
    expect(sums.map(({ tenant, key, characters }) => [tenant, key, characters])).toEqual([
      ["acme", "server", byHeaders("acme")],
      ["lab", "app", byHeaders("lab")],
    ]);
    const all = [...costs.values()].reduce((sum, cost) => sum + cost, 0);
    expect(sums.reduce((sum, { characters }) => sum + characters, 0)).toBe(all);
  });

  it.each(["csv", "jsonl", "stripe", "cloudevents"])(
    "exported as %s again, nothing counts twice",
    async (format) => {
      const old = folder.file("old.jsonl");
      // The hour of the test is not over yet.
      writeFileSync(
        old,
        readFileSync(ledger, "utf8").replaceAll(/"at":"[^"]+"/g, '"at":"2026-01-31T12:30:00.000Z"'),
      );
      const once = await usage(old, "--hour", "closed", "--format", format);
      expect(once).toContain("vw_");
      expect(await usage(old, "--hour", "closed", "--format", format)).toBe(once);
      // A copy of the ledger beside it, as of a backup, adds nothing.
      expect(await usage(old, old, "--hour", "closed", "--format", format)).toBe(once);
    },
  );
});
