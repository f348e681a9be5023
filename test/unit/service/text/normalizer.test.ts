/** The settings of apply_text_normalization in every language, and Japanese in kana. */

import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { kanaOfNumber } from "../../../../src/service/text/japanese.ts";
import { Locales } from "../../../../src/service/text/locale.ts";
import { type Normalization, Normalizer } from "../../../../src/service/text/normalizer.ts";
import { Engine } from "../../../../src/service/voice/engine/engine.ts";
import { findLanguage, LISTED_LANGUAGES } from "../../../../src/service/voice/engine/languages.ts";
import { VOICES } from "../../../../src/service/voice/engine/voices.ts";
import { loadSounds, type SoundsOf } from "../../../helpers/engine-sounds.ts";
import { JOB_DEFAULTS, sayJob } from "../../../helpers/voice-job.ts";

const locales = new Locales();
let engine: Engine;
let soundsOf: SoundsOf;
beforeAll(async () => {
  engine = await Engine.load();
  soundsOf = await loadSounds();
});

/** The text with what is said for what is written. */
function said(text: string, language: string, normalization: Normalization, readsJapanese = false): string {
  let at = 0;
  let out = "";
  const normalizer = new Normalizer({ normalization, readsJapanese }, locales);
  for (const { start, end, text: words } of normalizer.normalize(text, language)) {
    out += text.slice(at, start) + words;
    at = end;
  }
  return out + text.slice(at);
}

interface Heard {
  readonly text: string;
  readonly seconds: number;
  readonly samples: string;
}

function hear(text: string, languageCode: string, normalization: Normalization): Heard {
  const voiceId = VOICES[0]?.id ?? "";
  const chunks = sayJob(engine, {
    ...JOB_DEFAULTS,
    normalization,
    isRepeatable: true,
    inputs: [{ text, voiceId, languageCode }],
  });
  const audio = Buffer.concat(chunks.map((chunk) => chunk.audio));
  const characters = chunks.flatMap(({ timing }) => timing?.normalizedAlignment?.characters ?? []);
  return { text: characters.join(""), seconds: audio.length / 32_000, samples: audio.toString("base64") };
}

const READS_NUMBERS = LISTED_LANGUAGES.map(({ language_id: code }) => code).filter((code) => code !== "cv");

