/**
 * Parameters about things that this service does not have. They are accepted, as a client of the vendor sends them: the
 * answer is the same with and without, and the document says so.
 */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { measures } from "../helpers/measures.ts";
import { type Client, OTHER_VOICE, startClient, VOICE } from "./client.ts";

const document = readFileSync(new URL("../../docs/openapi.json", import.meta.url), "utf8");
let client: Client;

beforeAll(async () => {
  client = await startClient();
});
afterAll(() => client[Symbol.asyncDispose]());

/** What the document says of a parameter or field, wherever it has one of this name. */
function descriptionsOf(name: string): string[] {
  const found: string[] = [];
  JSON.parse(document, function (this: unknown, key, value: unknown) {
    const { description } = Object(value) as { readonly description?: unknown };
    if ((key === name || Object(value).name === name) && typeof description === "string")
      found.push(description);
    return value;
  });
  return found;
}

async function expectSame(path: string, queries: readonly string[]): Promise<void> {
  const plain = await client.get(path);
  expect(plain.status).toBe(200);
  for (const query of queries) {
    const { status, body } = await client.get(`${path}?${query}`);
    expect([query, status, body.toString()]).toEqual([query, 200, plain.body.toString()]);
    const [name = ""] = query.split("=");
    expect(descriptionsOf(name).join()).toContain("Changes nothing");
  }
}

describe("an empty text", () => {
  it("filters nothing in a list, and names no language", async () => {
    const body = { text: "Alike.", seed: 1 };
    const path = `/v1/text-to-speech/${VOICE}?output_format=pcm_16000`;
    const plain = await client.post(path, body);
    const asked = await client.post(path, { ...body, language_code: "" });
    expect([plain.status, asked.status]).toEqual([200, 200]);
    expect(asked.body.equals(plain.body)).toBe(true);
    const ofVoices = [
      "search",
      "gender",
      "age",
      "accent",
      "language",
      "use_cases",
      "collection_id",
      "voice_ids",
    ];
    const lists = [
      ["/v1/history", ["voice_id", "model_id", "search", "start_after_history_item_id"]],
      ["/v2/voices", [...ofVoices, "fine_tuning_state", "next_page_token"]],
      ["/v1/audio-isolation/history", ["search"]],
    ] as const;
    for (const [list, names] of lists) {
      const all = (await client.get(list)).body.toString();
      for (const name of names) {
        const { status, body: listed } = await client.get(`${list}?${name}=`);
        expect([name, status, listed.toString()]).toEqual([name, 200, all]);
      }
    }
    expect((await client.get("/v1/history")).body.toString()).toContain('"history_item_id"');
  });
});

describe("without effect", () => {
  it("show_legacy: no voice is a legacy one", async () => {
    measures("GET /v1/voices", "show_legacy", "none: no voice is a legacy one");
    await expectSame("/v1/voices", ["show_legacy=true", "show_legacy=false"]);
    expect((await client.get("/v1/voices")).body.toString()).not.toContain('"is_legacy":true');
  });

  it("with_settings: the vendor ignores it, too", async () => {
    measures("GET /v1/voices/{voice_id}", "with_settings", "none: the vendor ignores it, too");
    await expectSame(`/v1/voices/${VOICE}`, ["with_settings=true", "with_settings=false"]);
  });

  it("what shared voices are left out for: there are none", async () => {
    measures("GET /v2/voices", "include_custom_rates", "none: no voice is a shared one");
    measures("GET /v2/voices", "include_live_moderated", "none: no voice is a shared one");
    const asked = ["include_custom_rates=true", "include_live_moderated=true"];
    await expectSame("/v2/voices", [...asked, "include_custom_rates=false", "include_live_moderated=false"]);
    expect((await client.get("/v1/voices")).body.toString()).not.toMatch(/"sharing":[^n]/);
  });

  it("use_pvc_as_ivc: no voice is a professional clone", async () => {
    measures(
      "POST /v1/text-to-speech/{voice_id}",
      "use_pvc_as_ivc",
      "none: no voice is a professional clone",
    );
    measures("POST /v1/text-to-dialogue", "use_pvc_as_ivc", "none: no voice is a professional clone");
    const inputs = [VOICE, OTHER_VOICE].map((voice_id) => ({ text: "Alike.", voice_id }));
    for (const [path, body] of [
      [`/v1/text-to-speech/${VOICE}?output_format=pcm_16000`, { text: "Alike." }],
      ["/v1/text-to-dialogue?output_format=pcm_16000", { inputs }],
    ] as const) {
      const plain = await client.post(path, { ...body, seed: 1 });
      const asked = await client.post(path, { ...body, seed: 1, use_pvc_as_ivc: true });
      expect([plain.status, asked.status]).toEqual([200, 200]);
      expect(asked.body.equals(plain.body)).toBe(true);
    }
    expect(descriptionsOf("use_pvc_as_ivc").join()).toContain("Changes nothing");
    expect((await client.get("/v1/voices")).body.toString()).not.toContain('"category":"professional"');
  });
});
