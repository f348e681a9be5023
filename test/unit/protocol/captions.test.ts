import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { srtCue, vttCue } from "../../../src/protocol/captions.ts";
import type { Cue } from "../../../src/timing/cues/cue-builder.ts";
import { toSrt, toVtt } from "../../helpers/caption-file.ts";

/** A cue whose words are the parts of its lines that begin behind spaces, spread evenly over its time. */
function cue(startSeconds: number, endSeconds: number, ...texts: string[]): Cue {
  const starts = texts.map((text) => [...text.matchAll(/\S+/g)].map((match) => match.index));
  const count = starts.flat().length;
  let n = 0;
  const lines = texts.map((text, i) => ({
    text,
    words: (starts[i] ?? []).map((at) => {
      const time = startSeconds + ((endSeconds - startSeconds) * n++) / count;
      return {
        at,
        text: "",
        start: at,
        end: at,
        startSeconds: time,
        endSeconds: time,
        timing: "exact" as const,
      };
    }),
  }));
  return { startSeconds, endSeconds, start: 0, end: 0, lines };
}

const CUES = [
  cue(0, 1, "Hello you"),
  cue(1, 2.5, "a < b & c > d", "--> <b>not bold</b>"),
  cue(2.5, 3, "我们去北京", "مرحبا 😀"),
  cue(3661.0004, 3662, "late"),
];

describe("timestamps", () => {
  it.each([
    [0, "00:00:00.000"],
    [1.25, "00:00:01.250"],
    [59.9996, "00:01:00.000"],
    [3599.9994, "00:59:59.999"],
    [3661.0005, "01:01:01.001"],
    [360_000, "100:00:00.000"],
    [-1, "00:00:00.000"],
  ])("of %d seconds is %s, with a comma in SRT", (seconds, expected) => {
    const shown = cue(seconds, seconds + 1, "a");
    expect(vttCue(shown).split(" ")[0]).toBe(expected);
    expect(srtCue(shown, 1).split(/[\n ]/)[1]).toBe(expected.replace(".", ","));
  });
});

describe("toVtt", () => {
  it("writes header, times and escaped text, a blank line behind each cue", () => {
    expect(toVtt(CUES.slice(0, 2))).toBe(
      "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nHello you\n\n" +
        "00:00:01.000 --> 00:00:02.500\na &lt; b &amp; c &gt; d\n--&gt; &lt;b&gt;not bold&lt;/b&gt;\n\n",
    );
    expect(toVtt([])).toBe("WEBVTT\n\n");
  });

  it("marks when each word is spoken: rising, inside the cue, none at its start", () => {
    const written = vttCue(cue(1, 2, "one two & three", "four"), { hasWordTimes: true });
    expect(written).toBe(
      "00:00:01.000 --> 00:00:02.000\none <00:00:01.200>two <00:00:01.400>&amp; <00:00:01.600>three\n<00:00:01.800>four\n\n",
    );
    const instant = { ...cue(1, 1, "one two"), endSeconds: 1 };
    expect(vttCue(instant, { hasWordTimes: true })).toBe("00:00:01.000 --> 00:00:01.001\none two\n\n");
  });

  it("keeps a text that would end its cue on its line", () => {
    expect(vttCue(cue(0, 1, "a\n\nb", ""))).toBe("00:00:00.000 --> 00:00:01.000\na b\n\u00a0\n\n");
  });

  it("makes no arrow of a name and the end of its tag", () => {
    const named = { ...cue(0, 1, "a"), voice: { voiceId: "v", speaker: "Ann --" } };
    expect(vttCue(named)).toBe("00:00:00.000 --> 00:00:01.000\n<v Ann -- >a\n\n");
  });
});

describe("toSrt", () => {
  it("numbers the cues and keeps text from being taken for tags or times", () => {
    expect(toSrt(CUES.slice(0, 2))).toBe(
      "1\n00:00:00,000 --> 00:00:01,000\nHello you\n\n" +
        "2\n00:00:01,000 --> 00:00:02,500\na < b & c > d\n--\u2060> <\u2060b>not bold<\u2060/b>\n\n",
    );
    expect(srtCue(cue(3599.5, 3600, "x"), 12)).toBe("12\n00:59:59,500 --> 01:00:00,000\nx\n\n");
  });
});

const FFMPEG = "ffmpeg";
const hasFfmpeg = spawnSync(FFMPEG, ["-version"]).status === 0;

/** What ffmpeg, a parser that we did not write, reads in the file, as SRT. */
function readByFfmpeg(name: string, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-captions-"));
  try {
    const path = join(folder, name);
    writeFileSync(path, text);
    const run = spawnSync(FFMPEG, ["-v", "warning", "-i", path, "-f", "srt", "-"], { encoding: "utf8" });
    expect(run.stderr).toBe("");
    return run.stdout.replaceAll("\r\n", "\n");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe.skipIf(!hasFfmpeg)("captions read by ffmpeg (skipped where it is not installed)", () => {
  it.each([false, true])("reads our WebVTT, with word times: %s", (hasWordTimes) => {
    const read = readByFfmpeg("x.vtt", toVtt(CUES, { hasWordTimes }));
    expect(read.match(/-->/g)).toHaveLength(CUES.length + 1);
    expect(read).toContain("00:00:01,000 --> 00:00:02,500\na < b & c > d\n--> <b>not bold</b>");
    expect(read).toContain("01:01:01,000 --> 01:01:02,000\nlate");
    expect(read).toContain("我们去北京\nمرحبا 😀");
  });

  it("reads our SRT", () => {
    const read = readByFfmpeg("x.srt", toSrt(CUES));
    expect(read).toContain("1\n00:00:00,000 --> 00:00:01,000\nHello you\n");
    expect(read).toContain("--\u2060> <\u2060b>not bold<\u2060/b>");
    expect(read).toContain("4\n01:01:01,000 --> 01:01:02,000\nlate");
  });
});
