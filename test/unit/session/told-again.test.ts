/** What `resume` tells again of the part that is said again, besides words and characters. */
import { describe, expect, it } from "vitest";
import { evenAlignment } from "../../helpers/session-rig.ts";
import { CHAR_MS, spell, stage, VOICE } from "./spelling.ts";

const TEXT = "alpha bravo charlie";
const UPPER = TEXT.toUpperCase();
const QUERY = "format=ulaw_8000&events=words,normalized,segments";

/** All of the text as one chunk, with what an upstream tells of it. */
function answered(query = QUERY) {
  const rig = stage(query);
  const inputs = [
    { text: "alpha br", voice_id: VOICE },
    { text: "avo charlie", voice_id: "other" },
  ];
  rig.send({ type: "dialogue", inputs, utterance_id: "u" });
  const request = rig.requests[0];
  request?.head();
  request?.handlers.chunk({
    audio: spell(TEXT),
    alignment: evenAlignment(TEXT, CHAR_MS),
    normalizedAlignment: evenAlignment(UPPER, CHAR_MS),
    voiceSegments: [voiceSegment(VOICE, 0, 0, 8), voiceSegment("other", 1, 8, TEXT.length)],
  });
  request?.handlers.end();
  return rig;
}

function voiceSegment(voice_id: string, dialogue_input_index: number, start: number, end: number) {
  return {
    voice_id,
    start_time_seconds: (start * CHAR_MS) / 1000,
    end_time_seconds: (end * CHAR_MS) / 1000,
    character_start_index: start,
    character_end_index: end,
    dialogue_input_index,
  };
}

function since(rig: ReturnType<typeof stage>) {
  const { events } = rig.sink;
  const from = events.findLastIndex((event) => event.type === "utterance.resumed");
  return events.slice(from);
}

describe("after resume", () => {
  it.each([
    ["in the first input, once", [120], 0],
    ["in the second, whose voice and number stay", [520], 8],
    ["twice", [120, 520], 8],
  ])("cut %s", (_, cuts, start) => {
    const rig = answered();
    for (const cutMs of cuts) {
      rig.clock.advance(cutMs);
      rig.send({ type: "interrupt" });
      rig.send({ type: "resume" });
    }
    const resumed = rig.sink.eventsOf("utterance.resumed").at(-1);
    rig.clock.advance(5000);
    expect(rig.requests).toHaveLength(1);
    expect(resumed?.start).toBe(start);
    const told = since(rig);
    const [first] = told.flatMap((event) => (event.type === "words" ? event.words : []));
    const placeMs = (offset: number): number => (first?.start_ms ?? 0) + (offset - start) * CHAR_MS;
    const segments = told.flatMap((event) => (event.type === "segment" ? [event] : []));
    expect(
      segments.map((event) => [event.voice_id, event.dialogue_input_index, event.start, event.end]),
    ).toEqual(
      [
        [VOICE, 0, start, 8],
        ["other", 1, 8, TEXT.length],
      ].filter(([, , , end]) => Number(end) > start),
    );
    for (const segment of segments) {
      expect(segment.start_ms).toBeCloseTo(placeMs(segment.start), 0);
      expect(segment.end_ms).toBeCloseTo(placeMs(segment.end), 0);
    }
    const normalized = told.flatMap((event) => (event.type === "normalized" ? [event] : []));
    expect(normalized.flatMap((event) => event.characters).join("")).toBe(UPPER.slice(start));
    const startsMs = normalized.flatMap((event) => event.start_ms);
    for (const [index, ms] of startsMs.entries()) expect(ms).toBeCloseTo(placeMs(start + index), 0);
  });

  it("tells nothing of what nobody asked for", () => {
    const rig = answered("format=ulaw_8000&events=words");
    rig.clock.advance(120);
    rig.send({ type: "interrupt" });
    rig.send({ type: "resume" });
    rig.clock.advance(5000);
    expect(since(rig).filter((event) => event.type === "normalized" || event.type === "segment")).toEqual([]);
    expect(rig.outcomes()).toEqual(["u/interrupted", "u/done"]);
  });
});
