import { mkdtemp, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { OriginRules } from "../../src/access/origin-rules.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { FaultBoard } from "../../src/service/faults/board.ts";
import { registerWebhooks } from "../../src/service/http/account/webhooks.ts";
import { createServer } from "../../src/service/http/server.ts";
import { SingleUseTokens } from "../../src/service/http/single-use-tokens.ts";
import { ConcurrencyGate } from "../../src/service/http/tiers.ts";
import { openStore, type Store } from "../../src/service/store/store.ts";
import { Webhooks } from "../../src/service/webhooks/webhooks.ts";
import { measures } from "../helpers/measures.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { Receiver } from "../unit/service/webhooks/receiver.ts";
import { errorOf, sdkFor } from "./sdk-client.ts";
import { temporaryParts } from "./temporary-parts.ts";

const KEY = "a-key";

let folder: string;
let store: Store;
let webhooks: Webhooks;
let app: FastifyInstance;
let url: string;

async function open(allowPrivate: boolean): Promise<void> {
  store = await openStore({ folder });
  webhooks = new Webhooks(store.database, { log: watchedLog, allowPrivate });
  const context = {
    neuralVoices: new Map(),
    voices: {
      open: () => {
        throw new Error("Nothing is spoken here");
      },
    },
    key: KEY,
    tokens: new SingleUseTokens(systemClock),
    tier: "enterprise",
    origins: new OriginRules({ host: "127.0.0.1" }),
    gate: new ConcurrencyGate("enterprise"),
    faults: new FaultBoard(),
    store,
    ...temporaryParts(),
    webhooks,
    log: watchedLog,
  } as const;
  app = createServer(context, watchedLog);
  if (!app.hasRoute({ method: "GET", url: "/v1/workspace/webhooks" })) registerWebhooks(app, context);
  await app.listen({ host: "127.0.0.1", port: 0 });
  url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  webhooks.start();
}

async function close(): Promise<void> {
  await app.close();
  await webhooks.close();
  await store.close();
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "voicewire-test-"));
  await open(false);
});
afterEach(async () => {
  await close();
  await rm(folder, { recursive: true, force: true });
});

