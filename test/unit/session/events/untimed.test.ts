/** Speech that comes without times: its words are held to the silences in its audio. */
import { describe, expect, it } from "vitest";
import type { Alignment } from "../../../../src/timing/alignment.ts";
import { CHAR_MS, spell, stage, VOICE } from "../spelling.ts";

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
    const words = rig.listener.eventsOf("words");
    expect(words.map((event) => event.timing)).toContain("estimated");
    const [abc, def] = words.flatMap((event) => event.words);
    expect([abc?.text, def?.text]).toEqual(["Abc", "Def"]);
    expect((def?.start_ms ?? 0) - (abc?.start_ms ?? 0)).toBeCloseTo(DEF_MS, 0);
  });

  it.each([
    ["none at all", null],
    ["those of its last chunk", "last"],
  ])("emits its words as soon as it has come, with %s", (_, alignedChunk) => {
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
    expect(rig.listener.eventsOf("words").flatMap((event) => event.words)[0]).toMatchObject({ text: "abc" });
  });

  const SENTENCES = [
    "Abc def ghi jkl.",
    "Mno pqr stu.",
    "Vwx yza bcd efg hij.",
    "Klm nop qrs.",
    "Tuv wxy zab cde.",
  ];
  const LONG_TEXT = [...SENTENCES, ...SENTENCES, ...SENTENCES].join(" ");
  /** Each stop is a pause of 0.4 s. */
  const LONG_SAID = LONG_TEXT.replaceAll(".", " ".repeat(7));

  /** Sends the next 200 ms, and lets as much time pass. */
  function sayOn(rig: ReturnType<typeof stage>, from: number, count: number): void {
    const audio = spell(LONG_SAID);
    for (let atMs = from * 200; atMs < (from + count) * 200; atMs += 200) {
      rig.requests[0]?.handlers.chunk({
        audio: audio.slice(atMs * 8, (atMs + 200) * 8),
        alignment: null,
        normalizedAlignment: null,
        voiceSegments: [],
      });
    }
  }

  it.each([
    ["comes faster than it is heard", 5, 800],
    ["comes as it is heard", 1, 4500],
  ])("that goes on is emitted on the way, where it %s", (_, chunksEach200Ms, mostLateMs) => {
    const rig = stage("format=ulaw_8000&events=words", { aheadMs: 5000 });
    rig.send({ type: "speak", text: LONG_TEXT, voice_id: VOICE, utterance_id: "u" });
    rig.requests[0]?.head();
    const chunks = Math.ceil((LONG_SAID.length * CHAR_MS) / 200);
    // Never the whole of it.
    const last = chunks - 10;
    const latest: number[] = [];
    let emitted = 0;
    for (let sent = 0, passedMs = 0; passedMs < last * 200; passedMs += 200) {
      const count = Math.min(chunksEach200Ms, last - sent);
      sayOn(rig, sent, count);
      sent += count;
      rig.clock.advance(200);
      const words = rig.listener.eventsOf("words").flatMap((event) => event.words);
      for (const word of words.slice(emitted)) latest.push(passedMs - word.start_ms);
      emitted = words.length;
    }
    const events = rig.listener.eventsOf("words");
    expect(new Set(events.map((event) => event.timing))).toEqual(new Set(["estimated"]));
    const words = events.flatMap((event) => event.words);
    expect(words.length).toBeGreaterThan(40);
    expect(Math.max(...latest)).toBeLessThanOrEqual(mostLateMs);
    const [first] = words;
    for (const word of words.filter(({ text }) => ["Mno", "Vwx", "Klm", "Tuv"].includes(text))) {
      // Where its letters sound in what was said, which has more of them for each stop.
      const stops = LONG_TEXT.slice(0, word.start).split(".").length - 1;
      const trueMs = (word.start + 6 * stops) * CHAR_MS;
      expect(Math.abs(word.start_ms - (first?.start_ms ?? 0) - trueMs)).toBeLessThan(60);
    }
  });

  it("is cut before its times were guessed: what was heard is emitted first, and resume goes on there", () => {
    const rig = stage("format=ulaw_8000&events=words", { aheadMs: 5000 });
    rig.send({ type: "speak", text: LONG_TEXT, voice_id: VOICE, utterance_id: "u" });
    rig.requests[0]?.head();
    for (let sent = 0; sent < 17; sent += 1) {
      sayOn(rig, sent, 1);
      rig.clock.advance(200);
    }
    expect(rig.listener.eventsOf("words")).toEqual([]);
    rig.send({ type: "interrupt" });
    const events = rig.listener.sent.flatMap(({ event }) => (event === undefined ? [] : [event]));
    const cutAt = events.findIndex(({ type }) => type === "interrupted");
    const [cut] = rig.listener.eventsOf("interrupted");
    const before = events.slice(0, cutAt).flatMap((event) => (event.type === "words" ? event.words : []));
    const heard = before.filter((word) => word.end_ms <= (cut?.heard.ms ?? 0)).map(({ text }) => text);
    expect(heard.slice(0, 7)).toEqual(["Abc", "def", "ghi", "jkl", "Mno", "pqr", "stu"]);
    expect(cut?.heard.text.match(/[a-z]+/gi)).toEqual(heard);
    rig.send({ type: "resume" });
    expect(rig.asked().at(-1)?.trimStart()).toBe(LONG_TEXT.slice(cut?.heard.end).trimStart());
  });
});
