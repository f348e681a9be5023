/** Receipts where nothing was timed: how much of the text was heard is emitted by the share of the audio. */

import { describe, expect, it } from "vitest";
import { type SegmentSpan, spokenEndAt } from "../../../src/session/heard-share.ts";
import { TICKS_PER_MS } from "../../../src/timing/ticks.ts";
import { CHAR_MS, stage, VOICE } from "./spelling.ts";

const TEXT = "alpha bravo charlie delta echo foxtrot golf hotel india juliet";
const ms = (count: number): number => count * TICKS_PER_MS;

describe("spokenEndAt()", () => {
  const segment = (start: number, end: number, startMs: number, endMs: number | null): SegmentSpan => ({
    start,
    end,
    startTicks: ms(startMs),
    endTicks: endMs === null ? null : ms(endMs),
  });
  const letters = "a".repeat(60);

  it("goes by the length of a segment that was pushed whole", () => {
    const speech = { spoken: letters, spans: [segment(0, 60, 0, 6000)], coming: null };
    expect(spokenEndAt(speech, ms(2050))).toBe(20);
    expect(spokenEndAt(speech, ms(6500))).toBe(60);
  });

  it("goes by what has come where that is all of it", () => {
    const coming = { endTicks: ms(6000), isWhole: true };
    expect(spokenEndAt({ spoken: letters, spans: [segment(0, 60, 0, null)], coming }, ms(2050))).toBe(20);
  });

  it("takes a typical pace for a segment that has not all come, in any script", () => {
    const coming = { endTicks: ms(2000), isWhole: false };
    const endOf = (spoken: string): number =>
      spokenEndAt({ spoken, spans: [segment(0, spoken.length, 0, null)], coming }, ms(1000));
    expect(endOf(letters)).toBe(15);
    expect(endOf("言".repeat(60))).toBe(6);
  });

  it("takes the pace of the segments before it", () => {
    const spans = [segment(0, 20, 0, 4000), segment(20, 60, 4000, null)];
    const coming = { endTicks: ms(6000), isWhole: false };
    expect(spokenEndAt({ spoken: letters, spans, coming }, ms(5050))).toBe(25);
  });

  it("has not heard it all before what has come was heard, however slow the voice is", () => {
    const coming = { endTicks: ms(10_000), isWhole: false };
    const speech = { spoken: letters, spans: [segment(0, 60, 0, null)], coming };
    expect(spokenEndAt(speech, ms(8050))).toBe(48);
  });
});

describe("a cut where nothing was timed", () => {
  it.each([
    ["with all of its audio there", TEXT.length],
    ["with a part of its audio there", 40],
  ])("says about what was heard, %s", (_, chars) => {
    const rig = stage("format=ulaw_8000&events=none");
    rig.speak(TEXT, "u");
    rig.answer(0, { chars });
    rig.clock.advance(820);
    rig.send({ type: "interrupt" });
    const [receipt] = rig.listener.eventsOf("interrupted");
    const heardChars = 820 / CHAR_MS;
    expect(Math.abs((receipt?.heard.end ?? 0) - heardChars)).toBeLessThan(6);
    expect(receipt?.heard.text).toBe(TEXT.slice(0, receipt?.heard.end));
    expect(receipt?.unheard_text).toBe(TEXT.slice(receipt?.heard.end));
  });

  it("says about what was heard of a text that comes in pieces", () => {
    const rig = stage("format=ulaw_8000&events=none");
    rig.send({ type: "text", text: `${TEXT}. `, voice_id: VOICE, utterance_id: "u" });
    rig.send({ type: "flush", utterance_id: "u" });
    rig.send({ type: "text", text: `${TEXT}.`, utterance_id: "u" });
    rig.send({ type: "end", utterance_id: "u" });
    rig.hearOut(TEXT.length * CHAR_MS + 1000);
    expect(rig.asked()).toHaveLength(2);
    rig.send({ type: "interrupt" });
    const [receipt] = rig.listener.eventsOf("interrupted");
    const heardChars = (receipt?.heard.ms ?? 0) / CHAR_MS;
    expect(heardChars).toBeGreaterThan(TEXT.length + 10);
    expect(Math.abs((receipt?.heard.end ?? 0) - heardChars)).toBeLessThan(12);
  });
});
