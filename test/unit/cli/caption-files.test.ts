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

/** All that was told before has been heard. */
function tell(captions: CaptionFiles, event: ReturnType<typeof wordsOf>): void {
  captions.words(event, event.at_ms);
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
    tell(captions, wordsOf("u", "Hello there, my friend!", { ms: 61_000 }));
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
    tell(captions, wordsOf("d", "How are you?", { ms: 0 }));
    tell(captions, wordsOf("d", "Fine.", { ms: 1200, offset: 12 }));
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
    tell(captions, wordsOf("d", "How are you?", { ms: 0 }));
    tell(captions, wordsOf("d", "Fine.", { ms: 1200, offset: 12 }));
    tell(captions, wordsOf("e", "Next.", { ms: 1600 }));
    tell(captions, wordsOf("stranger", "Not ours.", { ms: 2000 }));
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
    tell(captions, wordsOf("u", "the end.", { ms: 500, offset: 100 }));
    captions.close();
    expect(cuesOf(stdout.text)[0]?.text).toBe("the end.");
  });

  test("has the words that were told anew once, at their new times", () => {
    const stdout = new MemoryOutput();
    const captions = new CaptionFiles({ vtt: undefined, srt: "-", stdout });
    captions.text({ utteranceId: "u", start: 0, text: "One two. Three four. Five six." });
    tell(captions, wordsOf("u", "One two.", { ms: 0 }));
    tell(captions, wordsOf("u", "Three four.", { ms: 800, offset: 9 }));
    captions.takenUp({ utterance_id: "other", start: 0 });
    captions.takenUp({ utterance_id: "u", start: 14 });
    tell(captions, wordsOf("u", "four. Five six.", { ms: 3000, offset: 15 }));
    captions.close();
    const text = cuesOf(stdout.text)
      .map((cue) => cue.text)
      .join(" ");
    expect(text).toBe("One two. Three four. Five six.");
    expect(cuesOf(stdout.text).at(-1)?.time).toMatch(/^00:00:03/);
  });

  test("another timeline that begins earlier: what came before is whole, and what comes is written", () => {
    const stdout = new MemoryOutput();
    const captions = new CaptionFiles({ vtt: undefined, srt: "-", stdout });
    captions.originMs = 60_000;
    captions.text({ utteranceId: "u", start: 0, text: "Said before." });
    tell(captions, wordsOf("u", "Said before.", { ms: 61_000 }));
    captions.originMs = -2000;
    captions.text({ utteranceId: "v", start: 0, text: "This is a sentence to be read. Another." });
    tell(captions, wordsOf("v", "This is a sentence to be read.", { ms: 0 }));
    captions.words(wordsOf("v", "Another.", { ms: 2800, offset: 31 }), 4000);
    captions.words({ ...wordsOf("v", "", { ms: 5000 }), words: [] }, 5000);
    // Before it is closed: who is killed has them, and they do not pile up.
    expect(cuesOf(stdout.text).map(({ text }) => text)).toEqual([
      "Said before.",
      "This is a sentence to be read.",
    ]);
    captions.close();
    expect(cuesOf(stdout.text).map(({ time }) => time.slice(0, 12))).toEqual([
      "00:00:01,000",
      "00:00:02,000",
      "00:00:04,800",
    ]);
  });

  test("skips what is left out of the audio: words that have come from behind it stand at its end", () => {
    const stdout = new MemoryOutput();
    const captions = new CaptionFiles({ vtt: undefined, srt: "-", stdout });
    captions.text({ utteranceId: "u", start: 0, text: "Late." });
    tell(captions, wordsOf("u", "Late.", { ms: 900_500 }));
    captions.skip(900_000);
    captions.close();
    expect(cuesOf(stdout.text)).toEqual([{ time: expect.stringMatching(/^00:00:00,500/), text: "Late." }]);
  });

  test("interrupted: has the words that were heard, up to the cut, and those that come anew", () => {
    const stdout = new MemoryOutput();
    const captions = new CaptionFiles({ vtt: undefined, srt: "-", stdout });
    captions.text({ utteranceId: "u", start: 0, text: "One, two, three, (four) five." });
    captions.text({ utteranceId: "w", start: 0, text: "(Behind it.)" });
    captions.words(wordsOf("u", "One, two, three, (four) five.", { ms: 0 }), -300);
    captions.words(wordsOf("w", "(Behind it.)", { ms: 2000 }), 500);
    captions.cut(500);
    captions.words(wordsOf("u", "two, three, (four) five.", { ms: 1000, offset: 5 }), 700);
    captions.words(wordsOf("w", "(Behind it.)", { ms: 3000 }), 2700);
    captions.close();
    expect(cuesOf(stdout.text)).toEqual([
      { time: "00:00:00,000 --> 00:00:00,500", text: "One, two," },
      { time: expect.stringMatching(/^00:00:01,000/), text: "two, three, (four) five." },
      { time: expect.stringMatching(/^00:00:03,000/), text: "(Behind it.)" },
    ]);
  });

  test("interrupted before a word of it was heard, has nothing of it", () => {
    const stdout = new MemoryOutput();
    const captions = new CaptionFiles({ vtt: undefined, srt: "-", stdout });
    captions.text({ utteranceId: "u", start: 0, text: "One two." });
    // They count as heard already, by another listener's player.
    captions.words(wordsOf("u", "One two.", { ms: 1000 }), 1000);
    captions.words({ ...wordsOf("u", "", { ms: 1000 }), words: [] }, 2000);
    captions.cut(900);
    captions.close();
    expect(stdout.text).toBe("");
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
