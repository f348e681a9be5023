/** docs/asyncapi.json is what the schemas say, it is whole, and the gateway hands it out. */
import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { asyncApi } from "../src/protocol/asyncapi.ts";
import { COMMANDS } from "../src/protocol/commands.ts";
import { EVENTS } from "../src/protocol/events.ts";
import { parseSettings } from "../src/session/listener-settings.ts";
import { VERSION } from "../src/version.ts";
import { gatewayAt } from "./helpers/start-gateway.ts";

const PAGE = new URL("../docs/asyncapi.json", import.meta.url);
const document = JSON.parse(JSON.stringify(asyncApi(VERSION)));

/** All values under a key, anywhere in the document. */
function valuesOf(key: string, value: unknown): unknown[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [
    ...(name === key ? [inner] : []),
    ...valuesOf(key, inner),
  ]);
}

/** What a reference such as `#/components/messages/x` leads to. */
function resolved(reference: unknown): unknown {
  let value: unknown = document;
  for (const part of String(reference).replace("#/", "").split("/")) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<string, unknown>)[part];
  }
  return value;
}

describe("the AsyncAPI document", () => {
  it("docs/asyncapi.json: is up to date", () => {
    const text = `${JSON.stringify(document, null, 1)}\n`;
    if (process.env.UPDATE_DOCS === "1") writeFileSync(PAGE, text);
    expect(readFileSync(PAGE, "utf8"), "stale: UPDATE_DOCS=1 npx vitest run test/asyncapi.test.ts").toBe(
      text,
    );
  });

  it("messages: every command, every event and the audio, each with its payload", () => {
    const names = [
      ...Object.keys(COMMANDS).map((type) => `command.${type}`),
      ...Object.keys(EVENTS).map((type) => `event.${type}`),
      "audio",
    ];
    expect(Object.keys(document.components.messages)).toEqual(names);
    expect(document.components.messages["event.words"].payload.required).toContain("words");
    expect(document.components.messages["command.speak"].payload.required).toEqual(["type", "text"]);
  });

  it("query: has the keys that the gateway reads, and no other", () => {
    const keys = Object.keys(document.channels.session.bindings.ws.query.properties);
    const known = ["role", "format", "frame_ms", "framing", "pace", "lead_ms", "policy", "events", "offsets"];
    expect(keys).toEqual(expect.arrayContaining([...known, "resume", "seq", "at_ms"]));
    const values: Record<string, string> = { frame_ms: "20", lead_ms: "0", format: "none", events: "none" };
    for (const key of keys) {
      const query = new URLSearchParams({ resume: "x", [key]: values[key] ?? "" });
      let ignored: readonly string[] = [];
      try {
        ({ ignored } = parseSettings(query, { leadMs: 300, maxLeadMs: 10_000 }));
      } catch (thrown) {
        // An empty value of a key that is read is refused by that key's name.
        expect(thrown).toMatchObject({ field: key });
      }
      expect(ignored).toEqual([]);
    }
    expect(
      parseSettings(new URLSearchParams({ colour: "red" }), { leadMs: 300, maxLeadMs: 10_000 }).ignored,
    ).toEqual(["colour"]);
  });

  it("references: each leads somewhere", () => {
    const references = valuesOf("$ref", document);
    expect(references.length).toBeGreaterThan(50);
    expect(references.filter((reference) => resolved(reference) === undefined)).toEqual([]);
  });

  it("GET /asyncapi.json: answers with it", async () => {
    await using gateway = await gatewayAt("http://127.0.0.1:9");
    const response = await fetch(`${gateway.url}/asyncapi.json`);
    expect([response.status, await response.json()]).toEqual([200, document]);
  });
});
