import { expect, it } from "vitest";
import { Transcript } from "../../../../src/session/playback/transcript.ts";

it("has no time behind the end of its last segment's audio", () => {
  const transcript = new Transcript();
  transcript.addCharacter({ start: 0, end: 1, startTicks: 100, endTicks: 140 });
  transcript.addCharacter({ start: 1, end: 2, startTicks: 140, endTicks: 190 });
  transcript.addWord({ start: 0, end: 2, startTicks: 100, endTicks: 190, timing: "exact" });
  transcript.addNormalized({ start: 1, text: "x", startTicks: 160, endTicks: 190 });
  transcript.addVoice({ voiceId: "v", inputIndex: 0, start: 0, end: 2, startTicks: 100, endTicks: 190 });
  transcript.endAt(150);
  const { characters, words, normalized, voices } = transcript;
  const spans = [...characters, ...words, ...normalized, ...voices];
  expect(spans.map(({ startTicks, endTicks }) => [startTicks, endTicks])).toEqual([
    [100, 140],
    [140, 150],
    [100, 150],
    [150, 150],
    [100, 150],
  ]);
});
