/** Every endpoint with what nobody should send: an answer in the interface's shape each time, never a 5xx, and the service stays up. */
import { readFile } from "node:fs/promises";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Client, startClient, VOICE } from "./client.ts";

interface Endpoint {
  readonly method: string;
  readonly path: string;
}

/** The table of docs/endpoints.md: a new endpoint is fuzzed with its row. */
const table = await readFile(new URL("../../docs/endpoints.md", import.meta.url), "utf8");
const ENDPOINTS: Endpoint[] = [
  ...table.matchAll(/^\|\s*(GET|POST|PATCH|DELETE)\s*\|\s*`(\/v[12]\/[^`]*)`/gm),
].map(([, method = "", path = ""]) => ({ method, path }));
const MULTIPART = /audio-isolation$|audio-isolation\/stream$|speech-to-speech|voices\/add/;
const FIELDS = [
  "text",
  "inputs",
  "model_id",
  "language_code",
  "voice_settings",
  "seed",
  "previous_text",
  "previous_request_ids",
  "settings",
  "name",
  "apply_text_normalization",
  "duration_seconds",
  "prompt_influence",
  "loop",
  "history_item_ids",
  "output_format",
  "is_disabled",
  "webhook_url",
  "request_headers",
  "events",
  "retry_enabled",
  "auth_type",
  "pronunciation_dictionary_locators",
];
const QUERY = [
  "output_format",
  "enable_logging",
  "optimize_streaming_latency",
  "page_size",
  "page",
  "search",
  "start_after_history_item_id",
  "voice_id",
  "date_before_unix",
  "date_after_unix",
  "sort_direction",
  "source",
  "include_usages",
  "next_page_token",
  "sort",
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

function bodyOf(
  kind: string,
  value: object,
  path: string,
): { body?: string | Uint8Array<ArrayBuffer> | FormData; type?: string } {
  if (MULTIPART.test(path) && kind !== "garbage") {
    const form = new FormData();
    for (const [name, field] of Object.entries(value))
      form.append(name, typeof field === "string" ? field : JSON.stringify(field));
    if (kind === "file")
      form.append(
        path.includes("add") ? "files" : "audio",
        new Blob([Buffer.from("RIFF\0\0\0\0WAVEfmt nonsense")]),
        "a.wav",
      );
    return { body: form };
  }
  if (kind === "garbage") return { body: Uint8Array.of(0, 255, 123, 34), type: "application/json" };
  if (kind === "type") return { body: JSON.stringify(value), type: "text/csv" };
  return { body: JSON.stringify(value), type: "application/json" };
}

describe("fuzzing", () => {
  it("knows every endpoint", () => {
    expect(ENDPOINTS.length).toBeGreaterThan(30);
  });

  it.each(ENDPOINTS)(
    "$method $path has an answer of the interface for anything",
    async ({ method, path }) => {
      await fc.assert(
        fc.asyncProperty(
          id,
          query,
          json,
          fc.constantFrom("json", "file", "garbage", "type"),
          async (one, search, value, kind) => {
            const url = `${client.service.url}${path.replace(/\{\w+\}/g, () => encodeURI(one).replaceAll("%25", "%"))}?${search}`;
            const { body, type } = bodyOf(kind, value, path);
            const answer = await fetch(url, {
              method,
              ...(method === "GET" || body === undefined ? {} : { body }),
              ...(type === undefined ? {} : { headers: { "content-type": type } }),
            });
            const bytes = Buffer.from(await answer.arrayBuffer());
            expect(answer.status, `${method} ${url} ${bytes.toString().slice(0, 300)}`).toBeLessThan(500);
            if (answer.status < 400) return;
            const told = JSON.parse(bytes.toString()) as { detail?: unknown; error?: unknown };
            expect(told.detail ?? told.error).toBeDefined();
          },
        ),
        { numRuns: 25 },
      );
    },
  );

  it("has left the service as it was", async () => {
    const answer = await client.post(`/v1/text-to-speech/${VOICE}`, { text: "Still here." });
    expect(answer.status).toBe(200);
    expect(answer.body.length).toBeGreaterThan(5000);
  });
});
