/** The OpenAPI document: complete, what docs/openapi.json says, and true of what the service takes and answers. */
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OriginRules } from "../../../src/access/origin-rules.ts";
import { systemClock } from "../../../src/kit/clock.ts";
import { FaultBoard } from "../../../src/service/faults/board.ts";
import type { ServiceContext } from "../../../src/service/http/context.ts";
import { createServer } from "../../../src/service/http/server.ts";
import { SingleUseTokens } from "../../../src/service/http/single-use-tokens.ts";
import { registerStats } from "../../../src/service/http/stats.ts";
import { ConcurrencyGate } from "../../../src/service/http/tiers.ts";
import { openStore } from "../../../src/service/store/store.ts";
import { Webhooks } from "../../../src/service/webhooks/webhooks.ts";
import { watchedLog } from "../../helpers/watched-log.ts";
import { type Client, startClient, VOICE } from "../client.ts";
import { temporaryParts } from "../temporary-parts.ts";
import { answerFaults } from "./check.ts";
import {
  bodyOf,
  type Endpoint,
  endpointsOf,
  fetchDocument,
  type OpenApiDocument,
  resolve,
} from "./document.ts";
import { allowedRequests, brokenRequests, type DocumentRequest } from "./requests.ts";
import { Sender, type Sent } from "./send.ts";

const PAGE = new URL("../../../docs/openapi.json", import.meta.url);
const KEY = "the-only-key";
const GENERATE = "UPDATE_DOCS=1 npx vitest run test/service/openapi";

let client: Client;
let document: OpenApiDocument;
let endpoints: Endpoint[];
let sender: Sender;
beforeAll(async () => {
  client = await startClient({ key: KEY, faults: true });
  document = await fetchDocument(client.service.url);
  endpoints = endpointsOf(document);
  sender = await Sender.start(client, KEY);
});
afterAll(() => client[Symbol.asyncDispose]());

/** The routes as Fastify prints them: a tree of paths with the methods of each. */
function routesOf(tree: string): string[] {
  const stack: string[] = [];
  return tree.split("\n").flatMap((line) => {
    const [, indent = "", piece = "", methods = ""] =
      /^([│ ]*)[├└]── (\S*) ?(?:\(([A-Z, ]+)\))?/.exec(line) ?? [];
    if (piece === "") return [];
    stack.splice(indent.length / 4);
    const path = stack.join("") + piece;
    stack.push(piece);
    const named = path.replace(/:(\w+)/g, "{$1}");
    return methods
      .split(", ")
      .filter((method) => method !== "")
      .map((method) => `${method} ${named}`);
  });
}

const LINE_WIDTH = 110;

/** As the formatter of this repository writes JSON: a list of plain values stands in one line where it fits. */
function written(value: unknown, indent = "", before = ""): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const deeper = `${indent}  `;
  const entries = Object.entries(value);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  if (entries.length === 0) return `${open}${close}`;
  if (Array.isArray(value)) {
    const line = `[${value.map((one) => JSON.stringify(one)).join(", ")}]`;
    const isPlain = value.every((one) => typeof one !== "object" || one === null || one.length === 0);
    if (isPlain && `${indent}${before}${line},`.length <= LINE_WIDTH) return line;
  }
  const lines = entries.map(([key, one]) => {
    const name = Array.isArray(value) ? "" : `${JSON.stringify(key)}: `;
    return deeper + name + written(one, deeper, name);
  });
  return `${open}\n${lines.join(",\n")}\n${indent}${close}`;
}

