/** docs/protocol.md has every message and every event, each with an example that is true. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { COMMANDS, parseCommand } from "../src/protocol/commands.ts";
import { EVENTS } from "../src/protocol/events.ts";
import { checkedEvent } from "./helpers/checked-event.ts";

const page = readFileSync(new URL("../docs/protocol.md", import.meta.url), "utf8");

/** Name -> JSON examples, of the sections `### \`name\`` in a chapter. */
function examplesOf(chapter: string): Map<string, string[]> {
  const [, text = ""] = page.split(`\n## ${chapter}\n`);
  const [body = ""] = text.split("\n## ");
  return new Map(
    body
      .split("\n### ")
      .slice(1)
      .filter((section) => section.startsWith("`"))
      .map((section) => [
        /^`([^`]+)`/.exec(section)?.[1] ?? "",
        [...section.matchAll(/```json\n([\s\S]+?)\n```/g)].map(([, json = ""]) => json),
      ]),
  );
}

describe("docs/protocol.md", () => {
  const commands = examplesOf("Messages that you send");
  const events = examplesOf("Events that you get");

  it("messages: one heading for each, and no other", () => {
    expect([...commands.keys()].toSorted()).toEqual(Object.keys(COMMANDS).toSorted());
  });

  it("events: one heading for each, and no other", () => {
    expect([...events.keys()].toSorted()).toEqual(Object.keys(EVENTS).toSorted());
  });

  it.each([...commands])("message %s: its example is taken whole", (type, examples) => {
    expect(examples.length).toBeGreaterThan(0);
    for (const json of examples) {
      const { command, ignored } = parseCommand(json);
      expect([command.type, ignored]).toEqual([type, []]);
    }
  });

  it.each([...events])("event %s: its example is what the schema says", (type, examples) => {
    expect(examples.length).toBeGreaterThan(0);
    for (const json of examples) expect(checkedEvent(json).type).toBe(type);
  });
});
