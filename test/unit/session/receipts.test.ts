import { describe, expect, it } from "vitest";
import { receiptOf } from "../../../src/session/receipts.ts";
import { TICKS_PER_MS } from "../../../src/timing/ticks.ts";

const ms = (count: number): number => count * TICKS_PER_MS;
const text = "Hello world";
const characters = [...text].map((_, index) => ({ end: index + 1, endTicks: ms(1000 + (index + 1) * 100) }));
const base = {
  text,
  characters,
  startTicks: ms(1000),
  clientEnd: (spoken: number) => spoken,
  placeUpTo: (spoken: number) => spoken,
  resumedStart: 0,
  heardBeforeTicks: 0,
  untimed: { spoken: text, spans: [], coming: null },
};
const at = (atMs: number) => ({ ticks: ms(atMs), source: "estimate", boundMs: 40 }) as const;

describe("receiptOf()", () => {
  it("counts a character as heard once it is over, never before", () => {
    expect(receiptOf(base, at(1499))).toMatchObject({
      text: "Hell",
      end: 4,
      ms: 499,
      unheardText: "o world",
    });
    expect(receiptOf(base, at(1500))).toMatchObject({ text: "Hello", end: 5, ms: 500 });
  });

  it("has heard nothing before the start and everything after the end", () => {
    expect(receiptOf(base, at(900))).toMatchObject({ text: "", ms: 0, unheardText: text });
    expect(receiptOf(base, at(5000))).toMatchObject({ text, unheardText: "" });
  });

  it("goes by the share of the audio where nothing was timed, and never splits a surrogate pair", () => {
    const emoji = "😀😀";
    const spans = [{ start: 0, end: emoji.length, startTicks: 0, endTicks: ms(1000) }];
    const untimed = { spoken: emoji, spans, coming: null };
    const facts = { ...base, text: emoji, characters: [], startTicks: 0, untimed };
    expect(receiptOf(facts, at(300)).text).toBe("");
    expect(receiptOf(facts, at(800)).text).toBe("😀");
  });

  it("goes by the share of the audio of a segment without times behind one that has them", () => {
    const spoken = `${text} again`;
    const spans = [
      { start: 0, end: text.length, startTicks: ms(1000), endTicks: ms(2100) },
      { start: text.length, end: spoken.length, startTicks: ms(2100), endTicks: ms(2700) },
    ];
    const facts = { ...base, text: spoken, untimed: { spoken, spans, coming: null } };
    expect(receiptOf(facts, at(2050)).text).toBe("Hello worl");
    expect(receiptOf(facts, at(2450)).text).toBe("Hello world ag");
  });

  it("goes on by the share of the audio where the times have come for a part only, and not in a pause", () => {
    const spoken = `${text}${"a".repeat(20)}`;
    const spans = [{ start: 0, end: spoken.length, startTicks: ms(1000), endTicks: ms(4100) }];
    const facts = { ...base, text: spoken, untimed: { spoken, spans, coming: null } };
    expect(receiptOf(facts, at(2900)).end).toBe(text.length);
    expect(receiptOf(facts, at(3150)).end).toBe(text.length + 10);
  });

  it("the receipt of an utterance that never started is all unheard", () => {
    expect(receiptOf({ ...base, characters: [], startTicks: null }, at(0))).toMatchObject({
      text: "",
      ms: 0,
      unheardText: text,
    });
  });

  it("adds what was heard before it was cut and resumed", () => {
    expect(receiptOf({ ...base, heardBeforeTicks: ms(700) }, at(1500))).toMatchObject({ end: 5, ms: 1200 });
  });

  it("reports offsets of the client's text where another one was spoken", () => {
    const facts = { ...base, text: "Hi 🌍 world", clientEnd: (spoken: number) => spoken - 2 };
    expect(receiptOf(facts, at(1500))).toMatchObject({ text: "Hi ", end: 3 });
  });
});
