/** Speech that comes without times: its words are held to the silences in its audio. */
import { describe, expect, it } from "vitest";
import type { Alignment } from "../../../src/timing/alignment.ts";
import { CHAR_MS, spell, stage, VOICE } from "./spelling.ts";

const TEXT = "Abc. Def.";
/** Letters sound; from the stop on it is silent for far longer than its character takes. */
const SAID = "abc            def";
const DEF_MS = SAID.indexOf("d") * CHAR_MS;
const NOTHING: Alignment = {
  characters: [],
  character_start_times_seconds: [],
  character_end_times_seconds: [],
};

describe("a response without times", () => {
  it.each([
    ["null", null, null],
    ["an alignment without characters", NOTHING, null],
    ["both alignments without characters", NOTHING, NOTHING],
    ["a normalized one without characters", null, NOTHING],
  ])("that says so by %s begins its words behind the pauses", (_, alignment, normalizedAlignment) => {
    const rig = stage("format=ulaw_8000&events=words");
    rig.send({ type: "speak", text: TEXT, voice_id: VOICE, utterance_id: "u" });
    const [request] = rig.requests;
    request?.head();
    request?.handlers.chunk({ audio: spell(SAID), alignment, normalizedAlignment, voiceSegments: [] });
    request?.handlers.end();
    rig.clock.advance(3000);
    const words = rig.sink.eventsOf("words");
    expect(words.map((event) => event.timing)).toContain("estimated");
    const [abc, def] = words.flatMap((event) => event.words);
    expect([abc?.text, def?.text]).toEqual(["Abc", "Def"]);
    expect((def?.start_ms ?? 0) - (abc?.start_ms ?? 0)).toBeCloseTo(DEF_MS, 0);
  });

  it.each([
    ["none at all", null],
    ["those of its last chunk", "last"],
  ])("tells its words as soon as it has come, with %s", (_, alignedChunk) => {
    const rig = stage("format=ulaw_8000&events=words", { aheadMs: 5000 });
    const text = "abc ".repeat(20).trim();
    rig.send({ type: "speak", text, voice_id: VOICE, utterance_id: "u" });
    const [request] = rig.requests;
    const audio = spell("abc ".repeat(20));
    const chunkMs = 200;
    const totalMs = audio.length / 8;
    // Longer than what is taken ahead of what is spoken, and all of it is there.
    expect(totalMs).toBeGreaterThan(3000);
    expect(totalMs).toBeLessThan(5000);
    const characters = [...text];
    const times = characters.map((_character, index) => (index * CHAR_MS) / 1000);
    const alignment = {
      characters,
      character_start_times_seconds: times,
      character_end_times_seconds: times.map((seconds) => seconds + CHAR_MS / 1000),
    };
    request?.head();
    for (let atMs = 0; atMs < totalMs; atMs += chunkMs) {
      const isLast = atMs + chunkMs >= totalMs;
      request?.handlers.chunk({
        audio: audio.slice(atMs * 8, (atMs + chunkMs) * 8),
        alignment: alignedChunk === "last" && isLast ? alignment : null,
        normalizedAlignment: null,
        voiceSegments: [],
      });
    }
    request?.handlers.end();
    rig.clock.advance(200);
    expect(rig.sink.eventsOf("words").flatMap((event) => event.words)[0]).toMatchObject({ text: "abc" });
  });
});
