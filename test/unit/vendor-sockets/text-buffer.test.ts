import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DialogueBuffer } from "../../../src/vendor-sockets/dialogue-buffer.ts";
import { TextBuffer } from "../../../src/vendor-sockets/text-buffer.ts";

function filled(text: string, keepsMarkup = false): TextBuffer {
  const buffer = new TextBuffer(keepsMarkup);
  buffer.push(text);
  return buffer;
}

describe("TextBuffer", () => {
  it("takes whole words, and keeps the word that may go on", () => {
    const buffer = filled("Hello there, gen");
    expect(buffer.takeWords()).toBe("Hello there, ");
    buffer.push("eral.");
    expect(buffer.takeAll()).toEqual(["general."]);
    expect(buffer.chars).toBe(0);
  });

  it("takes text without blanks as it is, but no half of a character", () => {
    expect(filled("今日はいい天気ですね").takeWords()).toBe("今日はいい天気ですね");
    const buffer = filled("今日はいい天気\ud83d");
    expect(buffer.takeWords()).toBe("今日はいい天気");
    buffer.push("\ude00");
    expect(buffer.takeAll()).toEqual(["\ud83d\ude00"]);
  });

  it("a long word is not cut in its middle, unless it is longer than words are", () => {
    const buffer = filled("See https://example.org/docs/reference/spe");
    expect(buffer.takeWords()).toBe("See ");
    buffer.push("ech now");
    expect(buffer.takeWords()).toBe("https://example.org/docs/reference/speech ");
    expect(filled("unfinish").takeWords()).toBeNull();
    expect(filled("x".repeat(300)).takeWords()).toBe("x".repeat(300));
  });

  it("blanks that keep a socket alive are nothing; blanks between words are kept, across generations too", () => {
    const buffer = new TextBuffer(false);
    for (const text of [" ", " ", "Hello", " ", " ", "there"]) buffer.push(text);
    expect(buffer.takeAll()).toEqual(["Hello there"]);
    for (const text of [" ", " ", " general "]) buffer.push(text);
    expect(buffer.takeAll()).toEqual([" general "]);
    for (const text of [" ", "  "]) buffer.push(text);
    expect(buffer.chars).toBe(0);
  });

  it("punctuation alone is nothing to say, and goes with what follows", () => {
    const buffer = filled("... ");
    expect([buffer.takeWords(), buffer.takeAll()]).toEqual([null, []]);
    buffer.push("and so on.");
    expect(buffer.takeAll()).toEqual(["... and so on."]);
  });

  it("with SSML, tags and the elements that mean something as a whole are never cut", () => {
    const text = 'One two <break time="1s" /> three <phoneme alphabet="ipa" ph="a b">four five</phoneme> ';
    for (let end = 1; end <= text.length; end += 1) {
      const words = filled(text.slice(0, end), true).takeWords() ?? "";
      expect(words).not.toMatch(/<[^>]*$/);
      expect(words.split("<phoneme").length).toBe(words.split("</phoneme>").length);
    }
    expect(filled(text, true).takeWords()).toBe(text);
    expect(filled("One two <emphasis>three four ", true).takeWords()).toBe("One two ");
    expect(filled('One two <break time="1s', false).takeWords()).toBe("One two <break ");
  });

  it("takes what is settled: with SSML, a tag that is not closed yet stays", () => {
    const buffer = filled("One <bre", true);
    expect(buffer.takeSettled()).toEqual(["One "]);
    buffer.push('ak time="1s"/> two');
    expect(buffer.takeSettled()).toEqual(['<break time="1s"/> two']);
    expect(filled("One <bre", false).takeSettled()).toEqual(["One <bre"]);
    expect(filled("1 < 2 and", true).takeSettled()).toEqual(["1 < 2 and"]);
    const flushed = filled("One <bre", true);
    flushed.takeSettled();
    expect(`${flushed.chars} ${flushed.takeAll().join()}`).toBe("4 <bre");
  });

  it("a < that opens no tag does not hold the text forever", () => {
    expect(filled(`a <b ${"word ".repeat(120)}`, true).takeWords()).toContain("word");
    expect(filled("three < four and five ", true).takeWords()).toBe("three < four and five ");
  });

  it("a long text is taken in pieces that every model takes, between words", () => {
    const text = "some words ".repeat(2000);
    const pieces = filled(text).takeAll();
    expect(pieces.join("")).toBe(text);
    expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThanOrEqual(4000);
    expect(pieces.every((piece) => /^(some|words) .*(some|words) $/.test(piece))).toBe(true);
  });

  it("however it comes and goes, all of it is said once, in order", () => {
    const word = fc.constantFrom("a", "bc", " ", "  ", "d.", "<x", "<b>", "天", "😀", "ef ");
    fc.assert(
      fc.property(
        fc.array(fc.tuple(word, fc.boolean()), { maxLength: 60 }),
        fc.boolean(),
        (steps, keepsMarkup) => {
          const buffer = new TextBuffer(keepsMarkup);
          const said: string[] = [];
          for (const [text, takes] of steps) {
            buffer.push(text);
            if (takes) said.push(buffer.takeWords() ?? "");
          }
          said.push(...buffer.takeAll());
          const dense = (text: string) => text.replaceAll(/\s+/g, " ").trim();
          const rest = dense(steps.map(([text]) => text).join("")).slice(dense(said.join("")).length);
          expect(dense(steps.map(([text]) => text).join("")).startsWith(dense(said.join("")))).toBe(true);
          expect(rest).not.toMatch(/[^\s\p{P}]/u);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe("DialogueBuffer", () => {
  const line = (text: string, voiceId = "a", isNewTurn = false) => ({ text, voiceId, isNewTurn });
  const bare = ({ text, voiceId }: { text: string; voiceId: string }) => ({ text, voiceId });

  it("joins what one voice says in a turn, and nothing else", () => {
    const buffer = new DialogueBuffer();
    for (const one of [line("One "), line("two. "), line("Three. ", "a", true), line("Four. ", "b")])
      buffer.push(one);
    expect(buffer.takeAll()).toEqual([
      [
        { text: "One two. ", voiceId: "a" },
        { text: "Three. ", voiceId: "a" },
        { text: "Four. ", voiceId: "b" },
      ],
    ]);
    expect(buffer.takeAll()).toEqual([]);
  });

  it("is due at 40 characters and 8 words, not at one of the two", () => {
    const due = (text: string) => {
      const buffer = new DialogueBuffer();
      buffer.push(line(text));
      return buffer.takeDue();
    };
    expect(due("a b c d e f g h i ")).toBeNull();
    expect(due("extraordinarily longwindedphrases unfortunately ")).toBeNull();
    expect(due("one two three four five six seven eighth ni")).toEqual([
      [{ text: "one two three four five six seven eighth ", voiceId: "a" }],
    ]);
  });

  it.each([
    ["Chinese", "今天的天气非常好，我们决定一起去公园散步，然后在湖边的小餐馆里吃午饭，晚上再看一场电影。"],
    [
      "Japanese",
      "今日はとても天気がいいので、みんなで公園へ散歩に行って、それから湖のそばの店で昼ごはんを食べます。",
    ],
    ["Thai", "วันนี้อากาศดีมากเราจึงตัดสินใจไปเดินเล่นที่สวนสาธารณะด้วยกันแล้วกินข้าวกลางวันที่ร้านอาหาร"],
  ])("is due without blanks: words are counted by the dictionary (%s)", (_script, text) => {
    const buffer = new DialogueBuffer();
    const started: string[] = [];
    for (const character of text) {
      buffer.push(line(character));
      for (const lines of buffer.takeDue() ?? []) started.push(...lines.map((one) => one.text));
    }
    expect(started.length).toBeGreaterThan(0);
    expect(started[0]?.length).toBeGreaterThanOrEqual(40);
    const rest = buffer.takeAll().flatMap((lines) => lines.map((one) => one.text));
    expect([...started, ...rest].join("")).toBe(text);
  });

  it("looks for words in the beginning of a text that has hardly any", () => {
    const buffer = new DialogueBuffer();
    buffer.push(line("x".repeat(2000)));
    buffer.push(line(" and now some words that are words"));
    expect(buffer.takeDue()).toBeNull();
    expect(
      buffer
        .takeAll()
        .flat()
        .map(({ text }) => text)
        .join(""),
    ).toHaveLength(2034);
  });

  it("a turn that begins with half a word waits for the rest of it", () => {
    const buffer = new DialogueBuffer();
    buffer.push(line("one two three four five six seven eighth. "));
    buffer.push(line("Hel", "b"));
    expect(buffer.takeDue()).toEqual([[line("one two three four five six seven eighth. ")].map(bare)]);
    buffer.push(line("lo.", "b"));
    expect(buffer.takeAll()).toEqual([[{ text: "Hello.", voiceId: "b" }]]);
  });

  it("cuts what is too long for one request, and leaves out what says nothing", () => {
    const buffer = new DialogueBuffer();
    buffer.push(line("... "));
    buffer.push(line("many words ".repeat(400), "b"));
    const generations = buffer.takeAll();
    expect(generations.length).toBeGreaterThan(2);
    for (const lines of generations) {
      expect(lines.reduce((sum, { text }) => sum + text.length, 0)).toBeLessThanOrEqual(1900);
    }
    expect(
      generations
        .flat()
        .map(({ text }) => text)
        .join(""),
    ).toBe("many words ".repeat(400));
  });
});
