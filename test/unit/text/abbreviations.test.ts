import { describe, expect, it } from "vitest";
import { isMonth, keepsStop, startsSentences, stopMeaning } from "../../../src/text/abbreviations.ts";

describe("stopMeaning", () => {
  it.each([
    ["Dr", "never"],
    ["(e.g", "never"],
    ["z.B", "never"],
    ["No", "number"],
    ["“pp", "number"],
    ["J", "initial"],
    ["А", "initial"],
    ["I", "maybe"],
    ["я", "maybe"],
    ["डॉ", "initial"],
    ["네", "end"],
    ["好", "end"],
    ["ดร", "never"],
    ["U.S.A", "maybe"],
    ["Ph.D", "maybe"],
    ["etc", "maybe"],
    ["house", "end"],
    ["3.14", "end"],
    ["example.com", "end"],
    ["", "end"],
  ])("of %j is %s", (token, meaning) => {
    expect(stopMeaning(token)).toBe(meaning);
  });
});

describe("keepsStop", () => {
  it("keeps the stop of abbreviations and initials, not of sentences", () => {
    expect(["Dr", "U.S", "etc", "J", "e.g"].every(keepsStop)).toBe(true);
    expect(["house", "I", "no", "3"].some(keepsStop)).toBe(false);
  });
});

describe("startsSentences", () => {
  it("knows function words, in any case and with either apostrophe", () => {
    expect(["The", "I’m", "it's", "Und", "Mais"].every(startsSentences)).toBe(true);
    expect(["Senate", "Smith", ""].some(startsSentences)).toBe(false);
  });
});

describe("isMonth", () => {
  it("knows the months of languages that write a stop behind the day", () => {
    expect(["Mai", "januar"].every(isMonth)).toBe(true);
    expect(["Dann", ""].some(isMonth)).toBe(false);
  });
});
