/** What `resume` says again of the part that is said again, besides words and characters. */
import { describe, expect, it } from "vitest";
import { evenAlignment } from "../../../helpers/session-rig.ts";
import { CHAR_MS, spell, stage, VOICE } from "../spelling.ts";

const TEXT = "alpha bravo charlie";
/** The inputs' joint splits "bravo": what counts words of TEXT counts four. */
const WORDS = ["alpha", "br", "avo", "charlie"];
const UPPER = TEXT.toUpperCase();
const QUERY = "format=ulaw_8000&events=words,normalized,segments";

/** All of the text as one chunk, with what an upstream says of it. */
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
  const { events } = rig.listener;
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
    const resumed = rig.listener.eventsOf("utterance.resumed").at(-1);
    rig.clock.advance(5000);
    expect(rig.requests).toHaveLength(1);
    expect(resumed?.start).toBe(start);
    const emitted = since(rig);
    const words = emitted.flatMap((event) => (event.type === "words" ? event.words : []));
    expect(words.map(({ text }) => text)).toEqual(WORDS.slice(WORDS.length - words.length));
    const [first] = words;
    const placeMs = (offset: number): number => (first?.start_ms ?? 0) + (offset - start) * CHAR_MS;
    const segments = emitted.flatMap((event) => (event.type === "segment" ? [event] : []));
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
    const normalized = emitted.flatMap((event) => (event.type === "normalized" ? [event] : []));
    expect(normalized.flatMap((event) => event.characters).join("")).toBe(UPPER.slice(start));
    const startsMs = normalized.flatMap((event) => event.start_ms);
    for (const [index, ms] of startsMs.entries()) expect(ms).toBeCloseTo(placeMs(start + index), 0);
  });

  it("emits normalized characters of no length at the end of what is kept, and none twice", () => {
    const rig = stage(QUERY);
    // The accent has no time of its own.
    const text = "alpha bravo\u0301 charlie";
    const times = [...text].map((_, index) => (Math.min(index, 11) + Math.max(0, index - 12)) * CHAR_MS);
    const part = (from: number, to: number) => ({
      characters: [...text.slice(from, to)],
      character_start_times_seconds: times.slice(from, to).map((ms) => ms / 1000),
      character_end_times_seconds: Array.from({ length: to - from }, (_, index) => {
        const at = from + index;
        return (times[at + 1] ?? (times[at] ?? 0) + CHAR_MS) / 1000;
      }),
    });
    rig.speak(text, "u");
    rig.requests[0]?.head();
    const came = part(0, 15);
    rig.requests[0]?.handlers.chunk({
      audio: spell("alpha bravo ch"),
      alignment: came,
      normalizedAlignment: came,
      voiceSegments: [],
    });
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    rig.send({ type: "resume" });
    rig.clock.advance(100);
    expect(rig.asked()[1]).toBe(" charlie");
    rig.requests[1]?.head();
    const rest = evenAlignment(" charlie", CHAR_MS);
    rig.requests[1]?.handlers.chunk({
      audio: spell(" charlie"),
      alignment: rest,
      normalizedAlignment: rest,
      voiceSegments: [],
    });
    rig.requests[1]?.handlers.end();
    rig.clock.advance(5000);
    const emitted = since(rig).flatMap((event) => (event.type === "normalized" ? event.characters : []));
    expect(emitted.join("")).toBe("bravo\u0301 charlie");
  });

  it("emits nothing that nobody asked for", () => {
    const rig = answered("format=ulaw_8000&events=words");
    rig.clock.advance(120);
    rig.send({ type: "interrupt" });
    rig.send({ type: "resume" });
    rig.clock.advance(5000);
    expect(since(rig).filter((event) => event.type === "normalized" || event.type === "segment")).toEqual([]);
    expect(rig.outcomes()).toEqual(["u/interrupted", "u/done"]);
  });
});
