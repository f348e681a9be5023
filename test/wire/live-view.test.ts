/** `/admin` of the operations port: who may see what, and what it says of a gateway at work. */
import { once } from "node:events";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import WebSocket from "ws";
import type { LiveMessage, LiveView, OpenedSession } from "../../src/protocol/live-view.ts";
import { temporaryFolder } from "../cli/program.ts";
import { AuditLines } from "../helpers/audit-lines.ts";
import { type FakeUpstream, refusal, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { TestKeys, tokenFor } from "../helpers/key-file.ts";
import { knock } from "../helpers/knock.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";

const TEXT = "Private words, which nobody may read who may not hear them. ".repeat(5);
const ADMIN = { sessions: ["*"], allow: ["admin"] };

type Message = LiveMessage | { readonly type: "error"; readonly code: string };

/** A socket of the live view. */
class Watching implements AsyncDisposable {
  readonly messages: Message[] = [];
  closed: { code: number; reason: string } | null = null;
  readonly socket: WebSocket;

  constructor(gateway: TestGateway, { token = "", watch = {} }: { token?: string; watch?: object } = {}) {
    const protocols = ["voicewire.v1", ...(token === "" ? [] : [`voicewire.token.${token}`])];
    this.socket = new WebSocket(`${gateway.opsUrl?.replace("http", "ws")}/admin/live`, protocols);
    this.socket.on("open", () => this.socket.send(JSON.stringify({ type: "watch", ...watch })));
    this.socket.on("message", (data: Buffer) => this.messages.push(JSON.parse(data.toString()) as Message));
    this.socket.on("close", (code, reason) => {
      this.closed = { code, reason: reason.toString() };
    });
    this.socket.on("error", () => undefined);
  }

  get view(): LiveView | undefined {
    return this.messages.findLast((message) => message.type === "view")?.view;
  }
  get opened(): OpenedSession | null | undefined {
    return this.messages.findLast((message) => message.type === "session")?.opened;
  }
  get names(): string[] {
    return this.view?.sessions.rows.map(({ name }) => name) ?? [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.closed !== null) return;
    this.socket.terminate();
    await once(this.socket, "close");
  }
}

let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: 60 }));
});
afterAll(() => upstream.close());

