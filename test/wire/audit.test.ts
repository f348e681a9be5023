/** Which lines the audit log gets of commands that somebody may not send, over real sockets and requests. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { AuditLines } from "../helpers/audit-lines.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { LISTENER, SPEAKER, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";

const keys = new TestKeys({ server: { grants: { sessions: ["*"], allow: ["admin"] } } });
let upstream: FakeUpstream;
let audit: AuditLines;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: 5 }));
});

afterAll(async () => {
  await upstream[Symbol.asyncDispose]();
  keys[Symbol.dispose]();
});

// One for each test: a gateway writes no more than ten refusals a second.
beforeEach(async () => {
  audit = new AuditLines();
  gateway = await gatewayAt(upstream.url, { keysFile: keys.path, opsPort: 0 }, { auditLog: audit.log });
});

afterEach(() => gateway.close());

function bearer(token: string) {
  return { authorization: `Bearer ${token}` };
}

async function join(path: string, grants: object): Promise<TestClient> {
  const token = tokenFor(grants, { claims: { jti: "id-1" } });
  const client = await TestClient.connect(gateway, path, { headers: bearer(token) });
  await client.until(() => client.messages.length > 0);
  return client;
}

/** Of a command over a socket. */
const refusal = {
  audit: "refused",
  reason: "forbidden",
  surface: "/live/:session",
  address: "127.0.0.1",
  session: expect.stringMatching(/^[\w-]{16}$/) as unknown,
  key: "app",
  subject: "ann",
  token: "id-1",
};

describe("a command that its sender may not send", () => {
  it.each([
    ["of a listener that would speak", LISTENER, { type: "speak", text: "Private words." }],
    ["of a listener that would interrupt", LISTENER, { type: "interrupt" }],
    ["with a foreign voice", { ...SPEAKER, voices: ["mine"] }, { type: "speak", text: "Hi.", voice_id: "b" }],
    ["with a foreign model", { ...SPEAKER, models: ["mine"] }, { type: "speak", text: "Hi.", model_id: "b" }],
    ["with a foreign format", { ...SPEAKER, formats: ["none"] }, { type: "configure", format: "pcm_24000" }],
  ])("%s is one line, with the command and without its text", async (_name, grants, command) => {
    await using speaker = await join("/live/talk?format=none", SPEAKER);
    await using client = await join(
      `/live/talk?format=${grants === LISTENER ? "ulaw_8000" : "none"}`,
      grants,
    );
    client.send(command);
    expect((await client.next("error")).code).toBe("forbidden");
    expect(audit.refused).toEqual([{ ...refusal, command: command.type }]);
    expect(JSON.stringify(audit.lines)).not.toMatch(/Private|talk/);
    expect(speaker.closed).toBeNull();
  });

  it("that comes again and again is one line, and one more at the end of the connection", async () => {
    await using speaker = await join("/live/again?format=none", SPEAKER);
    const client = await join("/live/again?format=ulaw_8000", LISTENER);
    for (let count = 0; count < 5; count += 1) client.send({ type: "speak", text: "Hi." });
    client.send({ type: "interrupt" });
    await client.next("error", 6);
    const lines = [
      { ...refusal, command: "speak" },
      { ...refusal, command: "interrupt" },
    ];
    expect(audit.refused).toEqual(lines);
    await client[Symbol.asyncDispose]();
    await until("the line at its end", () => audit.refused.length > 2);
    expect(audit.refused).toEqual([...lines, { ...refusal, command: "speak", again: 4 }]);
    expect(speaker.closed).toBeNull();
  });

  it("is counted each time in the figures of what was refused", async () => {
    await using client = await join("/live/s?format=none", { ...SPEAKER, voices: ["mine"] });
    for (let count = 0; count < 5; count += 1) client.send({ type: "speak", text: "Hi.", voice_id: "b" });
    await client.next("error", 5);
    const metrics = await (await fetch(`${gateway.opsUrl}/metrics`, { headers: bearer(keys.key) })).text();
    expect(metrics).toContain('voicewire_refused_total{reason="forbidden"} 5');
  });

  it.each([
    ["a format", "?format=ulaw_8000&role=both", { ...SPEAKER, formats: ["pcm_24000"] }, "forbidden"],
    ["a role", "?format=ulaw_8000&role=both", LISTENER, "forbidden"],
  ])("by joining with %s that it may not have is one line", async (_name, query, grants, code) => {
    await using client = await join(`/live/joining${query}`, grants);
    expect(await client.untilClosed()).toMatchObject({ reason: code });
    expect(audit.refused).toEqual([{ ...refusal, reason: code }]);
  });

  it.each([
    ["speaks without the grant", LISTENER, {}],
    ["has a foreign voice", { ...SPEAKER, voices: ["mine"] }, { voice_id: "b" }],
    ["has a foreign model", { ...SPEAKER, models: ["mine"] }, { model_id: "b" }],
    ["is for another session", { ...SPEAKER, sessions: ["other"] }, {}],
  ])("by POST that %s is one line", async (_name, grants, fields) => {
    await using speaker = await join("/live/http?format=none", SPEAKER);
    const answer = await fetch(`${gateway.url}/live/http/speak`, {
      method: "POST",
      headers: {
        ...bearer(tokenFor(grants, { claims: { jti: "id-1" } })),
        "content-type": "application/json",
      },
      body: JSON.stringify({ text: "Private words.", ...fields }),
    });
    expect(answer.status).toBe(403);
    expect(audit.refused).toEqual([{ ...refusal, surface: "/live/:session/speak" }]);
    expect(JSON.stringify(audit.lines)).not.toContain("Private");
    expect(speaker.closed).toBeNull();
  });
});
