import { describe, expect, it } from "vitest";
import { cueOfEvent } from "../../../../src/protocol/captions.ts";
import type { CueEvent, InterruptedEvent, UtteranceDoneEvent } from "../../../../src/protocol/events.ts";
import { FinalCues } from "../../../../src/protocol/final-cues.ts";
import { CUE_MODES, CUE_PROFILES } from "../../../../src/protocol/vocabulary.ts";
import { BoundaryFinder } from "../../../../src/text/boundaries.ts";
import { WordScanner } from "../../../../src/text/words.ts";
import { type Cue, CueBuilder } from "../../../../src/timing/cues/cue-builder.ts";
import { cueNumbers } from "../../../../src/timing/cues/cue-profiles.ts";
import { RollUp } from "../../../../src/timing/cues/cue-roll-up.ts";
import { columnsOf } from "../../../../src/timing/cues/cue-units.ts";
import { toSrt, toVtt } from "../../../helpers/caption-file.ts";
import { readStrictVtt } from "../../../helpers/strict-vtt.ts";

const LONG =
  "When we first came to the valley, there was nothing but grass, and a river that ran without a bridge from one end to the other. Then we built one.";

/** Words at 70 ms a character. */
function cuesOf(
  text: string,
  style: Parameters<typeof cueNumbers>[0],
  voices: readonly number[] = [],
): Cue[] {
  // A word ends where a voice does.
  const words = [0, ...voices].flatMap((from, index) => {
    const scanner = new WordScanner();
    const found = [...scanner.push(text.slice(from, voices[index])), ...scanner.endWord()];
    return found.map((word) => ({
      text: word.text,
      start: from + word.start,
      end: from + word.end,
      startSeconds: (from + word.start) * 0.07,
      endSeconds: (from + word.end) * 0.07,
      timing: "exact" as const,
    }));
  });
  const builder = new CueBuilder({ breaks: new BoundaryFinder(), numbers: cueNumbers(style) });
  for (const at of voices) builder.noteVoice(at);
  builder.append(text);
  return [...builder.push(words), ...builder.flush()];
}

const linesOf = (cues: readonly Cue[]) => cues.map((cue) => cue.lines.map((line) => line.text));

describe("cue profiles", () => {
  it.each(CUE_PROFILES.flatMap((profile) => CUE_MODES.map((mode) => ({ profile, mode }))))(
    "$profile, $mode: lines fit, all words are there, cues follow one another",
    (style) => {
      const cues = cuesOf(LONG, style);
      const { maxColumns, maxSeconds } = cueNumbers(style);
      expect(linesOf(cues).flat().join(" ")).toBe(LONG);
      for (const [index, cue] of cues.entries()) {
        for (const line of cue.lines) expect(columnsOf(line.text)).toBeLessThanOrEqual(maxColumns);
        const words = cue.lines.flatMap((line) => line.words);
        expect((words.at(-1)?.endSeconds ?? 0) - cue.startSeconds).toBeLessThanOrEqual(maxSeconds);
        const next = cues[index + 1];
        if (next !== undefined) expect(cue.endSeconds).toBeLessThanOrEqual(next.startSeconds);
      }
    },
  );

  it("broadcast and phone have shorter lines than web, and broadcast no holes", () => {
    const widest = (profile: (typeof CUE_PROFILES)[number]) =>
      Math.max(
        ...linesOf(cuesOf(LONG, { profile, mode: "pop-on" }))
          .flat()
          .map((line) => line.length),
      );
    expect(widest("web")).toBeGreaterThan(32);
    expect(widest("broadcast")).toBeGreaterThan(26);
    const cues = cuesOf(LONG, { profile: "broadcast", mode: "pop-on" });
    cues.slice(1).forEach((cue, index) => {
      expect(cue.startSeconds).toBe(cues[index]?.endSeconds);
    });
  });

  it("have 13 Japanese letters a line, and give them more time than Latin ones", () => {
    const text = "これはとてもながいぶんしょうですからにぎょうになります。";
    const cues = cuesOf(text, { profile: "web", mode: "pop-on" });
    const lengths = linesOf(cues)
      .flat()
      .map((line) => [...line].length);
    expect(linesOf(cues).flat().join("")).toBe(text);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(13);
    const [short] = cuesOf("ありがとう。", { profile: "web", mode: "pop-on" });
    // Six letters, four a second.
    expect(short?.endSeconds).toBeCloseTo(1.5, 6);
  });

  it("break where another voice begins, marks going to their own side", () => {
    const first = 'He said "no."';
    const text = `${first}"Why?" she asked.`;
    expect(linesOf(cuesOf(text, { profile: "web", mode: "pop-on" }, [first.length]))).toEqual([
      ['He said "no."'],
      ['"Why?" she asked.'],
    ]);
    expect(linesOf(cuesOf("Yes. No. Yes.", { profile: "web", mode: "pop-on" }, [5]))).toEqual([
      ["Yes."],
      ["No. Yes."],
    ]);
  });
});

