import { describe, expect, test } from "vitest";
import { Script } from "../../../src/cli/output/script.ts";

function word(text: string, at: { ms: number; start: number }) {
  return { text, start_ms: at.ms, end_ms: at.ms + 100, start: at.start, end: at.start + text.length };
}

describe("Script", () => {
  test("spanAt() gives the current word, and the empty range behind it in a pause", () => {
    const script = new Script();
    script.append("one two", { utteranceId: "u", start: 0 });
    script.time("u", word("one", { ms: 50, start: 0 }));
    script.time("u", word("two", { ms: 300, start: 4 }));
    expect(script.spanAt(49)).toEqual({ start: 0, end: 0 });
    expect(script.spanAt(50)).toMatchObject({ start: 0, end: 3 });
    expect(script.spanAt(200)).toEqual({ start: 3, end: 3 });
    expect(script.spanAt(300)).toMatchObject({ start: 4, end: 7 });
  });

  test("spanAt() takes the punctuation behind a word that was spoken as spoken", () => {
    const script = new Script();
    script.append('"one," he said', { utteranceId: "u", start: 0 });
    script.time("u", word("one", { ms: 0, start: 1 }));
    expect(script.spanAt(50)).toMatchObject({ start: 1, end: 4 });
    expect(script.spanAt(150)).toEqual({ start: 6, end: 6 });
  });

  test("maps offsets across pieces, names before lines and utterances", () => {
    const script = new Script();
    script.decorate("Ann: ");
    script.append("hi ", { utteranceId: "d", start: 0 });
    script.append("you", { utteranceId: "d", start: 3 });
    script.decorate("\nBob: ");
    script.append("hm", { utteranceId: "d", start: 6 });
    expect(script.text).toBe("Ann: hi you\nBob: hm");
    script.time("d", word("you", { ms: 0, start: 3 }));
    script.time("d", word("hm", { ms: 500, start: 6 }));
    script.time("other", word("hm", { ms: 900, start: 0 }));
    expect(script.spanAt(0)).toMatchObject({ start: 8, end: 11 });
    expect(script.spanAt(5000)).toEqual({ start: 19, end: 19 });
  });

  test("recovered() forgets words from an offset on, be they begun, until they are timed again", () => {
    const script = new Script();
    script.append("hm ", { utteranceId: "t", start: 0 });
    script.append("one two", { utteranceId: "u", start: 0 });
    script.time("t", word("hm", { ms: 0, start: 0 }));
    script.time("u", word("one", { ms: 200, start: 0 }));
    script.time("u", word("two", { ms: 400, start: 4 }));
    expect(script.spanAt(450)).toMatchObject({ start: 7, end: 10 });
    script.recovered({ utterance_id: "u", start: 3 });
    expect(script.spanAt(460)).toEqual({ start: 6, end: 6 });
    script.time("u", word("two", { ms: 600, start: 4 }));
    expect(script.spanAt(599)).toEqual({ start: 6, end: 6 });
    expect(script.spanAt(600)).toMatchObject({ start: 7, end: 10 });
    expect(script.text).toBe("hm one two");
  });

  test("cut() forgets the words that nobody hears: what is said next lights up at its time", () => {
    const script = new Script();
    script.append("one two three", { utteranceId: "u", start: 0 });
    script.time("u", word("one", { ms: 0, start: 0 }));
    script.time("u", word("two", { ms: 200, start: 4 }));
    script.time("u", word("three", { ms: 900, start: 8 }));
    expect(script.spanAt(250)).toMatchObject({ start: 4, end: 7 });
    script.cut(200);
    expect(script.spanAt(260)).toEqual({ start: 3, end: 3 });
    script.append(" four", { utteranceId: "v", start: 0 });
    script.time("v", word("four", { ms: 400, start: 1 }));
    expect(script.spanAt(450)).toMatchObject({ start: 14, end: 18 });
    expect(script.spanAt(950)).toEqual({ start: 18, end: 18 });
  });

  test("goes on for as long as it is listened to", () => {
    const script = new Script();
    for (let index = 0; index < 3000; index++) {
      const utteranceId = `u${index}`;
      script.append("word ", { utteranceId, start: 0 });
      script.time(utteranceId, word("word", { ms: index * 200, start: 0 }));
      expect(script.spanAt(index * 200)).toMatchObject({ start: index * 5, end: index * 5 + 4 });
    }
    expect(script.spanAt(10_000_000)).toEqual({ start: 14_999, end: 14_999 });
  });

  test("keeps offsets where control characters are hidden", () => {
    const script = new Script();
    script.append("a\x1b b", { utteranceId: "u", start: 0 });
    script.time("u", word("b", { ms: 0, start: 3 }));
    const { start, end } = script.spanAt(0);
    expect(script.text.slice(start, end)).toBe("b");
  });
});