describe("the document", () => {
  it("has every route that there is, and no other", async () => {
    const store = await openStore({ folder: null });
    const context: ServiceContext = {
      neuralVoices: new Map(),
      voices: {
        open: () => {
          throw new Error("Nothing is said here");
        },
      },
      key: undefined,
      origins: new OriginRules({ host: "127.0.0.1" }),
      tokens: new SingleUseTokens(systemClock),
      tier: "enterprise",
      gate: new ConcurrencyGate("enterprise"),
      faults: new FaultBoard(),
      store,
      ...temporaryParts(),
      webhooks: new Webhooks(store.database, { log: watchedLog, allowPrivate: false }),
      log: watchedLog,
    };
    const app = createServer(context, watchedLog);
    registerStats(app, context, { stats: client.service.stats() });
    try {
      await app.ready();
      const routes = routesOf(app.printRoutes({ commonPrefix: false }));
      expect(routes.length).toBeGreaterThan(40);
      const described = endpoints.map(({ method, path }) => `${method} ${path}`);
      expect(described.toSorted()).toEqual(routes.toSorted());
      expect((await app.inject("/openapi.json")).json()).toEqual(document);
      // One that is not declared can't be served.
      expect(() => createServer(context, watchedLog).get("/undeclared", async () => ({}))).toThrow(
        /undeclared/,
      );
    } finally {
      await app.close();
      await store.close();
    }
  });

  it("is docs/openapi.json", () => {
    const text = `${written(document)}\n`;
    if (process.env.UPDATE_DOCS === "1") writeFileSync(PAGE, text);
    expect(readFileSync(PAGE, "utf8"), `stale, see \`${GENERATE}\``).toBe(text);
  });

  it("is sound: ids are unique, parameters are named in the path, references lead somewhere, tags are listed", () => {
    expect(document.openapi).toBe("3.1.0");
    expect(document.servers).toEqual([expect.objectContaining({ url: "/" })]);
    expect(document.components.securitySchemes).toMatchObject({
      "xi-api-key": { type: "apiKey", in: "header", name: "xi-api-key" },
    });
    const ids = endpoints.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const tags = document.tags.map(({ name }) => name);
    for (const { path, operation } of endpoints) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const given = (operation.parameters ?? []).filter((one) => one.in === "path").map(({ name }) => name);
      expect(given, path).toEqual(named);
      expect(tags, path).toEqual(expect.arrayContaining([...operation.tags]));
    }
    for (const [, reference] of JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)) {
      expect(resolve(document, { $ref: reference }), reference).toBeDefined();
    }
  });

  it("describes every field of a request", () => {
    for (const endpoint of endpoints.filter(({ operation }) => operation.operationId !== "set_faults")) {
      const { properties } = resolve(document, bodyOf(endpoint)?.schema ?? {});
      const parameters = (endpoint.operation.parameters ?? []).filter((one) => one.in !== "header");
      const fields = [...Object.entries(Object(properties)), ...parameters.map((one) => [one.name, one])];
      for (const [name, field] of fields)
        expect(field, `${endpoint.path} ${name}`).toMatchObject({ description: expect.stringMatching(/\w/) });
    }
  });
});

/** What the service answered, if it is not as the document says. */
function expectMatchesDocument(endpoint: Endpoint, { answer, about }: Sent): void {
  expect(answerFaults(document, endpoint, answer), about).toEqual([]);
}

describe("what the document allows", { timeout: 120_000 }, () => {
  it("is taken, and answered as it says", async () => {
    const requests = endpoints.flatMap((endpoint) =>
      allowedRequests(document, endpoint).map((request) => ({ endpoint, request })),
    );
    // What is the same is asked once.
    const asked = new Map(
      requests.map((one) => [JSON.stringify([one.endpoint.operation.operationId, one.request]), one]),
    );
    for (const { endpoint, request } of asked.values()) {
      const sent = await sender.send(endpoint, await sender.filled(endpoint, request));
      expect(sent.answer.status, sent.about).toBeLessThan(300);
      expectMatchesDocument(endpoint, sent);
    }
    expect(asked.size).toBeGreaterThan(endpoints.length);
  });

  it("is not answered without the key, but for what is everybody's", async () => {
    for (const endpoint of endpoints) {
      const [request] = allowedRequests(document, endpoint);
      if (request === undefined) throw new Error("Every endpoint can be asked");
      const filled = await sender.filled(endpoint, request);
      for (const key of [null, "wrong", "sk_00ff"]) {
        const sent = await sender.send(endpoint, filled, { key });
        expectMatchesDocument(endpoint, sent);
        if (endpoint.operation.security?.length === 0) expect(sent.answer.status, sent.about).toBe(200);
        else expect([400, 401, 404], sent.about).toContain(sent.answer.status);
        if (key === "wrong" && sent.answer.status !== 200) expect(sent.answer.status, sent.about).toBe(401);
      }
    }
  });

  it("is refused as it says where an id is nobody's", async () => {
    const named = endpoints.filter(({ path }) => /_id\}/.test(path));
    expect(named.length).toBeGreaterThan(15);
    for (const endpoint of named) {
      const [request] = allowedRequests(document, endpoint);
      if (request === undefined) throw new Error("Every endpoint can be asked");
      const sent = await sender.send(endpoint, {
        ...request,
        path: endpoint.path.replace(/\{\w+\}/g, "nobody"),
      });
      // The interface has 500 for every update of a webhook that fails.
      const status = endpoint.operation.operationId === "edit_workspace_webhook" ? 500 : 404;
      expect(sent.answer.status, sent.about).toBe(status);
      expectMatchesDocument(endpoint, sent);
    }
  });
});

