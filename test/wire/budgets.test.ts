/** Budgets of keys and tokens over real sockets: a warning before they end, and an end that is clean. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { AuditLines } from "../helpers/audit-lines.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { SPEAKER, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";

let upstream: FakeUpstream;

beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: 2 }));
});
afterAll(() => upstream[Symbol.asyncDispose]());

function join(gateway: TestGateway, credential: string, session = "s"): Promise<TestClient> {
  return TestClient.connect(gateway, `/live/${session}?format=pcm_8000`, {
    headers: { authorization: `Bearer ${credential}` },
  });
}

const budgetWarnings = (client: TestClient): string[] =>
  client.eventsOf("warning").flatMap(({ code, message }) => (code === "budget_low" ? [message] : []));

test("who spends 80 % of a key's budget is warned once, and what does not fit is refused before it is asked", async () => {
  using keys = new TestKeys({
    server: { grants: { sessions: ["*"], allow: ["open", "speak", "listen"], characters: 50 } },
  });
  const audit = new AuditLines();
  await using gateway = await gatewayAt(upstream.url, { keysFile: keys.path }, { auditLog: audit.log });
  await using client = await join(gateway, keys.key);
  await using other = await join(gateway, keys.key, "other");
  other.send({ type: "speak", text: "1234567890" });
  await other.next("utterance.done");
  client.send({ type: "speak", text: "123456789012345678901234567890" });
  await client.next("utterance.queued");
  client.send({ type: "speak", text: "1234567890" });
  await client.next("utterance.queued", 2);
  const asked = upstream.requests.length;
  client.send({ type: "speak", text: "x" });
  expect((await client.next("error")).code).toBe("budget_exhausted");
  await client.next("utterance.done", 2);
  expect(client.eventsOf("utterance.done").map(({ outcome }) => outcome)).toEqual(["done", "done"]);
  expect(upstream.requests.slice(asked).some(({ text }) => text.includes('"x"'))).toBe(false);
  expect(budgetWarnings(client)).toEqual([
    "Your key has used 40 of its 50 characters: no text is taken once they are used up",
  ]);
  expect(budgetWarnings(other)).toEqual([]);
  expect(audit.lines.filter((line) => line.audit === "budget_low")).toEqual([
    { audit: "budget_low", of: "key server", characters: 40, limit: 50 },
  ]);
});

test("tokens that come over HTTP make the audit line alone", async () => {
  using keys = new TestKeys();
  const audit = new AuditLines();
  await using gateway = await gatewayAt(upstream.url, { keysFile: keys.path }, { auditLog: audit.log });
  await using _opener = await join(gateway, keys.key);
  const token = tokenFor({ ...SPEAKER, characters: 10 }, { claims: { jti: "t1" } });
  const answer = await fetch(`${gateway.url}/live/s/speak`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ text: "123456789" }),
  });
  expect(answer.ok).toBe(true);
  expect(audit.lines.filter((line) => line.audit === "budget_low")).toEqual([
    { audit: "budget_low", of: "token app t1", characters: 9, limit: 10 },
  ]);
});

test("with a budget of zero nothing is asked, and the answer says why", async () => {
  using keys = new TestKeys();
  await using gateway = await gatewayAt(upstream.url, { keysFile: keys.path });
  await using client = await join(gateway, tokenFor({ ...SPEAKER, characters: 0 }));
  const asked = upstream.requests.length;
  client.send({ type: "speak", text: "Hello." });
  expect(await client.next("error")).toMatchObject({
    code: "budget_exhausted",
    message: "Your token may have nothing spoken: its budget is 0 characters",
  });
  expect(upstream.requests.length).toBe(asked);
  expect(budgetWarnings(client)).toEqual([]);
});
