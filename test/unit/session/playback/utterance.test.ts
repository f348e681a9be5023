import { describe, expect, it } from "vitest";
import { Utterance } from "../../../../src/session/playback/utterance.ts";

const OPTIONS = { id: "u", acceptedMs: 0, textDefaults: {} };

function dialogue(...texts: readonly string[]): Utterance {
  const inputs = texts.map((text) => ({ text, voice_id: "v" }));
  return Utterance.ofDialogue(OPTIONS, { type: "dialogue", inputs });
}

describe("Utterance.inputsBefore()", () => {
  it("counts the inputs of a dialogue that end where it goes on, or before", () => {
    const utterance = dialogue("abc", "de", "fgh");
    expect([0, 2, 3, 4, 5, 7].map((at) => utterance.inputsBefore(at))).toEqual([0, 0, 1, 1, 2, 2]);
  });

  it("is none at the beginning, though the first input be empty; with the others it counts", () => {
    const utterance = dialogue("", "abc", "de");
    expect([0, 1, 3].map((at) => utterance.inputsBefore(at))).toEqual([0, 1, 2]);
  });

  it("is none of a text", () => {
    const utterance = Utterance.ofText(OPTIONS, { type: "speak", text: "abc def", voice_id: "v" });
    expect(utterance.inputsBefore(4)).toBe(0);
  });
});
