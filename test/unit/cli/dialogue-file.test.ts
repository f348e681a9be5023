import { describe, expect, test } from "vitest";
import { parseDialogue } from "../../../src/cli/say/dialogue-file.ts";

describe("parseDialogue()", () => {
  test("reads lines, and goes on where a line has no name", () => {
    expect(parseDialogue("Anna: Hello: you!\n\n  Bob:  Hm.\r\nand more\n", "f")).toEqual([
      { voice: "Anna", text: "Hello: you!" },
      { voice: "Bob", text: "Hm. and more" },
    ]);
  });

  test("reads JSON with voice_id or voice", () => {
    expect(parseDialogue(' [{"text":"a","voice_id":"1"},{"text":"b","voice":"Bob"}]', "f")).toEqual([
      { voice: "1", text: "a" },
      { voice: "Bob", text: "b" },
    ]);
  });

  test.each([
    ["no name here", 'Dialogue "f": line 1, expected "Voice: text"'],
    [" \n", 'Dialogue "f": empty, expected at least one line'],
    ["[]", 'Dialogue "f": empty'],
    ["[{]", 'Dialogue "f": no JSON:'],
    ['[{"text":"a","voice_id":"1"},{"text":"b"}]', 'entry 1, expected {"text": "...", "voice_id": "..."}'],
  ])("refuses %j and says where", (content, message) => {
    expect(() => parseDialogue(content, "f")).toThrow(message);
  });
});
