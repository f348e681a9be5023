import { expect, it } from "vitest";
import { labelledLanguage } from "../../../../src/service/convert/stored-voice.ts";

it("labelledLanguage: an accent that the engine lacks leaves the language, as older stores have it", () => {
  expect(labelledLanguage({ language: "pt-PT" })).toEqual({ code: "pt", accent: "pt" });
  expect(labelledLanguage({ language: "de" })).toEqual({ code: "de", accent: null });
  expect(labelledLanguage({ language: "de-AT" })).toEqual({ code: "de", accent: null });
  expect(labelledLanguage({ language: "zh_Hant_HK" })).toEqual({ code: "zh", accent: null });
  for (const language of ["xx-YY", "", "-"]) expect(labelledLanguage({ language })).toBeUndefined();
  expect(labelledLanguage({})).toBeUndefined();
});