interface Refused {
  readonly detail?: readonly { readonly loc: readonly unknown[] }[] | { readonly param?: string };
  readonly message?: string;
}

describe("what the document does not allow", { timeout: 120_000 }, () => {
  it("is refused with the status that it says, and the field is named", async () => {
    let asked = 0;
    for (const endpoint of endpoints) {
      for (const { place, status, about, ...request } of brokenRequests(document, endpoint)) {
        const sent = await sender.send(endpoint, await sender.filled(endpoint, request, place));
        const what = `${about}\n${sent.about}`;
        expect(sent.answer.status, what).toBe(status);
        expectMatchesDocument(endpoint, sent);
        const received = JSON.parse(sent.answer.body.toString()) as Refused;
        if (Array.isArray(received.detail))
          expect(
            received.detail.map(({ loc }) => loc),
            what,
          ).toContainEqual(place);
        else
          expect(namesOf(received), what).toContain(place.filter((step) => typeof step === "string").at(-1));
        asked += 1;
      }
    }
    expect(asked).toBeGreaterThan(400);
  });

  it("is refused in the path as well", async () => {
    const endpoint = endpoints.find(({ path }) => path.includes("{token_type}"));
    if (endpoint === undefined) throw new Error("Expected an endpoint with a token_type");
    const sent = await sender.send(endpoint, { query: {}, body: {}, path: "/v1/single-use-token/wrong" });
    expect(sent.answer.status).toBe(422);
    expect(JSON.parse(sent.answer.body.toString())).toMatchObject({
      detail: [{ loc: ["path", "token_type"] }],
    });
    expectMatchesDocument(endpoint, sent);
  });
});

/** The words of the field that a refusal with another status names. */
function namesOf({ detail, message }: Refused): string[] {
  const param = detail !== undefined && "param" in detail ? detail.param : message;
  return (param ?? "").split(/[^\w]+/);
}

describe("the checks themselves", () => {
  it("see what is not described, and what is of another type", async () => {
    const endpoint = endpoints.find(({ operation }) => operation.operationId === "get_voice_by_id");
    if (endpoint === undefined) throw new Error("Expected the voice's endpoint");
    const request: DocumentRequest & { path: string } = { query: {}, body: {}, path: `/v1/voices/${VOICE}` };
    const { answer } = await sender.send(endpoint, request);
    const voice = JSON.parse(answer.body.toString()) as Record<string, unknown>;
    const faults = (changed: unknown) =>
      answerFaults(document, endpoint, {
        ...answer,
        headers: answer.headers,
        body: Buffer.from(JSON.stringify(changed)),
      });
    expect(faults(voice)).toEqual([]);
    expect(faults({ ...voice, more: 1 })).toEqual(["$.more: is not described"]);
    expect(faults({ ...voice, name: 5 })).toEqual(["$.name: 5 is not string"]);
    expect(faults({ ...voice, name: undefined })).toEqual(["$.name: is missing"]);
    expect(answerFaults(document, endpoint, { ...answer, status: 418 })).toHaveLength(1);
  });
});