describe("without keys", () => {
  let gateway: TestGateway;
  beforeEach(async () => {
    gateway = await gatewayAt(upstream.url);
  });
  afterEach(() => gateway.close());

  const state = async (query = "") => {
    const answer = await fetch(`${gateway.opsUrl}/admin/state${query}`);
    return {
      status: answer.status,
      body: (await answer.json()) as { view: LiveView; opened?: OpenedSession },
    };
  };

  it("/admin/state says what sessions, upstream and process do", async () => {
    await using client = await TestClient.connect(gateway, "/live/talk?format=ulaw_8000&events=words");
    client.send({ type: "speak", text: TEXT, voice_id: "nora" });
    await client.next("utterance.started");
    const { view } = (await state()).body;
    expect(view.sessions).toMatchObject({
      total: 1,
      matching: 1,
      rows: [{ name: "talk", state: "speaking" }],
    });
    expect(view.nodes).toMatchObject([{ sessions: 1, connections: 1, is_draining: false }]);
    expect(view.nodes[0]?.memory_bytes).toBeGreaterThan(1_000_000);
    expect(view.upstreams).toMatchObject([{ is_healthy: true, requests: 1, errors_last_minute: 0 }]);
    expect([view.budgets, view.other_nodes]).toEqual([[], []]);
  });

  it("/admin/state opens one session, with its listeners and their round trip", async () => {
    await using client = await TestClient.connect(gateway, "/live/talk?format=ulaw_8000&events=words");
    client.send({ type: "speak", text: TEXT, utterance_id: "u" });
    await client.next("words");
    const { opened } = (await state("?session=talk")).body;
    expect(opened).toMatchObject({
      session: { name: "talk" },
      shows_text: true,
      utterances: [{ id: "u", state: "speaking" }],
      listeners: [{ surface: "socket", format: "ulaw_8000", round_trip_ms: expect.any(Number) }],
    });
    expect(opened?.utterances[0]?.words[0]?.text).toBe("Private");
    expect((await state("?session=other")).body.opened).toBeNull();
  });

  it("/admin/state says which query it can't take", async () => {
    expect(await state("?rows=501")).toMatchObject({ status: 400, body: { error: { field: "rows" } } });
    expect(await state("?order=worst")).toMatchObject({ status: 400, body: { error: { field: "order" } } });
  });

  it("says what each listener comes by", async () => {
    await using client = await TestClient.connect(gateway, "/live/talk?format=none");
    const controller = new AbortController();
    const { signal } = controller;
    await fetch(`${gateway.url}/live/talk/audio.wav`, { signal });
    await fetch(`${gateway.url}/live/talk/captions`, { signal });
    const { opened } = (await state("?session=talk")).body;
    expect(opened?.listeners.map(({ surface }) => surface)).toEqual(["socket", "audio", "captions"]);
    controller.abort();
    expect(client.closed).toBeNull();
  });

  it("says of a session that is recorded what it says of others", async () => {
    using folder = temporaryFolder();
    await using recorded = await gatewayAt(upstream.url, { record: folder.file("recordings") });
    await using client = await TestClient.connect(recorded, "/live/talk?format=ulaw_8000&events=words");
    const controller = new AbortController();
    await fetch(`${recorded.url}/live/talk/audio.wav`, { signal: controller.signal });
    client.send({ type: "speak", text: TEXT });
    await client.next("words");
    const answer = await fetch(`${recorded.opsUrl}/admin/state?session=talk`);
    const { opened } = (await answer.json()) as { opened: OpenedSession };
    expect(opened.listeners).toMatchObject([
      { surface: "socket", round_trip_ms: expect.any(Number) },
      { surface: "audio", round_trip_ms: null },
    ]);
    controller.abort();
  });

  it("counts what the upstream failed in the last minute", async () => {
    await using failing = await startFakeUpstream(() => refusal(500, "internal"));
    await using other = await gatewayAt(failing.url);
    await using client = await TestClient.connect(other, "/live/talk?format=ulaw_8000");
    client.send({ type: "speak", text: "Hi.", voice_id: "nora" });
    await client.next("utterance.done");
    const answer = await fetch(`${other.opsUrl}/admin/state`);
    const { view } = (await answer.json()) as { view: LiveView };
    expect(view.upstreams[0]?.errors_last_minute).toBeGreaterThan(0);
  });

  it("a watcher gets a view as soon as it says what to watch, and what changes", async () => {
    await using watching = new Watching(gateway);
    await until("the first view", () => watching.view !== undefined);
    expect(watching.names).toEqual([]);
    await using client = await TestClient.connect(gateway, "/live/talk?format=none");
    await until("the session", () => watching.names.includes("talk"));
    watching.socket.send(JSON.stringify({ type: "watch", session: "talk", prefix: "x" }));
    await until("it is opened", () => watching.opened?.session.name === "talk");
    await until("no row matches", () => watching.view?.sessions.matching === 0);
    expect(watching.view?.sessions.total).toBe(1);
    expect(client.closed).toBeNull();
  });

  it("16 watchers are taken; the next one gets an error, and is counted", async () => {
    const many = Array.from({ length: 16 }, () => new Watching(gateway));
    await until("all have a view", () => many.every(({ view }) => view !== undefined));
    await using one = new Watching(gateway);
    await until("it is closed", () => one.closed !== null);
    expect(one.messages).toMatchObject([{ type: "error", code: "listener_limit" }]);
    expect(one.closed).toEqual({ code: 4429, reason: "listener_limit" });
    const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
    expect(metrics).toContain('voicewire_refused_total{reason="listener_limit"} 1');
    await Promise.all(many.map((watching) => watching[Symbol.asyncDispose]()));
    await using again = new Watching(gateway);
    await until("there is room again", () => again.view !== undefined);
  });

  it("no page of another origin may watch, and none may read", async () => {
    const headers = { origin: "http://evil.example" };
    expect(await knock(`${gateway.opsUrl?.replace("http", "ws")}/admin/live`, { headers })).toMatchObject({
      status: 403,
      code: "origin_not_allowed",
    });
    const answer = await fetch(`${gateway.opsUrl}/admin/state`, { headers });
    expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([403, null]);
  });

  it("the public port has none of it, and says where it is", async () => {
    const answer = await fetch(`${gateway.url}/admin`);
    expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining("ops-port")]);
    expect((await fetch(`${gateway.url}/admin/state`)).status).toBe(404);
  });
});