async function call(method: string, path: string, body?: unknown, key: string | undefined = KEY) {
  const answer = await fetch(url + path, {
    method,
    headers: { "content-type": "application/json", ...(key === "" ? {} : { "xi-api-key": key }) },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

const PATH = "/v1/workspace/webhooks";
const SETTINGS = { auth_type: "hmac", name: "Mine", webhook_url: "https://example.com/hook" };

async function create(settings: object = SETTINGS) {
  const { status, body } = await call("POST", PATH, { settings });
  expect(status).toBe(200);
  return { id: String(body.webhook_id), secret: String(body.webhook_secret) };
}

async function list(query = ""): Promise<readonly Record<string, unknown>[]> {
  const { status, body } = await call("GET", PATH + query);
  expect(status).toBe(200);
  return body.webhooks as Record<string, unknown>[];
}

describe("the vendor's client", () => {
  it("creates, lists, changes and deletes webhooks", async () => {
    measures("POST /v1/workspace/webhooks", "settings.name", "the name in the list");
    measures("PATCH /v1/workspace/webhooks/{webhook_id}", "webhook_id", "which webhook changes");
    measures("PATCH /v1/workspace/webhooks/{webhook_id}", "name", "the name in the list");
    const { webhooks: sdk } = sdkFor(url, KEY);
    const made = await sdk.create({
      settings: { authType: "hmac", name: "Mine", webhookUrl: "https://example.com/hook" },
    });
    expect(made.webhookSecret).toMatch(/^wsec_[0-9a-f]{64}$/);
    const { webhookId } = made;
    expect((await sdk.list()).webhooks).toMatchObject([{ webhookId, name: "Mine" }]);
    const events = ["flows", "agent_qa"] as const;
    expect(await sdk.update(webhookId, { isDisabled: true, name: "New", events: [...events] })).toMatchObject(
      {
        status: "ok",
      },
    );
    const listed = await sdk.list({ includeUsages: true });
    expect(listed.webhooks).toMatchObject([
      {
        name: "New",
        webhookId,
        webhookUrl: "https://example.com/hook",
        isDisabled: true,
        isAutoDisabled: false,
        authType: "hmac",
        usage: [{ usageType: "Flows" }, { usageType: "Agent QA Evaluations" }],
        events,
      },
    ]);
    expect(await sdk.delete(webhookId)).toMatchObject({ status: "ok" });
    expect((await sdk.list()).webhooks).toEqual([]);
    expect((await errorOf(sdk.delete(webhookId))).statusCode).toBe(404);
    const refused = sdk.create({
      settings: { authType: "hmac", name: "", webhookUrl: "https://a.example/" },
    });
    expect((await errorOf(refused)).statusCode).toBe(422);
  });

  it("accepts the signature of what arrives", async () => {
    measures("POST /v1/workspace/webhooks", "settings.webhook_url", "where deliveries arrive");
    measures("POST /v1/workspace/webhooks", "settings.request_headers", "the headers of a delivery");
    await close();
    await open(true);
    const receiver = await Receiver.start();
    try {
      const sdk = sdkFor(url, KEY).webhooks;
      const settings = {
        authType: "hmac",
        name: "Mine",
        webhookUrl: receiver.url,
        requestHeaders: { "X-A": "1" },
      } as const;
      const { webhookId, webhookSecret = "" } = await sdk.create({ settings });
      const kinds = ["voice_library_removal_notice", "speech_to_text", "agent_qa", "flows"] as const;
      await sdk.update(webhookId, { isDisabled: false, name: "Mine", events: [...kinds] });
      const types = ["voice_removal_notice", "speech_to_text_transcription", "agent_qa", "flows_generation"];
      for (const [index, event] of kinds.entries()) {
        const triggered = await call("POST", "/service/webhooks/trigger", { event });
        expect(triggered).toEqual({
          status: 200,
          body: { event, type: types[index], enqueued: 1, dropped: 0 },
        });
        const { headers, body } = await receiver.take();
        expect(headers["x-a"]).toBe("1");
        const signature = String(headers["elevenlabs-signature"]);
        const received = await sdk.constructEvent(body.toString(), signature, webhookSecret);
        expect(received).toMatchObject({ type: types[index] });
        expect(Object.keys(received.data as object)).not.toEqual([]);
      }
      const data = { voice_id: "v", voice_name: "Nora" };
      const event = "voice_library_removal_notice";
      await call("POST", "/service/webhooks/trigger", { event, type: "voice_removed", data });
      const { body } = await receiver.take();
      expect(JSON.parse(body.toString())).toMatchObject({ type: "voice_removed", data });
      receiver.answerWith(500);
      await call("POST", "/service/webhooks/trigger", { event });
      await receiver.take();
      await vi.waitFor(async () => {
        const [record] = await list();
        expect(record).toMatchObject({ most_recent_failure_error_code: 500 });
        expect(record?.most_recent_failure_timestamp).toBeTypeOf("number");
      });
      const stats = await call("GET", "/service/webhooks");
      expect(stats.body).toMatchObject({
        delivered: 5,
        failed: 1,
        dropped: 0,
        under_way: 0,
        webhooks: [{ webhook_id: webhookId, pending: 0, failures_in_a_row: 1 }],
      });
    } finally {
      await receiver.close();
    }
  });
});

describe("what happens", () => {
  it("goes to the webhooks that subscribed to it and are not off, and to no others", async () => {
    measures("PATCH /v1/workspace/webhooks/{webhook_id}", "events", "which events are delivered");
    measures("PATCH /v1/workspace/webhooks/{webhook_id}", "is_disabled", "whether any is delivered");
    await close();
    await open(true);
    const receiver = await Receiver.start();
    try {
      const { id } = await create({ ...SETTINGS, webhook_url: receiver.url });
      const change = (fields: object) => call("PATCH", `${PATH}/${id}`, { name: "Mine", ...fields });
      const enqueued = async (event: string) =>
        (await call("POST", "/service/webhooks/trigger", { event })).body.enqueued;
      expect(await enqueued("flows")).toBe(0);
      await change({ is_disabled: false, events: ["flows"] });
      expect([await enqueued("agent_qa"), await enqueued("flows")]).toEqual([0, 1]);
      expect(JSON.parse((await receiver.take()).body.toString())).toMatchObject({ type: "flows_generation" });
      await change({ is_disabled: true });
      expect(await enqueued("flows")).toBe(0);
      await change({ is_disabled: false, events: ["agent_qa"] });
      expect([await enqueued("flows"), await enqueued("agent_qa")]).toEqual([0, 1]);
      expect(JSON.parse((await receiver.take()).body.toString())).toMatchObject({ type: "agent_qa" });
    } finally {
      await receiver.close();
    }
  });
});

describe("a delivery that fails", () => {
  it("waits for another try where retries are enabled, and is given up where not", async () => {
    measures(
      "PATCH /v1/workspace/webhooks/{webhook_id}",
      "retry_enabled",
      "whether a failed delivery waits for another try",
    );
    await close();
    await open(true);
    const receiver = await Receiver.start();
    receiver.answerWith(500);
    try {
      const { id } = await create({ ...SETTINGS, webhook_url: receiver.url });
      for (const [retry_enabled, pending, failures] of [
        [false, 0, 1],
        [true, 1, 2],
      ] as const) {
        const change = { is_disabled: false, name: "Mine", retry_enabled, events: ["flows"] };
        expect((await call("PATCH", `${PATH}/${id}`, change)).status).toBe(200);
        await call("POST", "/service/webhooks/trigger", { event: "flows" });
        await receiver.take();
        await vi.waitFor(async () => {
          const { body } = await call("GET", "/service/webhooks");
          expect(body.webhooks).toMatchObject([{ pending, failures_in_a_row: failures }]);
        });
      }
    } finally {
      await receiver.close();
    }
  });
});

describe("a record", () => {
  it("never has the secret, the headers or the retries; usages and events only where asked for", async () => {
    measures("GET /v1/workspace/webhooks", "include_usages", "usages and events in the list");
    const { id, secret } = await create({ ...SETTINGS, request_headers: { "X-Key": "hunter2" } });
    const update = { is_disabled: false, name: "Mine", retry_enabled: true, events: ["speech_to_text"] };
    expect(await call("PATCH", `${PATH}/${id}`, update)).toEqual({ status: 200, body: { status: "ok" } });
    const [record, ...others] = await list();
    expect(others).toEqual([]);
    expect(record).toEqual({
      name: "Mine",
      webhook_id: id,
      webhook_url: "https://example.com/hook",
      is_disabled: false,
      is_auto_disabled: false,
      created_at_unix: expect.any(Number),
      auth_type: "hmac",
      usage: null,
      events: null,
      most_recent_failure_error_code: null,
      most_recent_failure_timestamp: null,
    });
    const used = await list("?include_usages=true");
    expect(used).toEqual([
      { ...record, usage: [{ usage_type: "Speech to Text" }], events: ["speech_to_text"] },
    ]);
    const shown = JSON.stringify([used, (await call("GET", "/service/webhooks")).body]);
    for (const hidden of [secret, "hunter2", "retry"]) expect(shown).not.toContain(hidden);
  });

  it("is there after the service was started again", async () => {
    const { id } = await create();
    await close();
    await open(false);
    expect(await list()).toMatchObject([{ webhook_id: id }]);
  });

  it("keeps headers of any name, and lets them be replaced", async () => {
    measures("PATCH /v1/workspace/webhooks/{webhook_id}", "request_headers", "the headers of deliveries");
    const { id } = await create({ ...SETTINGS, request_headers: JSON.parse('{"__proto__":"1","X-B":"2"}') });
    expect(Object.entries(webhooks.get(id)?.requestHeaders ?? {})).toEqual([
      ["__proto__", "1"],
      ["X-B", "2"],
    ]);
    const update = { is_disabled: false, name: "Mine", request_headers: { "X-C": "3" } };
    expect((await call("PATCH", `${PATH}/${id}`, update)).status).toBe(200);
    expect(webhooks.get(id)?.requestHeaders).toEqual({ "X-C": "3" });
  });

  it("has the events that a change names, all of them; one that names none changes none", async () => {
    const { id } = await create();
    const change = (fields: object) =>
      call("PATCH", `${PATH}/${id}`, { is_disabled: false, name: "Mine", ...fields });
    const events = async () => (await list("?include_usages=true"))[0]?.events;
    expect(await events()).toEqual([]);
    await change({ events: ["flows", "agent_qa"] });
    await change({ retry_enabled: null, events: null, request_headers: null });
    await change({});
    expect(await events()).toEqual(["flows", "agent_qa"]);
    await change({ events: ["speech_to_text"] });
    expect(await events()).toEqual(["speech_to_text"]);
    await change({ events: [] });
    expect(await events()).toEqual([]);
  });
});

describe("a bad request", () => {
  const many = Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`X-${index}`, "a"]));
  it.each([
    ["nothing", {}, "missing", ["settings"]],
    ["settings that are null", { settings: null }, "missing", ["settings"]],
    ["settings that are a text", { settings: "a" }, "model_attributes_type", ["settings"]],
    [
      "no auth_type",
      { settings: { ...SETTINGS, auth_type: undefined } },
      "missing",
      ["settings", "auth_type"],
    ],
    [
      "auth_type oauth2",
      { settings: { ...SETTINGS, auth_type: "oauth2" } },
      "literal_error",
      ["settings", "auth_type"],
    ],
    [
      "auth_type null",
      { settings: { ...SETTINGS, auth_type: null } },
      "literal_error",
      ["settings", "auth_type"],
    ],
    ["no name", { settings: { ...SETTINGS, name: undefined } }, "missing", ["settings", "name"]],
    ["an empty name", { settings: { ...SETTINGS, name: "" } }, "string_too_short", ["settings", "name"]],
    [
      "a long name",
      { settings: { ...SETTINGS, name: "a".repeat(101) } },
      "string_too_long",
      ["settings", "name"],
    ],
    ["a name of digits", { settings: { ...SETTINGS, name: 5 } }, "string_type", ["settings", "name"]],
    ["no URL", { settings: { ...SETTINGS, webhook_url: undefined } }, "missing", ["settings", "webhook_url"]],
    [
      "a long URL",
      { settings: { ...SETTINGS, webhook_url: `https://example.com/${"a".repeat(2048)}` } },
      "string_too_long",
      ["settings", "webhook_url"],
    ],
    [
      "headers in a list",
      { settings: { ...SETTINGS, request_headers: [] } },
      "dict_type",
      ["settings", "request_headers"],
    ],
    [
      "a header of digits",
      { settings: { ...SETTINGS, request_headers: { a: 5 } } },
      "string_type",
      ["settings", "request_headers", "a"],
    ],
    [
      "too many headers",
      { settings: { ...SETTINGS, request_headers: many } },
      "too_long",
      ["settings", "request_headers"],
    ],
  ])("to create one with %s is 422, whatever the key", async (_what, body, type, loc) => {
    measures("POST /v1/workspace/webhooks", "settings.auth_type", "422 for any but hmac");
    for (const key of [KEY, ""]) {
      const answer = await call("POST", PATH, body, key);
      expect(answer).toMatchObject({ status: 422, body: { detail: [{ type, loc: ["body", ...loc] }] } });
      expect(answer.body.detail).toHaveLength(1);
    }
    expect(webhooks.list()).toEqual([]);
  });

  it.each([
    ["no is_disabled", { name: "a" }, "missing", ["is_disabled"]],
    ["is_disabled null", { name: "a", is_disabled: null }, "missing", ["is_disabled"]],
    ["is_disabled maybe", { name: "a", is_disabled: "maybe" }, "bool_parsing", ["is_disabled"]],
    ["no name", { is_disabled: false }, "missing", ["name"]],
    ["a long name", { is_disabled: false, name: "a".repeat(101) }, "string_too_long", ["name"]],
    [
      "retries maybe",
      { is_disabled: false, name: "a", retry_enabled: "maybe" },
      "bool_parsing",
      ["retry_enabled"],
    ],
    ["events in a text", { is_disabled: false, name: "a", events: "flows" }, "list_type", ["events"]],
    ["an unknown event", { is_disabled: false, name: "a", events: ["flows", "x"] }, "enum", ["events", 1]],
    [
      "headers in a list",
      { is_disabled: false, name: "a", request_headers: [] },
      "dict_type",
      ["request_headers"],
    ],
  ])("to change one with %s is 422 and changes nothing", async (_what, body, type, loc) => {
    const { id } = await create();
    const before = webhooks.get(id);
    for (const key of [KEY, ""]) {
      const answer = await call("PATCH", `${PATH}/${id}`, body, key);
      expect(answer).toMatchObject({ status: 422, body: { detail: [{ type, loc: ["body", ...loc] }] } });
      expect(answer.body.detail).toHaveLength(1);
    }
    expect(webhooks.get(id)).toEqual(before);
  });

  it("names the values of an enum in pydantic's words", async () => {
    const expected = "'voice_library_removal_notice', 'speech_to_text', 'agent_qa' or 'flows'";
    const { body } = await call("POST", "/service/webhooks/trigger", { event: "unknown" });
    expect(body.detail).toEqual([
      {
        type: "enum",
        loc: ["body", "event"],
        msg: `Input should be ${expected}`,
        input: "unknown",
        ctx: { expected },
      },
    ]);
    const { body: literal } = await call("POST", PATH, { settings: { ...SETTINGS, auth_type: "mtls" } });
    expect(literal.detail).toMatchObject([{ msg: "Input should be 'hmac'", ctx: { expected: "'hmac'" } }]);
  });

  it.each([
    "https://localhost/",
    "http://example.com/",
    "https://127.0.0.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://[::1]/",
    "https://[::ffff:7f00:1]/",
    "https://169.254.169.254/latest/meta-data/",
    "https://user:hunter2@example.com/",
    "example.com",
    "https://",
  ])("for a webhook at %s is 400", async (webhook_url) => {
    const answer = await call("POST", PATH, { settings: { ...SETTINGS, webhook_url } });
    expect(answer).toMatchObject({
      status: 400,
      body: {
        detail: {
          type: "validation_error",
          code: "invalid_parameters",
          status: "invalid_webhook_url",
          param: "webhook_url",
        },
      },
    });
    expect(JSON.stringify(answer.body)).not.toContain("hunter2");
    expect(webhooks.list()).toEqual([]);
  });

  it.each([
    { Host: "hunter2" },
    { a: "hunter2\r\nb: c" },
    { "a b": "hunter2" },
    { a: "hunter2".repeat(200) },
  ])("for a webhook with the headers %j is 400", async (request_headers) => {
    const { id } = await create();
    const refused = {
      status: 400,
      body: { detail: { code: "invalid_parameters", param: "request_headers" } },
    };
    const created = await call("POST", PATH, { settings: { ...SETTINGS, request_headers } });
    expect(created).toMatchObject(refused);
    expect(JSON.stringify(created.body)).not.toContain("hunter2");
    const update = { is_disabled: false, name: "Mine", request_headers };
    expect(await call("PATCH", `${PATH}/${id}`, update)).toMatchObject(refused);
    expect(webhooks.get(id)?.requestHeaders).toBe(null);
  });

  it("for a webhook that is not there is 404, and 500 of an update, as the interface says", async () => {
    measures("DELETE /v1/workspace/webhooks/{webhook_id}", "webhook_id", "the webhook is gone");
    const refused = {
      status: 404,
      body: { detail: { type: "not_found", code: "webhook_not_found", param: "webhook_id" } },
    };
    expect(await call("PATCH", `${PATH}/nobody`, { is_disabled: false, name: "a" })).toMatchObject({
      status: 500,
      body: { detail: { type: "internal_error", status: "webhook_not_found", param: "webhook_id" } },
    });
    expect(await call("DELETE", `${PATH}/nobody`)).toMatchObject(refused);
    const { id } = await create();
    expect((await call("DELETE", `${PATH}/${id}`)).status).toBe(200);
    expect(await call("DELETE", `${PATH}/${id}`)).toMatchObject(refused);
  });

  it("without the key is 401 everywhere, once it is well-formed", async () => {
    const { id } = await create();
    const calls = [
      ["GET", PATH],
      ["POST", PATH, { settings: SETTINGS }],
      ["PATCH", `${PATH}/${id}`, { is_disabled: true, name: "a" }],
      ["DELETE", `${PATH}/${id}`],
      ["POST", "/service/webhooks/trigger", { event: "flows" }],
      ["GET", "/service/webhooks"],
    ] as const;
    for (const [method, path, body] of calls) {
      for (const key of ["", "wrong"]) expect((await call(method, path, body, key)).status).toBe(401);
    }
    expect(webhooks.list()).toMatchObject([{ id, isDisabled: false }]);
  });

  it("that is no JSON, no object or no UTF-8 is 422, never a 500", async () => {
    const { id } = await create();
    const paths = [
      ["POST", PATH],
      ["PATCH", `${PATH}/${id}`],
      ["POST", "/service/webhooks/trigger"],
    ] as const;
    for (const [method, path] of paths) {
      for (const body of ["{", "[]", "5", "null", '"a"', ""]) {
        expect((await call(method, path, body)).status).toBe(422);
      }
    }
    expect((await call("GET", `${PATH}?include_usages=maybe`)).status).toBe(422);
  });

  it("for a trigger is 422 or 400", async () => {
    const trigger = (body: unknown) => call("POST", "/service/webhooks/trigger", body);
    const fault = (type: string, name: string) => ({
      status: 422,
      body: { detail: [{ type, loc: ["body", name] }] },
    });
    expect(await trigger({})).toMatchObject(fault("missing", "event"));
    expect(await trigger({ event: "flows", type: "voice_removed" })).toMatchObject(fault("enum", "type"));
    expect(await trigger({ event: "flows", data: [] })).toMatchObject(fault("model_attributes_type", "data"));
    expect(await trigger({ event: "flows", data: { a: "b".repeat(262_144) } })).toMatchObject({
      status: 400,
      body: { detail: { code: "request_too_large", param: "data" } },
    });
  });

  it("for a trigger with data nested without end is 400", async () => {
    const depth = 100_000;
    const body = `{"event":"flows","data":{"a":${"[".repeat(depth)}${"]".repeat(depth)}}}`;
    expect(await call("POST", "/service/webhooks/trigger", body)).toMatchObject({
      status: 400,
      body: { detail: { code: "request_too_large", param: "data" } },
    });
  });

  it("is no failure of the service: a change that can't be kept is 500 and no ok", async () => {
    const { id } = await create();
    store.database.run("ALTER TABLE webhook RENAME TO elsewhere");
    const answer = await call("PATCH", `${PATH}/${id}`, { is_disabled: true, name: "New" });
    expect(answer).toMatchObject({ status: 500, body: { detail: { type: "internal_error" } } });
    store.database.run("ALTER TABLE elsewhere RENAME TO webhook");
    expect(webhooks.get(id)).toMatchObject({ name: "Mine", isDisabled: false });
  });

  it("for one webhook more than a workspace may have is 400", async () => {
    for (let number = 0; number < 50; number += 1) await create();
    expect(await call("POST", PATH, { settings: SETTINGS })).toMatchObject({
      status: 400,
      body: { detail: { code: "bad_request", status: "webhook_limit_reached" } },
    });
    expect(webhooks.list()).toHaveLength(50);
  });
});
