import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type CaptionEvent, CaptionFiles } from "../../../src/cli/output/caption-files.ts";
import type { InterruptedEvent, UtteranceDoneEvent } from "../../../src/protocol/events.ts";
import { MemoryOutput } from "./memory-io.ts";
import { cueEvent } from "./scripted-cues.ts";

const folder = mkdtempSync(join(tmpdir(), "voicewire-captions-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Everything shown before has been heard. */
function show(captions: CaptionFiles, event: CaptionEvent): void {
  captions.event(event, event.at_ms);
}

const interrupted = (utterance_id: string, at_ms: number, next_ms: number | null) =>
  ({ type: "interrupted", seq: 0, at_ms, utterance_id, next_ms }) as InterruptedEvent;
const done = (utterance_id: string, at_ms: number) =>
  ({ type: "utterance.done", seq: 0, at_ms, utterance_id }) as UtteranceDoneEvent;

function cuesOf(srt: string): { time: string; text: string }[] {
  return srt
    .trim()
    .split("\n\n")
    .map((block) => block.split("\n"))
    .map(([, time = "", ...lines]) => ({ time, text: lines.join(" ") }));
}

function srtFile(): { captions: CaptionFiles; cues: () => { time: string; text: string }[] } {
  const stdout = new MemoryOutput();
  const captions = new CaptionFiles({ vtt: undefined, srt: "-", stdout });
  return { captions, cues: () => (stdout.text === "" ? [] : cuesOf(stdout.text)) };
}

describe("CaptionFiles", () => {
  test("writes VTT and SRT with the times of words, counted from the first frame", () => {
    const stdout = new MemoryOutput();
    const vtt = join(folder, "a.vtt");
    const captions = new CaptionFiles({ vtt, srt: "-", stdout });
    captions.originMs = 60_000;
    show(captions, cueEvent("Hello there, my friend!", { startMs: 61_000, wordMs: 400, endMs: 63_000 }));
    captions.close();
    captions.close();
    expect(cuesOf(stdout.text)).toEqual([
      { time: "00:00:01,000 --> 00:00:03,000", text: "Hello there, my friend!" },
    ]);
    expect(readFileSync(vtt, "utf8")).toContain(
      "Hello <00:00:01.400>there, <00:00:01.800>my <00:00:02.200>friend!",
    );
    expect(captions.count).toBe(1);
  });

  test("names who says it, where that is known, and nobody else", () => {
    const stdout = new MemoryOutput();
    const captions = new CaptionFiles({ vtt: "-", srt: undefined, stdout });
    show(captions, cueEvent("How are you?", { startMs: 0, speaker: "A & B" }));
    show(captions, cueEvent("Fine.", { startMs: 1200 }));
    captions.close();
    expect(stdout.text).toContain("\n<v A &amp; B>How <00:00:00.100>are");
    expect(stdout.text).toContain("\nFine.\n");
  });

  test("has each cue as soon as nothing can cut it any more", () => {
    const { captions, cues } = srtFile();
    captions.event(cueEvent("One two.", { startMs: 0 }), -300);
    captions.event(cueEvent("Three four.", { startMs: 200 }), 0);
    expect(cues()).toEqual([]);
    captions.event(cueEvent("Five six.", { startMs: 400 }), 200);
    // Before it is closed: who is killed has them, and they do not pile up.
    expect(cues().map(({ text }) => text)).toEqual(["One two."]);
    captions.event(done("u1", 500), 300);
    expect(cues().map(({ text }) => text)).toEqual(["One two.", "Three four.", "Five six."]);
  });

  test("another timeline that begins earlier: what came before is whole, and what comes is written", () => {
    const { captions, cues } = srtFile();
    captions.originMs = 60_000;
    show(captions, cueEvent("Said before.", { startMs: 61_000, endMs: 61_900 }));
    captions.originMs = -2000;
    // It stood when we came, and begins behind what is there.
    show(captions, cueEvent("This is a sentence.", { startMs: -500, endMs: 1000 }));
    show(captions, cueEvent("Another.", { startMs: 1000, endMs: 2000 }));
    captions.close();
    expect(cues()).toEqual([
      { time: "00:00:01,000 --> 00:00:01,900", text: "Said before." },
      { time: "00:00:01,900 --> 00:00:03,000", text: "This is a sentence." },
      { time: "00:00:03,000 --> 00:00:04,000", text: "Another." },
    ]);
  });

  test("has a cue once that comes again", () => {
    const { captions, cues } = srtFile();
    const standing = cueEvent("It stands.", { startMs: 0, endMs: 2000 });
    captions.event(standing, -300);
    captions.event({ ...standing, seq: 7, at_ms: 900 }, 600);
    captions.event(done("u1", 1000), 1000);
    captions.event({ ...standing, seq: 9, at_ms: 1500 }, 1500);
    captions.close();
    expect(cues().map(({ text }) => text)).toEqual(["It stands."]);
  });

  test("skips what is left out of the audio: cues that have come from behind it stand at its end", () => {
    const { captions, cues } = srtFile();
    captions.event(cueEvent("Early.", { startMs: 100, endMs: 400 }), 0);
    captions.event(cueEvent("Late.", { startMs: 900_500, endMs: 901_000 }), 0);
    captions.skip(900_000, 400);
    captions.close();
    expect(cues()).toEqual([
      { time: "00:00:00,100 --> 00:00:00,400", text: "Early." },
      { time: "00:00:00,500 --> 00:00:01,000", text: "Late." },
    ]);
  });

  test("interrupted: has the words that were heard, up to the cut, and those that come again", () => {
    const { captions, cues } = srtFile();
    captions.event(cueEvent("One, two, (three) four.", { startMs: 0, wordMs: 300, endMs: 1900 }), -300);
    captions.event(cueEvent("(Behind it.)", { startMs: 2000, utteranceId: "w" }), 500);
    // Of one that had not begun nothing was cut.
    captions.event(interrupted("x", 400, null), 100);
    captions.event(interrupted("u1", 500, 900), 500);
    captions.event(cueEvent("two, (three) four.", { startMs: 1000, start: 5 }), 700);
    captions.event(cueEvent("(Behind it.)", { startMs: 3000, utteranceId: "w" }), 2700);
    captions.close();
    expect(cues()).toEqual([
      { time: "00:00:00,000 --> 00:00:00,500", text: "One, two," },
      { time: "00:00:01,000 --> 00:00:01,300", text: "two, (three) four." },
      { time: "00:00:03,000 --> 00:00:03,200", text: "(Behind it.)" },
    ]);
  });

  test("interrupted before a word of it was heard, has nothing of it", () => {
    const { captions, cues } = srtFile();
    captions.event(cueEvent("One two.", { startMs: 1000 }), 700);
    captions.event(interrupted("u1", 900, 1100), 900);
    captions.close();
    expect(cues()).toEqual([]);
  });

  test("ends with the audio: the words that were not heard are not there, a caption that is only read stays", () => {
    const first = srtFile();
    first.captions.event(cueEvent("One two three.", { startMs: 0, endMs: 2000 }), -300);
    first.captions.endAt(150);
    first.captions.close();
    expect(first.cues()).toEqual([{ time: "00:00:00,000 --> 00:00:00,150", text: "One two" }]);
    const second = srtFile();
    second.captions.event(cueEvent("One two three.", { startMs: 0, endMs: 2000 }), -300);
    second.captions.event(cueEvent("Never.", { startMs: 2100 }), 100);
    second.captions.endAt(400);
    second.captions.close();
    expect(second.cues()).toEqual([{ time: "00:00:00,000 --> 00:00:02,000", text: "One two three." }]);
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
