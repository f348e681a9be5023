/** Every mnemonic is one sound of the engine's, in each accent and beside every other language. */
import { beforeAll, describe, expect, it } from "vitest";
import { readPronunciation } from "../../../../src/service/text/phonemes.ts";
import {
  englishPhonemes,
  findLanguage,
  LISTED_LANGUAGES,
} from "../../../../src/service/voice/engine/languages.ts";
import { VOICES } from "../../../../src/service/voice/engine/voices.ts";
import { loadSounds, type SoundsOf } from "../../../helpers/engine-sounds.ts";

let soundsOf: SoundsOf;
beforeAll(async () => {
  soundsOf = await loadSounds();
});

function mnemonicsOf(phoneme: string, alphabet: "ipa" | "cmu-arpabet"): string {
  const read = readPronunciation(phoneme, alphabet);
  if ("unknown" in read) throw new Error(`Unknown: ${read.unknown}`);
  return read.mnemonics;
}

const IPA =
  "iː uː ɑː ɔː ɜː eɪ aɪ ɔɪ aʊ oʊ i ɪ e ɛ æ ɑ ɔ o ʌ ʊ u ə ɚ tʃ dʒ p b t d k ɡ f v θ ð s z ʃ ʒ h m n ŋ l ɹ w j".split(
    " ",
  );
/** CMU's own list: sound and a word that has it. */
const ARPABET =
  "AA0 AE1 AH0 AH1 AO1 AW1 AY1 B CH D DH EH1 ER0 EY1 F G HH IH1 IY1 JH K L M N NG OW1 OY1 P R S SH T TH UH1 UW1 V W Y Z ZH".split(
    " ",
  );
const ENGLISH = [
  ...new Set(VOICES.filter(({ language }) => language === "en").map(({ engine: name }) => name)),
];

describe("phonemes", () => {
  it("ipa: each symbol is one sound, and the one that it stands for", () => {
    for (const symbol of IPA) {
      const isVowel = /^[iuɑɔɜeaoɪɛæʌʊəɚ]/.test(symbol);
      const word = isVowel ? `p${symbol}p` : `${symbol}ɑːp`;
      const sounds = soundsOf(englishPhonemes(mnemonicsOf(word, "ipa"), "en-us"), "en-us");
      expect(sounds, symbol).toHaveLength(3);
      const expected = { ɑ: "ɑː", a: "æ" }[symbol] ?? symbol;
      expect(sounds[isVowel ? 1 : 0], symbol).toBe(expected);
    }
  });

  it("cmu-arpabet: each symbol is one sound, in every accent", () => {
    for (const accent of ENGLISH) {
      for (const symbol of ARPABET) {
        const word = /\d$/.test(symbol) ? `P ${symbol} P` : `${symbol} AA1 P`;
        expect(
          soundsOf(englishPhonemes(mnemonicsOf(word, "cmu-arpabet"), accent), accent),
          `${accent} ${symbol}`,
        ).toHaveLength(3);
      }
    }
  });

  it("stress stands where the vowel is, spaces between words, breaks and ties say nothing", () => {
    expect(mnemonicsOf("təˈmɑː.toʊ", "ipa")).toBe("t|@|m|'A:|t|oU");
    expect(mnemonicsOf("/ˌt͡ʃɛk ɪt/", "ipa")).toBe("tS|,E|k I|t");
    expect(mnemonicsOf("T AH0 M AA1 T OW0", "cmu-arpabet")).toBe("t|@|m|'A:|t|oU");
    expect(mnemonicsOf("eː", "ipa")).toBe("e|:");
    expect(mnemonicsOf("iç", "ipa")).toBe(mnemonicsOf("ic\u0327", "ipa"));
  });

  it("names the symbol that is no sound of English", () => {
    expect(readPronunciation("ʁy", "ipa")).toEqual({ unknown: "ʁ" });
    expect(readPronunciation("a\u0303", "ipa")).toEqual({ unknown: "ã" });
    expect(readPronunciation("T OX1", "cmu-arpabet")).toEqual({ unknown: "OX1" });
    expect(readPronunciation("T1", "cmu-arpabet")).toEqual({ unknown: "T1" });
    expect(readPronunciation(" ", "ipa")).toEqual({ unknown: " " });
    expect(readPronunciation("]] hello [[", "ipa")).toHaveProperty("mnemonics");
    expect(mnemonicsOf("]]h[[", "ipa")).toBe("h");
  });

  it("in every language: the word sounds English, and what follows sounds as before", () => {
    const phonemes = mnemonicsOf("təˈmɑːtoʊ", "ipa");
    const languages = LISTED_LANGUAGES.map(({ language_id: code }) => findLanguage(code)?.engine ?? "");
    for (const name of new Set([...languages, ...VOICES.map(({ engine }) => engine)])) {
      const [before, after] = ["1", "2 3"];
      const rest = soundsOf(`${before} ${after}`, name);
      const all = soundsOf(`${before} ${englishPhonemes(phonemes, name)} ${after}`, name);
      // Once: a word is said twice where the engine does not know the language that comes behind it.
      expect(all.join("").match(/təm[ɑa][ː:][tɾ]/g), name).toHaveLength(1);
      const last = rest.slice(-4);
      expect(all.slice(all.length - last.length), name).toEqual(last);
    }
  });
});