describe("apply_text_normalization", () => {
  it("cv is the only language whose engine voice reads no numbers", () => {
    const silent = LISTED_LANGUAGES.filter(
      ({ language_id: code }) => soundsOf("12345", findLanguage(code)?.engine ?? "").length === 0,
    );
    expect(silent.map(({ language_id: code }) => code)).toEqual(["cv"]);
  });

  it("on, auto and off: three different answers in every language that reads numbers", {
    timeout: 240_000,
  }, () => {
    const text = "12345, 2024-03-05, $5";
    for (const code of READS_NUMBERS) {
      const [on, auto, off] = [hear(text, code, "on"), hear(text, code, "auto"), hear(text, code, "off")];
      expect(new Set([on.text, auto.text]).size, code).toBe(2);
      expect(new Set([on.samples, auto.samples, off.samples]).size, code).toBe(3);
      // Nothing is written out, and nothing of the text is lost.
      expect(off.text, code).toBe(text);
    }
  });

  it("off: digits are heard one by one in every language", () => {
    for (const code of READS_NUMBERS) {
      const [digits, spaced] = [hear("4711", code, "off"), hear("4 7 1 1", code, "auto")];
      expect(digits.samples, code).toBe(spaced.samples);
      expect(digits.text, code).toBe("4711");
    }
  });

  it("on: dates, currency and percent have no sign left in any language", () => {
    for (const code of READS_NUMBERS) {
      expect(said("5 €", code, "on"), code).toMatch(/\p{L}/u);
      expect(said("20%", code, "on"), code).toMatch(/^[^%٪]*\p{L}[^%٪]*$/u);
      expect(said("2024-03-05", code, "on"), code).toMatch(/\p{L}/u);
      expect(said("2024-03-05", code, "on"), code).not.toContain("-03-");
      expect(said("14:30", code, "on"), code).not.toContain(":");
    }
  });

  it.each([
    [
      "de",
      "Am 12.01.2024 um 9:05 kostet es 1.234,56 € & 3,5 %.",
      "Am 12. Januar 2024 um 9 Uhr 5 kostet es 1234,56 Euro und 3,5 Prozent.",
    ],
    ["de", "1,234.56 $ und 5 km/h, 25 °C", "1234,56 US-Dollar und 5 Kilometer pro Stunde, 25 Grad Celsius"],
    [
      "de",
      "Version 1.2.3, 192.168.0.1, 31.02.2024, 25:00, 5 m/s",
      "Version 1.2.3, 192.168.0.1, 31.02.2024, 25:00, 5 m/s",
    ],
    ["fr", "Le 3/4/2024 à 14:30 : 12 345 €", "Le 3 avril 2024 à 14 heures 30 : 12345 euros"],
    ["es", "US$1 y 20%", "1 dólar estadounidense y 20 por ciento"],
    ["ru", "5 ₽, 1 €, 12.03.2024", "5 российских рублей, 1 евро, 12 марта 2024"],
    ["zh", "¥5 20% 14:30", "5人民币 百分之20 14点30分"],
    ["la", "5 €, 20%, 2024-03-05", "5 euronum, 20 centesimae, 5 Martii 2024"],
    ["zh", "价格是$12.50，重3kg，占50%的人。", "价格是12.50美元，重3千克，占百分之50的人。"],
    ["zh", "￥5，20％", "5人民币，百分之20"],
    // The magnitude is a part of the number.
    ["zh", "$3000万，€5億", "$3000万，€5億"],
    ["ja", "$12.50と3kgで50%です。", "12.50べいどると3 キログラムで50 パーセントです。"],
    ["ja", "17:30に2020-03-04まで", "じゅうしちじさんじゅっぷんににせんにじゅうねんさんがつよっかまで"],
    ["ko", "무게는 3kg입니다. 50%입니다.", "무게는 3킬로그램입니다. 50 퍼센트입니다."],
    ["th", "หนัก3kgคือ50%ครับ", "หนัก3 กิโลกรัมคือ50\u00a0เปอร์เซ็นต์ครับ"],
    ["de", "abc3kg 3kgs 50%ig", "abc3kg 3kgs 50%ig"],
  ])("on: %s: %s", (code, text, expected) => {
    expect(said(text, code, "on")).toBe(expected);
    expect(said(text, code, "auto")).toBe(text);
  });

  it("on and auto: English leaves plain whole numbers to the engine unless all is asked for", () => {
    const text = "Take 3 of 250 for $5 in 1984.";
    expect(said(text, "en", "auto")).toBe("Take 3 of 250 for five dollars in nineteen eighty-four.");
    expect(said(text, "en", "on")).toBe(
      "Take three of two hundred fifty for five dollars in nineteen eighty-four.",
    );
    expect(said(text, "en", "off")).toBe(text);
    expect(said("-5 and 007", "en", "auto")).toBe("minus five and zero zero seven");
  });

  it("claims spans in order and within any text", () => {
    const part = fc.constantFrom(
      "1",
      "23",
      "456",
      ".",
      ",",
      " ",
      "€",
      "$",
      "%",
      ":",
      "/",
      "-",
      "km",
      "a",
      "年",
      "三",
      "百",
      "人",
      "\u00a0",
      "°C",
      "&",
    );
    const text = fc.array(part, { maxLength: 14 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(
        text,
        fc.constantFrom("de", "ja", "la", "zh", "hi", "en"),
        fc.boolean(),
        (written, language, readsJapanese) => {
          let last = 0;
          const normalizer = new Normalizer({ normalization: "on", readsJapanese }, locales);
          for (const { start, end, text: words } of normalizer.normalize(written, language)) {
            expect(start).toBeGreaterThanOrEqual(last);
            expect(end).toBeGreaterThan(start);
            expect(words).not.toMatch(/NaN|undefined|Invalid/);
            last = end;
          }
          expect(last).toBeLessThanOrEqual(written.length);
        },
      ),
    );
  });
});

describe("apply_language_text_normalization", () => {
  it.each([
    ["2024年3月5日は三千五百円です", "にせんにじゅうよねんさんがついつかはさんぜんごひゃくえんです"],
    ["今日は午後3時15分、20人が来ます", "きょうはごごさんじじゅうごふん、にじゅうにんがきます"],
    ["10分と14分と20分", "じゅっぷんとじゅうよんぷんとにじゅっぷん"],
    [
      "一二三、一万二千、1,234円、50%",
      "いちにさん、いちまんにせん、せんにひゃくさんじゅうよえん、ごじゅうぱーせんと",
    ],
    ["一人と二人と四月", "ひとりとふたりとしがつ"],
    // A number's kanji inside a word is none, and one kanji beside others is read otherwise.
    ["一般的な千葉の音楽", "一般的な千葉の音楽"],
  ])("reads %s in kana", (text, expected) => {
    expect(said(text, "ja", "auto", true)).toBe(expected);
    expect(said(text, "ja", "auto", false)).toBe(text);
    expect(said(text, "de", "auto", true)).toBe(text);
  });

  it("reads in kana what `on` has written out, too", () => {
    expect(said("$5 2024-04-20 14:30", "ja", "on", true)).toBe(
      "5べいどる にせんにじゅうよねんしがつはつか じゅうよじさんじゅっぷん",
    );
  });

  it("the engine can read it: no sound of its word for an unknown letter is left", () => {
    const text = "三千五百円です";
    const written = soundsOf(text, "ja").join("");
    const read = soundsOf(said(text, "ja", "auto", true), "ja").join("");
    expect(written).toContain("tʃaɪniːz");
    expect(read).not.toContain("tʃaɪniːz");
    expect(read).toBe(soundsOf("さんぜんごひゃくえんです", "ja").join(""));
  });

  it("numbers are read as the engine reads digits", () => {
    for (const value of [0, 4, 10, 17, 100, 305, 608, 1000, 3001, 8888, 10_000, 120_345, 100_000_000]) {
      expect(soundsOf(kanaOfNumber(value), "ja").length, String(value)).toBeGreaterThan(0);
    }
    expect([300, 600, 800, 3000, 8000, 1_0000, 1_0000_0000_0000].map(kanaOfNumber)).toEqual([
      "さんびゃく",
      "ろっぴゃく",
      "はっぴゃく",
      "さんぜん",
      "はっせん",
      "いちまん",
      "いっちょう",
    ]);
  });
});