describe("with keys", () => {
  const keys = new TestKeys({
    app: { tenant: "acme", grants: { sessions: ["*"], allow: ["open", "speak", "listen", "admin"] } },
    server: {
      grants: { sessions: ["*"], allow: ["open", "speak", "admin"], characters: 1000 },
      limits: { connections: 4 },
    },
  });
  let audit: AuditLines;
  let gateway: TestGateway;
  beforeEach(async () => {
    audit = new AuditLines();
    gateway = await gatewayAt(upstream.url, { keysFile: keys.path }, { auditLog: audit.log, watchMs: 20 });
  });
  afterEach(() => gateway.close());
  afterAll(() => keys[Symbol.dispose]());

  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const speaker = (name: string) =>
    TestClient.connect(gateway, `/live/${name}?format=ulaw_8000&events=words`, {
      headers: bearer(tokenFor({ sessions: ["*"], allow: ["open", "speak", "listen"] })),
    });

  it("only admin opens it", async () => {
    const at = (headers: Record<string, string>) => fetch(`${gateway.opsUrl}/admin/state`, { headers });
    expect((await at({})).status).toBe(401);
    expect((await at(bearer(tokenFor({ ...ADMIN, allow: ["listen"] })))).status).toBe(403);
    expect((await at(bearer(tokenFor(ADMIN)))).status).toBe(200);
    await using refused = new Watching(gateway, { token: tokenFor({ ...ADMIN, allow: ["listen"] }) });
    await until("it is closed", () => refused.closed !== null);
    expect(refused.messages).toMatchObject([{ type: "error", code: "forbidden" }]);
  });

  it("the page is anybody's, runs nothing inline, and knows nothing", async () => {
    const page = await fetch(`${gateway.opsUrl}/admin`);
    expect(page.status).toBe(200);
    const policy = page.headers.get("content-security-policy");
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(await page.text()).not.toMatch(/<script(?![^>]*src=)|style=| on[a-z]+=/);
  });

  it("shows the sessions that the token names, and opens no other", async () => {
    await using one = await speaker("support-1");
    await using other = await speaker("tour-1");
    const token = tokenFor({ sessions: ["support-*"], allow: ["admin"] });
    await using watching = new Watching(gateway, { token, watch: { session: "tour-1" } });
    await until("a view", () => watching.view !== undefined);
    expect(watching.names).toEqual(["support-1"]);
    expect(watching.view?.sessions.total).toBe(1);
    expect(watching.opened).toBeNull();
    expect([one.closed, other.closed]).toEqual([null, null]);
  });

  it("shows the text of words to who may listen, and to nobody else", async () => {
    await using client = await speaker("talk");
    client.send({ type: "speak", text: TEXT });
    await client.next("words");
    const watch = { session: "talk" };
    await using deaf = new Watching(gateway, { token: tokenFor(ADMIN), watch });
    await until("words", () => (deaf.opened?.utterances[0]?.words.length ?? 0) > 0);
    expect(JSON.stringify(deaf.messages)).not.toMatch(/Private|nobody/);
    const token = tokenFor({ ...ADMIN, allow: ["admin", "listen"] });
    await using hearing = new Watching(gateway, { token, watch });
    await until("words", () => (hearing.opened?.utterances[0]?.words.length ?? 0) > 0);
    expect(JSON.stringify(hearing.opened)).toContain("Private");
  });

  it("who opens a session stands in the audit log, which has neither its name nor its text", async () => {
    await using client = await speaker("secret-name");
    client.send({ type: "speak", text: TEXT });
    await client.next("words");
    audit.lines.length = 0;
    const token = tokenFor(ADMIN, { claims: { jti: "id-1" } });
    await using watching = new Watching(gateway, { token });
    await until("a view", () => watching.view !== undefined);
    expect(audit.lines).toMatchObject([{ audit: "admitted", surface: "/admin/live", token: "id-1" }]);
    watching.socket.send(JSON.stringify({ type: "watch", session: "secret-name" }));
    await until("it is opened", () => watching.opened !== undefined);
    expect(audit.lines.slice(1)).toMatchObject([
      { audit: "admitted", surface: "/admin/live", session: expect.stringMatching(/^[\w-]{16}$/) },
    ]);
    expect(JSON.stringify(audit.lines)).not.toMatch(/secret-name|Private/);
  });

  it("who opens a session over HTTP stands there, too, with the session's digest", async () => {
    await using client = await speaker("secret-name");
    await client.next("hello");
    audit.lines.length = 0;
    const url = `${gateway.opsUrl}/admin/state?session=secret-name`;
    expect((await fetch(url, { headers: bearer(tokenFor(ADMIN)) })).status).toBe(200);
    expect(audit.lines).toMatchObject([
      { audit: "admitted", surface: "/admin/state" },
      { audit: "admitted", surface: "/admin/state", session: expect.stringMatching(/^[\w-]{16}$/) },
    ]);
    expect(JSON.stringify(audit.lines)).not.toContain("secret-name");
  });

  it("a session that the token does not name is a refusal there, once, on a socket and over HTTP", async () => {
    await using client = await speaker("tour-1");
    await client.next("hello");
    const token = tokenFor({ sessions: ["support-*"], allow: ["admin"] });
    audit.lines.length = 0;
    await using watching = new Watching(gateway, { token, watch: { session: "tour-1" } });
    await until("three answers", () => watching.messages.filter(({ type }) => type === "session").length > 2);
    await fetch(`${gateway.opsUrl}/admin/state?session=tour-1`, { headers: bearer(token) });
    const session = expect.stringMatching(/^[\w-]{16}$/) as unknown;
    expect(audit.refused).toMatchObject([
      { reason: "forbidden", surface: "/admin/live", subject: "ann", session },
      { reason: "forbidden", surface: "/admin/state", subject: "ann", session },
    ]);
    expect(audit.lines.filter((line) => line.audit === "admitted" && "session" in line)).toEqual([]);
  });

  it("shows what keys and tenants have used", async () => {
    await using client = await TestClient.connect(gateway, "/live/talk?format=none", {
      headers: bearer(keys.key),
    });
    client.send({ type: "speak", text: "x".repeat(100) });
    await client.next("utterance.queued");
    const answer = await fetch(`${gateway.opsUrl}/admin/state`, { headers: bearer(tokenFor(ADMIN)) });
    const { view } = (await answer.json()) as { view: LiveView };
    expect(view.budgets).toEqual(
      expect.arrayContaining([
        { of: "key server", what: "characters", used: 100, limit: 1000, is_low: false },
        { of: "key server", what: "connections", used: 1, limit: 4, is_low: false },
      ]),
    );
  });

  it("says whose a session is", async () => {
    await using client = await speaker("talk");
    await client.next("hello");
    await using watching = new Watching(gateway, { token: tokenFor(ADMIN) });
    await until("the session", () => watching.names.includes("talk"));
    expect(watching.view?.sessions.rows).toMatchObject([{ tenant: "acme" }]);
  });

  it("a watcher whose token is withdrawn gets an error, and is closed", async () => {
    using own = new TestKeys({ app: { grants: ADMIN } });
    await using running = await gatewayAt(upstream.url, { keysFile: own.path }, { watchMs: 20 });
    await using watching = new Watching(running, { token: tokenFor(ADMIN, { claims: { jti: "id-1" } }) });
    await until("a view", () => watching.view !== undefined);
    own.write({ app: { grants: ADMIN }, revoked: { tokens: ["id-1"] } });
    await until("it is closed", () => watching.closed !== null);
    expect(watching.messages.at(-1)).toMatchObject({ type: "error", code: "token_revoked" });
  });

  it("a watcher whose key allows admin no more is ended", async () => {
    using own = new TestKeys({ app: { grants: ADMIN } });
    await using running = await gatewayAt(upstream.url, { keysFile: own.path }, { watchMs: 20 });
    await using watching = new Watching(running, { token: tokenFor(ADMIN) });
    await until("a view", () => watching.view !== undefined);
    own.write({ app: { grants: { ...ADMIN, allow: ["listen"] } } });
    await until("it is closed", () => watching.closed !== null);
    expect(watching.closed?.code).toBe(4403);
  });
});
