import { describe, expect, it } from "vitest";
import { LetterRules } from "../../../../src/timing/visemes/letter-rules.ts";
import { phonesOfArpabet, phonesOfIpa } from "../../../../src/timing/visemes/phones.ts";
import { soundsOfWord } from "../../../../src/timing/visemes/pronounce.ts";
import { taggedPhones } from "../../../../src/timing/visemes/tagged-phones.ts";

const said = (word: string, language?: string): string =>
  soundsOfWord(word, language)
    .flatMap(({ phones }) => phones)
    .join(" ");

describe("letters to sounds", () => {
  it.each([
    ["the", "DH AX"],
    ["hello", "HH EH L OW"],
    ["through", "TH R UW"],
    ["though", "DH OW"],
    ["thought", "TH AO T"],
    ["people", "P IY P AX L"],
    ["nation", "N EY SH AX N"],
    ["picture", "P IH K CH ER"],
    ["voice", "V OY S"],
    ["table", "T EY B AX L"],
    ["wanted", "W AA N T IH D"],
    ["one", "W AH N"],
    ["don’t", "D OW N T"],
    ["BROWN", "B R AW N"],
    ["42", "F AO R T UW"],
  ])("English %s is %s", (word, phones) => expect(said(word)).toBe(phones));

  it.each([
    ["de", "Straße", "SH T R AA S EH"],
    ["de-AT", "auch", "AW X"],
    ["fr", "eau", "OW"],
    ["fr", "enfants", "AA F AA"],
    ["es", "lluvia", "Y UW B Y AA"],
    ["it", "ciao", "CH AA AO"],
    ["pt", "não", "N AW"],
    ["nl", "goed", "X UW D"],
    ["pl", "cześć", "CH EH SH CH"],
    ["fi", "hyvää", "HH UE V AE AE"],
    ["fi", "5", "V IY IY S IY"],
    ["sv", "på", "P OW"],
    ["ru", "привет", "P R IY V EH T"],
    ["el", "καλημέρα", "K AA L IY M EH R AA"],
    ["ko", "안녕", "D AA D AO"],
    ["zh", "你好", "D AH D AH"],
  ])("%s: %s is %s", (language, word, phones) => expect(said(word, language)).toBe(phones));

  it("says which letters make a sound", () => {
    expect(soundsOfWord("ship")).toEqual([
      { start: 0, end: 2, phones: ["SH"] },
      { start: 2, end: 3, phones: ["IH"] },
      { start: 3, end: 4, phones: ["P"] },
    ]);
    expect(soundsOfWord("-'!")).toEqual([]);
  });

  it("refuses a rule with an unknown sound", () => {
    expect(() => new LetterRules("(a) QQ")).toThrow(TypeError);
  });
});

describe("transcriptions", () => {
  it("reads IPA with stress, length and tie bars", () => {
    expect(phonesOfIpa("ˈt͡ʃeɪnʒ")).toEqual(["CH", "EY", "N", "ZH"]);
    expect(phonesOfIpa("ˈmæːdɪsən")).toEqual(["M", "AE", "D", "IY", "S", "AX", "N"]);
  });

  it("reads Arpabet with stress", () => {
    expect(phonesOfArpabet("M AE1 D IH0 S AH0 N ??")).toEqual(["M", "AE", "D", "IH", "S", "AH", "N"]);
  });

  it("are found around their word only, and shared out among several", () => {
    const text = `A <phoneme alphabet="ipa" ph="təˈmɑː bi">tomato bee</phoneme> is <phoneme alphabet='cmu-arpabet' ph='F UW1'>foo</phoneme> here <phoneme alphabet="x-sampa" ph="a">x</phoneme>`;
    const at = (word: string) => {
      const start = text.indexOf(word, text.indexOf(">") - 1);
      return taggedPhones(text, { start, end: start + word.length });
    };
    expect(at("tomato")).toEqual(["T", "AX", "M", "AA"]);
    expect(at("bee")).toEqual(["B", "IY"]);
    expect(at("is")).toBeNull();
    expect(at("foo")).toEqual(["F", "UW"]);
    expect(at("here")).toBeNull();
    expect(at("x<")).toBeNull();
  });
});
