/** docs/asyncapi.json is what the schemas say, it is whole, and the gateway hands it out. */
import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { asyncApi } from "../src/protocol/asyncapi.ts";
import { EVENTS } from "../src/protocol/events.ts";
import { COMMANDS } from "../src/protocol/native.ts";
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
