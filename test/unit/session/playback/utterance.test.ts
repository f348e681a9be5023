import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../../src/errors.ts";
import { Transcript } from "../../../../src/session/playback/transcript.ts";
import { Utterance } from "../../../../src/session/playback/utterance.ts";

const OPTIONS = { id: "u", acceptedMs: 0, textDefaults: {} };

function dialogue(...texts: readonly string[]): Utterance {
  const inputs = texts.map((text) => ({ text, voice_id: "v" }));
  return Utterance.ofDialogue(OPTIONS, { type: "dialogue", inputs });
}

describe("Utterance.inputsBefore()", () => {
  it("counts the inputs of a dialogue that end where it goes on, or before", () => {
    const utterance = dialogue("abc", "de", "fgh");
    expect([0, 2, 3, 4, 5, 7].map((at) => utterance.inputsBefore(at))).toEqual([0, 0, 1, 1, 2, 2]);
  });

  it("is 0 at the beginning, also where the first input is empty, which counts later", () => {
    const utterance = dialogue("", "abc", "de");
    expect([0, 1, 3].map((at) => utterance.inputsBefore(at))).toEqual([0, 1, 2]);
  });

  it("is 0 for a text", () => {
    const utterance = Utterance.ofText(OPTIONS, { type: "speak", text: "abc def", voice_id: "v" });
    expect(utterance.inputsBefore(4)).toBe(0);
  });
});

describe("the states of an utterance", () => {
  const text = (): Utterance =>
    Utterance.ofText(OPTIONS, { type: "speak", text: "abc def ghi", voice_id: "v" });
  const word = (start: number, endTicks: number) => ({
    start,
    end: start + 3,
    startTicks: endTicks - 50,
    endTicks,
    timing: "exact" as const,
  });

  it("begin and end: it has a start once it begins, an end once it has ended", () => {
    const utterance = text();
    expect([utterance.state.kind, utterance.startTicks, utterance.endTicks]).toEqual(["queued", null, null]);
    utterance.begin(100);
    expect([utterance.state.kind, utterance.startTicks, utterance.endTicks]).toEqual(["speaking", 100, null]);
    utterance.end({ endTicks: 400, padTicks: 7 });
    expect([utterance.state.kind, utterance.startTicks, utterance.endTicks]).toEqual(["rendered", 100, 400]);
    expect([utterance.padTicks, utterance.isSettled, utterance.hasFailed]).toEqual([7, true, false]);
  });

  it("fail: keeps why, and the text that does not come, also when it is interrupted then", () => {
    const utterance = text();
    const error = new GatewayError("upstream_truncated", "Upstream ended the speech early");
    const lost = [{ text: "ghi", start: 8, end: 11 }];
    utterance.begin(100);
    utterance.fail({ endTicks: 300, padTicks: 0 }, { error, lost });
    expect(utterance.state).toMatchObject({ kind: "failed", error, lost, endTicks: 300 });
    utterance.interrupt(null);
    expect(utterance.state).toMatchObject({
      kind: "interrupted",
      snapshot: null,
      startTicks: 100,
      endTicks: 300,
    });
    expect(utterance.hasFailed).toBe(true);
  });

  it("rewind: is queued again with all its text, and nothing of it is known", () => {
    const utterance = text();
    utterance.takeSegment();
    utterance.begin(100);
    utterance.transcript.addWord(word(0, 150));
    utterance.transcript.noteTiming("exact");
    utterance.rewind(5);
    expect(utterance.state).toMatchObject({ kind: "queued", resumption: null });
    expect(utterance.transcript.words).toEqual([]);
    expect(utterance.transcript.timing).toBe("none");
    expect(utterance.takeSegment()?.text).toBe("abc def ghi");
  });

  it("resume: goes on with the rest, and what was heard adds up", () => {
    const utterance = text();
    utterance.takeSegment();
    for (const [startTicks, fromTicks, spokenStart] of [
      [100, 250, 4],
      [1000, 1030, 8],
    ] as const) {
      utterance.begin(startTicks);
      utterance.transcript.noteTiming("scaled");
      const rest = [{ text: "abc def ghi".slice(spokenStart), start: spokenStart, end: 11 }];
      const snapshot = { replays: [], spokenStart, fromTicks, rest, timing: "scaled" } as const;
      utterance.interrupt(snapshot);
      expect(utterance.state).toMatchObject({ kind: "interrupted", snapshot });
      utterance.resume(snapshot, 5);
      expect(utterance.takeSegment()?.text).toBe(rest[0]?.text);
    }
    expect(utterance.state.kind).toBe("queued");
    expect(utterance.resumption).toMatchObject({ spokenStart: 8, heardTicks: 180, timing: "scaled" });
    expect(utterance.transcript.timing).toBe("scaled");
  });
});

describe("Transcript", () => {
  const at = (start: number) => ({
    start,
    end: start + 3,
    startTicks: start * 10,
    endTicks: start * 10 + 30,
  });

  it("voidFrom(): forgets what comes again with another response, and shortens the voice that speaks there", () => {
    const transcript = new Transcript();
    for (const start of [0, 4, 8]) {
      transcript.addCharacter(at(start));
      transcript.addWord({ ...at(start), timing: "exact" });
      transcript.addNormalized({ ...at(start), text: "x" });
    }
    transcript.addVoice({ voiceId: "v", inputIndex: 0, start: 0, end: 11, startTicks: 0, endTicks: 110 });
    transcript.voidFrom(8);
    expect(transcript.characters.map(({ start }) => start)).toEqual([0, 4]);
    expect(transcript.words.map(({ start }) => start)).toEqual([0, 4]);
    expect(transcript.normalized.map(({ start }) => start)).toEqual([0, 4]);
    expect(transcript.voices).toMatchObject([{ start: 0, end: 8 }]);
  });

  it("timing: is the weakest that was noted", () => {
    const transcript = new Transcript();
    expect(transcript.timing).toBe("none");
    for (const timing of ["exact", "estimated", "scaled"] as const) transcript.noteTiming(timing);
    expect(transcript.timing).toBe("estimated");
  });

  it("segments: the last one ends where it was spoken to", () => {
    const transcript = new Transcript();
    transcript.beginSegment({ start: 0, end: 11 }, 100);
    expect(transcript.segments).toEqual([{ start: 0, end: 11, startTicks: 100, endTicks: null }]);
    transcript.endSegment(7, 300);
    expect(transcript.segments).toEqual([{ start: 0, end: 7, startTicks: 100, endTicks: 300 }]);
  });
});
