/** docs/protocol.md has every message and every event, each with an example that is true. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { AUDIO_FORMATS } from "../src/audio/formats.ts";
import { COMMANDS, parseCommand } from "../src/protocol/commands.ts";
import { EVENTS } from "../src/protocol/events.ts";
import { type AudioFormat, LISTENER_FORMATS } from "../src/protocol/vocabulary.ts";
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

  const audio = page.split("\n### Audio\n")[1]?.split("\n## ")[0] ?? "";

  it.each(LISTENER_FORMATS)("audio: the table has %s, in one row", (format) => {
    const rows = audio.split("\n").filter((line) => line.startsWith("|") && line.includes(`\`${format}\``));
    expect(rows, "Add a row to Audio in docs/protocol.md").toHaveLength(1);
  });

  it.each(Object.keys(AUDIO_FORMATS) as AudioFormat[])("audio: the payload type of %s is named", (format) => {
    const [line = ""] = audio.split("\n").filter((one) => one.startsWith("With `framing=rtp`"));
    const { rtpPayloadType } = AUDIO_FORMATS[format];
    const why = `Name payload type ${rtpPayloadType} below the table of Audio in docs/protocol.md`;
    expect(line.match(/\d+(?= \()/g), why).toContain(`${rtpPayloadType}`);
  });

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
    const checked = examples.map((json) => {
      try {
        return checkedEvent(json).type;
      } catch (thrown) {
        throw new Error(`Mend its example in docs/protocol.md, section \`${type}\``, { cause: thrown });
      }
    });
    expect(new Set(checked)).toEqual(new Set([type]));
  });
});