describe("RollUp", () => {
  const style = { profile: "web", mode: "roll-up" } as const;

  it("shows each line from its first word on, with the line before above it", () => {
    const pop = cuesOf(LONG, style);
    const rollUp = new RollUp();
    const rolled = pop.flatMap((cue) => rollUp.push(cue));
    const lines = pop.flatMap((cue) => cue.lines);
    expect(rolled.map((cue) => cue.lines.at(-1))).toEqual(lines);
    rolled.slice(1).forEach((cue, index) => {
      expect(cue.lines[0]).toEqual(lines[index]);
      expect(cue.startSeconds).toBe(rolled[index]?.endSeconds);
      expect(cue.startSeconds).toBeCloseTo(cue.lines.at(-1)?.words[0]?.startSeconds ?? 0, 6);
    });
  });

  it("begins again behind an empty screen and for another voice", () => {
    const rollUp = new RollUp();
    const [one, two] = [cuesOf("One.", style)[0], cuesOf("Two.", style)[0]];
    if (one === undefined || two === undefined) throw new Error("No cue");
    const voice = { voiceId: "a" };
    rollUp.push({ ...one, startSeconds: 0, endSeconds: 1, voice });
    expect(rollUp.push({ ...two, startSeconds: 1, endSeconds: 2, voice })[0]?.lines).toHaveLength(2);
    expect(rollUp.push({ ...one, startSeconds: 3, endSeconds: 4, voice })[0]?.lines).toHaveLength(1);
    const other = { ...two, startSeconds: 4, endSeconds: 5, voice: { voiceId: "b" } };
    expect(rollUp.push(other)[0]?.lines).toHaveLength(1);
  });
});

describe("FinalCues", () => {
  const cue = (utterance_id: string, start_ms: number, end_ms: number): CueEvent => ({
    type: "cue",
    seq: 1,
    at_ms: start_ms,
    utterance_id,
    start_ms,
    end_ms,
    start: 0,
    end: 1,
    lines: [{ text: "(Hello) <b> --> you", words: [] }],
    voice_id: "v",
    speaker: "A & B",
  });
  const interrupted = (utterance_id: string, at_ms: number, next_ms: number | null) =>
    ({ type: "interrupted", seq: 2, at_ms, utterance_id, next_ms }) as InterruptedEvent;
  const done = (utterance_id: string, at_ms: number) =>
    ({ type: "utterance.done", seq: 3, at_ms, utterance_id }) as UtteranceDoneEvent;
  const spans = (cues: readonly CueEvent[]) => cues.map(({ start_ms, end_ms }) => [start_ms, end_ms]);

  it("are emitted once they were heard or their utterance is over, in order", () => {
    const settling = new FinalCues();
    expect(settling.push(cue("u", 0, 1000), 0)).toEqual([]);
    expect(spans(settling.push(cue("u", 1000, 3000), 1000))).toEqual([[0, 1000]]);
    expect(spans(settling.push(cue("w", 3000, 4000), 2000))).toEqual([]);
    expect(spans(settling.push(done("u", 2500), 2500))).toEqual([[1000, 3000]]);
    expect(spans(settling.open)).toEqual([[3000, 4000]]);
    expect(spans(settling.flush(3500))).toEqual([[3000, 3500]]);
  });

  it("give way to the next one, which comes later where they were emitted already", () => {
    const settling = new FinalCues();
    settling.push(cue("u", 0, 833), 0);
    settling.push(cue("v", 400, 1233), 0);
    expect(spans(settling.push(done("u", 400), 400))).toEqual([[0, 400]]);
    expect(spans(settling.push(done("v", 800), 800))).toEqual([[400, 1233]]);
    settling.push(cue("w", 800, 1633), 800);
    expect(spans(settling.open)).toEqual([[1233, 2066]]);
    expect(spans(settling.push(done("w", 1200), 1200))).toEqual([[1233, 2066]]);
    settling.push(cue("x", 3000, 3500), 1200);
    expect(spans(settling.flush(1200))).toEqual([]);
  });

  it("end at a cut, and those behind it are not emitted", () => {
    const settling = new FinalCues();
    for (const emitted of [cue("u", 0, 1000), cue("u", 1000, 2000), cue("w", 2000, 3000)])
      settling.push(emitted, 0);
    expect(settling.push(interrupted("x", 0, null), 0)).toEqual([]);
    expect(spans(settling.push(interrupted("u", 500, 700), 500))).toEqual([[0, 500]]);
    expect(settling.flush()).toEqual([]);
  });

  it("have the words up to a cut, with their marks", () => {
    const word = (text: string, start: number, start_ms: number) => ({
      text,
      start,
      end: start + text.length,
      start_ms,
      end_ms: start_ms + 200,
    });
    const lines = [
      { text: "Well, (then)", words: [word("Well", 0, 0), word("then", 7, 300)] },
      { text: "we “go”.", words: [word("we", 13, 600), word("go", 17, 900)] },
    ];
    const cutAt = (atMs: number): unknown => {
      const settling = new FinalCues();
      settling.push({ ...cue("u", 0, 2000), end: 19, lines }, 0);
      const [cut] = settling.push(interrupted("u", atMs, atMs + 100), atMs);
      return (
        cut && [
          cut.end_ms,
          cut.end,
          cut.lines.map((line) => line.text),
          cut.lines.map((line) => line.words.length),
        ]
      );
    };
    expect(cutAt(250)).toEqual([250, 4, ["Well,"], [1]]);
    expect(cutAt(310)).toEqual([310, 11, ["Well, (then)"], [2]]);
    expect(cutAt(700)).toEqual([700, 15, ["Well, (then)", "we"], [2, 1]]);
    expect(cutAt(1200)).toEqual([1200, 19, ["Well, (then)", "we “go”."], [2, 2]]);
  });

  it("make strict files, whatever text and names have", () => {
    const cues = [cueOfEvent(cue("u", 0, 1000)), cueOfEvent(cue("u", 1500, 2000), 1000)];
    expect(readStrictVtt(toVtt(cues))).toMatchObject([
      { startMs: 0, endMs: 1000, voice: "A & B", lines: ["(Hello) <b> --> you"] },
      { startMs: 500, endMs: 1000 },
    ]);
    expect(toSrt(cues)).toContain("\nA & B: (Hello)");
  });
});
