import { describe, expect, it } from "vitest";
import { isBlank, KIND, kindOf } from "../../../src/text/characters.ts";

describe("kindOf", () => {
  it.each([
    [" \t\r\u3000\u200b", KIND.space],
    ["\n\u2028\u2029\u0085", KIND.newline],
    ["\u00a0\u202f\ufeff", KIND.glue],
    ["\u200e\u00ad\u2060\u0000", KIND.format],
    ["\u0301\u200d\u200c\ufe0f🏽\u0e33\u0947", KIND.extend],
    ["azéяß", KIND.lower],
    ["AZÉЯ", KIND.upper],
    ["שמकع한ª", KIND.letter],
    ["0٣²", KIND.digit],
    ["我々ーあア〇ไ๓ລក", KIND.unspaced],
    ["😀🇩👍🏳", KIND.emoji],
    [".", KIND.dot],
    ["!?", KIND.stop],
    ["。！？।؟۔", KIND.wideStop],
    [",;:", KIND.clause],
    ["、，：；،", KIND.wideClause],
    ["—―", KIND.dash],
    ["…", KIND.ellipsis],
    ["([{「（", KIND.open],
    [")]}」）”’»", KIND.close],
    ["“‘«", KIND.openQuote],
    ["\"'", KIND.quote],
    ["*_~`#", KIND.emphasis],
    ["-/@&%¿·", KIND.punctuation],
    ["$+<=>€™❤→", KIND.symbol],
  ])("puts each of %j into its class", (characters, kind) => {
    for (const character of characters)
      expect([character, kindOf(character.codePointAt(0) ?? 0)]).toEqual([character, kind]);
  });
});

describe("isBlank", () => {
  it("is true for white space and what can't be seen, false for a mark or a letter", () => {
    expect(["", " \n", "\u200b\u2060\u00a0\ufeff"].every(isBlank)).toBe(true);
    expect([".", "a", "😀", "\u0301"].some(isBlank)).toBe(false);
  });
});
