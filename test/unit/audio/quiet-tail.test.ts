import { describe, expect, it } from "vitest";
import { QuietTail } from "../../../src/audio/analysis/quiet-tail.ts";

describe("QuietTail", () => {
  it("isQuiet looks at the last samples only, over any number of pushes", () => {
    const tail = new QuietTail(4);
    expect(tail.isQuiet).toBe(true);
    tail.push(Int16Array.of(900, 0, 0, 0));
    expect(tail.isQuiet).toBe(false);
    tail.push(Int16Array.of(-32));
    expect(tail.isQuiet).toBe(true);
    tail.push(Int16Array.of(0, -33));
    for (let at = 0; at < 3; at += 1) {
      tail.push(Int16Array.of(32));
      expect(tail.isQuiet).toBe(false);
    }
    tail.push(Int16Array.of(0));
    expect(tail.isQuiet).toBe(true);
    tail.push(Int16Array.of(-32_768));
    tail.reset();
    expect(tail.isQuiet).toBe(true);
  });
});
