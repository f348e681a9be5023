import { describe, expect, test } from "vitest";
import { KaraokeView, PlainView } from "../../../src/cli/output/karaoke.ts";
import { MemoryOutput } from "./memory-io.ts";

// A literal escape character in a pattern is what the linter forbids, so it is built.
const TOKEN = new RegExp(`${"\\x1b"}\\[[\\d;?]*[A-Za-z]|[\\s\\S]`, "gu");

/** A terminal of the few sequences that the view uses: enough to see what a person sees. */
function screenOf(written: string): { rows: string[]; current: string } {
  const rows: string[] = [""];
  let row = 0;
  let column = 0;
  let current = "";
  let isCurrent = false;
  for (const [token] of written.matchAll(TOKEN)) {
    if (token === "\n") {
      row++;
      column = 0;
      rows[row] ??= "";
    } else if (token === "\r") column = 0;
    else if (token.startsWith("\x1b[")) {
      if (token.endsWith("A")) row -= Number(token.slice(2, -1));
      else if (token === "\x1b[J") {
        rows.length = row + 1;
        rows[row] = (rows[row] ?? "").slice(0, column);
        current = "";
      } else if (token === "\x1b[1;4m") isCurrent = true;
      else if (token === "\x1b[0m") isCurrent = false;
    } else {
      rows[row] = (rows[row] ?? "").slice(0, column) + token;
      column += token.length;
      if (isCurrent) current += token;
    }
  }
  return { rows, current };
}

function spanOf(text: string, word: string) {
  const start = text.indexOf(word);
  return { start, end: start + word.length };
}

describe("KaraokeView", () => {
  test("redraws in place and underlines the current word only", () => {
    const output = new MemoryOutput();
    const view = new KaraokeView(output);
    const text = "one two three";
    for (const word of ["one", "two", "three"]) {
      view.draw(text, spanOf(text, word));
      expect(screenOf(output.text)).toEqual({ rows: [text], current: word });
    }
    expect(output.text).toContain("\x1b[2mone \x1b[0m\x1b[1;4mtwo\x1b[0m three");
  });

  test("scrolls finished lines up once, whatever the length of the text", () => {
    const output = new MemoryOutput();
    output.width = 11;
    const view = new KaraokeView(output);
    const words = Array.from({ length: 40 }, (_, index) => `word${index}`);
    const text = words.join(" ");
    for (const word of words) {
      view.draw(text, spanOf(text, word));
      expect(screenOf(output.text).current).toBe(word);
    }
    view.finish(text, text.length);
    const { rows } = screenOf(output.text);
    expect(rows.join(" ").trim()).toBe(text);
    for (const row of rows) expect(row.length).toBeLessThanOrEqual(10);
  });

  test("shows tokens that come while it speaks", () => {
    const output = new MemoryOutput();
    const view = new KaraokeView(output);
    view.draw("", { start: 0, end: 0 });
    view.draw("Hello ", { start: 0, end: 0 });
    view.draw("Hello there", { start: 0, end: 5 });
    expect(screenOf(output.text)).toEqual({ rows: ["Hello there"], current: "Hello" });
  });

  test("gives the cursor back exactly once and is quiet afterwards", () => {
    const output = new MemoryOutput();
    const view = new KaraokeView(output);
    view.draw("hi", { start: 0, end: 2 });
    view.finish("hi", 2);
    view.finish("hi", 2);
    view.draw("hi", { start: 0, end: 0 });
    expect(output.text.split("\x1b[?25h")).toHaveLength(2);
    expect(output.text.endsWith("\x1b[2mhi\x1b[0m\n\x1b[?25h")).toBe(true);
  });
});

describe("PlainView", () => {
  test("writes each word once, with what stands between them, and ends the line", () => {
    const output = new MemoryOutput();
    const view = new PlainView(output);
    const text = "Well, hello there!";
    view.draw(text, spanOf(text, "Well"));
    expect(output.text).toBe("Well");
    view.draw(text, spanOf(text, "hello"));
    view.draw(text, spanOf(text, "hello"));
    expect(output.text).toBe("Well, hello");
    view.draw(text, spanOf(text, "there"));
    view.finish(text, text.length);
    expect(output.text).toBe("Well, hello there!\n");
  });

  test("writes nothing but what was spoken when it ends early", () => {
    const output = new MemoryOutput();
    const view = new PlainView(output);
    view.draw("one. two three", { start: 0, end: 3 });
    view.finish("one. two three", 4);
    expect(output.text).toBe("one.\n");
  });
});
