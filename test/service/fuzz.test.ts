/** Every endpoint with what nobody should send: an answer in the interface's shape each time, never a 5xx, and the service stays up. */
import { readFile } from "node:fs/promises";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonSchema } from "../../src/service/http/json-schema.ts";
import { type Client, startClient, VOICE } from "./client.ts";
import { answerFaults } from "./openapi/check.ts";
import { bodyOf, type Endpoint, endpointsOf, type OpenApiDocument, resolve } from "./openapi/document.ts";

/** A new endpoint is fuzzed with its declaration. */
const page = await readFile(new URL("../../docs/openapi.json", import.meta.url), "utf8");
const document = JSON.parse(page) as OpenApiDocument;
// A service that is asked to fail does; and counters are not changed by anything that is sent.
const ENDPOINTS = endpointsOf(document).filter(({ path }) => /^\/v[12]\//.test(path));

/** The names of the fields of all bodies, in all depths. */
function namesIn(schema: JsonSchema): string[] {
  const { properties, items, contentSchema } = resolve(document, schema);
  const fields = Object.entries(Object(properties) as Record<string, JsonSchema>);
  const deeper = [items, contentSchema].filter((one) => one !== undefined) as JsonSchema[];
  return [...fields.flatMap(([name, field]) => [name, ...namesIn(field)]), ...deeper.flatMap(namesIn)];
}
const FIELDS = [...new Set(ENDPOINTS.flatMap((endpoint) => namesIn(bodyOf(endpoint)?.schema ?? {})))];
const QUERY = [
  ...new Set(
    ENDPOINTS.flatMap(({ operation }) =>
      (operation.parameters ?? []).filter((one) => one.in === "query").map(({ name }) => name),
    ),
  ),
];

const anything = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom(
    null,
    "",
    " ",
    "\u0000",
    "\ud800",
    "x".repeat(5000),
    -1,
    0,
    1e308,
    2 ** 53,
    true,
    [],
    {},
    "💥",
    "../../etc/passwd",
  ),
);
const query = fc
  .dictionary(
    fc.constantFrom(...QUERY),
    fc.oneof(
      fc.string({ maxLength: 20 }),
      fc.constantFrom("-1", "1e9", "null", "true", "%00", "wav", "mp3_44100_128"),
    ),
    { maxKeys: 4 },
  )
  .map((given) => new URLSearchParams(given).toString());
const json = fc.dictionary(fc.constantFrom(...FIELDS), anything, { maxKeys: 6 });
const id = fc.oneof(
  fc.constant(VOICE),
  fc.constantFrom("nobody", "%00", "%2e%2e", "a".repeat(300), "'; DROP TABLE history; --", "💥"),
);

let client: Client;
beforeAll(async () => {
  client = await startClient();
});
afterAll(() => client[Symbol.asyncDispose]());

interface Sent {
  readonly body?: string | Uint8Array<ArrayBuffer> | FormData;
  readonly type?: string;
}

/** Of the endpoint's own kind, or not. */
function sentOf(endpoint: Endpoint, kind: string, value: object): Sent {
  if (kind === "garbage") return { body: Uint8Array.of(0, 255, 123, 34), type: "application/json" };
  if (kind === "type") return { body: JSON.stringify(value), type: "text/csv" };
  const taken = bodyOf(endpoint);
  if (taken?.type !== "multipart/form-data") return { body: JSON.stringify(value), type: "application/json" };
  const form = new FormData();
  for (const [name, field] of Object.entries(value))
    form.append(name, typeof field === "string" ? field : JSON.stringify(field));
  if (kind === "file") {
    const [name = ""] = (resolve(document, taken.schema).required as string[]).filter(
      (one) => one !== "name",
    );
    form.append(name, new Blob([Buffer.from("RIFF\0\0\0\0WAVEfmt nonsense")]), "a.wav");
  }
  return { body: form };
}

describe("fuzzing", () => {
  it("knows every endpoint and every field", () => {
    expect(ENDPOINTS.length).toBeGreaterThan(30);
    expect(FIELDS).toEqual(
      expect.arrayContaining(["voice_settings", "speed", "inputs", "webhook_url", "labels"]),
    );
    expect(QUERY).toEqual(expect.arrayContaining(["page_size", "output_format", "voice_ids"]));
  });

  it.each(ENDPOINTS)("$method $path answers anything as the document says", async (endpoint) => {
    const { method, path } = endpoint;
    const kinds = fc.constantFrom("json", "file", "garbage", "type");
    await fc.assert(
      fc.asyncProperty(id, query, json, kinds, async (one, search, value, kind) => {
        const named = path.replace(/\{\w+\}/g, () => encodeURI(one).replaceAll("%25", "%"));
        const { body, type } = sentOf(endpoint, kind, value);
        const answer = await fetch(`${client.service.url}${named}?${search}`, {
          method,
          ...(method === "GET" || body === undefined ? {} : { body }),
          ...(type === undefined ? {} : { headers: { "content-type": type } }),
        });
        const bytes = Buffer.from(await answer.arrayBuffer());
        const about = `${method} ${named}?${search} ${bytes.toString().slice(0, 300)}`;
        expect(answer.status, about).toBeLessThan(500);
        // A path that is too long or that says something else is nobody's.
        if (bytes.toString() === '{"detail":"Not Found"}') return;
        if (answer.status === 405) return;
        const { status, headers } = answer;
        expect(answerFaults(document, endpoint, { status, headers, body: bytes }), about).toEqual([]);
      }),
      { numRuns: 25 },
    );
  });

  it("has left the service as it was", async () => {
    const answer = await client.post(`/v1/text-to-speech/${VOICE}`, { text: "Still here." });
    expect(answer.status).toBe(200);
    expect(answer.body.length).toBeGreaterThan(5000);
  });
});
