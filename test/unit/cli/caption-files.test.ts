import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { CaptionFiles } from "../../../src/cli/caption-files.ts";
import { MemoryOutput } from "./memory-io.ts";

const folder = mkdtempSync(join(tmpdir(), "voicewire-captions-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A words event of one word each 400 ms, 300 ms long. */
function wordsOf(utteranceId: string, text: string, at: { ms: number; offset?: number }) {
  const words = [...text.matchAll(/\w+/g)].map((match, index) => ({
    text: match[0],
    start_ms: at.ms + index * 400,
    end_ms: at.ms + index * 400 + 300,
    start: (at.offset ?? 0) + match.index,
    end: (at.offset ?? 0) + match.index + match[0].length,
  }));
  return { type: "words", seq: 0, at_ms: at.ms, utterance_id: utteranceId, words, timing: "exact" } as const;
}

function cuesOf(srt: string): { time: string; text: string }[] {
  return srt
    .trim()
    .split("\n\n")
    .map((block) => block.split("\n"))
    .map(([, time = "", ...lines]) => ({ time, text: lines.join(" ") }));
}

describe("CaptionFiles", () => {
  test("writes VTT and SRT with the text's punctuation, counted from the first frame", () => {
    const stdout = new MemoryOutput();
    const vtt = join(folder, "a.vtt");
    const captions = new CaptionFiles({ vtt, srt: "-", stdout });
    captions.originMs = 60_000;
    captions.text({ utteranceId: "u", start: 0, text: "Hello there, " });
    captions.text({ utteranceId: "u", start: 13, text: "my friend!" });
    captions.words(wordsOf("u", "Hello there, my friend!", { ms: 61_000 }));
    captions.close();
    captions.close();
    expect(cuesOf(stdout.text)).toEqual([
      { time: expect.stringMatching(/^00:00:01,000 --> 00:00:0[2-4]/), text: "Hello there, my friend!" },
    ]);
    expect(readFileSync(vtt, "utf8")).toContain(
      "Hello <00:00:01.400>there, <00:00:01.800>my <00:00:02.200>friend!",
    );
    expect(captions.count).toBe(1);
  });

  test("names who says a line, where that is told, and nobody else", () => {
    const stdout = new MemoryOutput();
    const captions = new CaptionFiles({ vtt: "-", srt: undefined, stdout });
    captions.text({
      utteranceId: "d",
      start: 0,
      text: "How are you?",
      voice: { voiceId: "a", speaker: "A & B" },
    });
    captions.break();
    captions.text({ utteranceId: "d", start: 12, text: "Fine." });
    captions.words(wordsOf("d", "How are you?", { ms: 0 }));
    captions.words(wordsOf("d", "Fine.", { ms: 1200, offset: 12 }));
    captions.close();
    expect(stdout.text).toContain("\n<v A &amp; B>How <00:00:00.400>are");
    expect(stdout.text).toContain("\nFine.\n");
  });

  test("gives utterances and lines of a dialogue cues of their own that do not overlap", () => {
    const stdout = new MemoryOutput();
    const captions = new CaptionFiles({ vtt: undefined, srt: "-", stdout });
    captions.text({ utteranceId: "d", start: 0, text: "How are you?" });
    captions.break();
    captions.text({ utteranceId: "d", start: 12, text: "Fine." });
    captions.text({ utteranceId: "e", start: 0, text: "Next." });
    captions.words(wordsOf("d", "How are you?", { ms: 0 }));
    captions.words(wordsOf("d", "Fine.", { ms: 1200, offset: 12 }));
    captions.words(wordsOf("e", "Next.", { ms: 1600 }));
    captions.words(wordsOf("stranger", "Not ours.", { ms: 2000 }));
    captions.close();
    const cues = cuesOf(stdout.text);
    expect(cues.map((cue) => cue.text)).toEqual(["How are you?", "Fine.", "Next."]);
    const bounds = cues.flatMap((cue) => cue.time.split(" --> "));
    expect([...bounds].sort()).toEqual(bounds);
  });

  test("begins in the middle of an utterance where a listener joined late", () => {
    const stdout = new MemoryOutput();
    const captions = new CaptionFiles({ vtt: undefined, srt: "-", stdout });
    captions.text({ utteranceId: "u", start: 100, text: "the end." });
    captions.words(wordsOf("u", "the end.", { ms: 500, offset: 100 }));
    captions.close();
    expect(cuesOf(stdout.text)[0]?.text).toBe("the end.");
  });

  test("has the words that were told anew once, at their new times", () => {
    const stdout = new MemoryOutput();
    const captions = new CaptionFiles({ vtt: undefined, srt: "-", stdout });
    captions.text({ utteranceId: "u", start: 0, text: "One two. Three four. Five six." });
    captions.words(wordsOf("u", "One two.", { ms: 0 }));
    captions.words(wordsOf("u", "Three four.", { ms: 800, offset: 9 }));
    captions.takenUp({ utterance_id: "other", start: 0 });
    captions.takenUp({ utterance_id: "u", start: 14 });
    captions.words(wordsOf("u", "four. Five six.", { ms: 3000, offset: 15 }));
    captions.close();
    const text = cuesOf(stdout.text)
      .map((cue) => cue.text)
      .join(" ");
    expect(text).toBe("One two. Three four. Five six.");
    expect(cuesOf(stdout.text).at(-1)?.time).toMatch(/^00:00:03/);
  });

  test("leaves valid files where nothing was said", () => {
    const vtt = join(folder, "empty.vtt");
    new CaptionFiles({ vtt, srt: undefined, stdout: new MemoryOutput() }).close();
    expect(readFileSync(vtt, "utf8")).toBe("WEBVTT\n\n");
  });

  test("says which file can't be written", () => {
    const vtt = join(folder, "no", "such.vtt");
    expect(() => new CaptionFiles({ vtt, srt: undefined, stdout: new MemoryOutput() })).toThrow(
      /^Captions ".*such\.vtt" can't be written: ENOENT/,
    );
  });
});
