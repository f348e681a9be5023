import { describe, expect, it } from "vitest";
import type { Item } from "../../../../bench/chaos/hearing.ts";
import { wordsOf } from "../../../../bench/chaos/texts.ts";
import { type End, FRAME_MS, judge } from "../../../../bench/chaos/verdict.ts";
import type { Event } from "../../../../src/client/index.ts";

const TEXT = "One two three.";
const FRAME_BYTES = 160;
/** Each word takes so long, one behind the other. */
const WORD_MS = 100;

const base = { seq: 1, at_ms: 0, utterance_id: "first" };
const event = (event: Event): Item => ({ kind: "event", event, wallMs: 0 });
const frame = (index: number): Item => ({
  kind: "frame",
  atMs: index * FRAME_MS,
  bytes: new Uint8Array(FRAME_BYTES).fill(index),
  wallMs: 0,
});
const frames = (from: number, to: number): Item[] =>
  Array.from({ length: to - from }, (_, index) => frame(from + index));

/** Words of the text by number, the first of them at `atMs`. */
function words(numbers: readonly number[], atMs = (numbers[0] ?? 0) * WORD_MS): Item {
  const all = wordsOf(TEXT);
  const timed = numbers.map((number, index) => {
    const { start = 0, end = 0 } = all[number] ?? {};
    const startMs = atMs + index * WORD_MS;
    return { text: TEXT.slice(start, end), start_ms: startMs, end_ms: startMs + WORD_MS, start, end };
  });
  return event({ type: "words", ...base, timing: "exact", words: timed });
}

const started = event({
  type: "utterance.started",
  ...base,
  start_ms: 0,
  voice_ids: ["v"],
  source_format: "ulaw_8000",
});

function done(more: object = {}): End {
  const fields = {
    type: "utterance.done",
    ...base,
    outcome: "done",
    start_ms: 0,
    end_ms: 300,
    pad_ms: 0,
    characters_billed: null,
    characters_spoken: TEXT.length,
    timing: "exact",
    latency: null,
    segments: [],
    ...more,
  };
  return { kind: "done", event: fields as Extract<End, { kind: "done" }>["event"] };
}

const error = { code: "upstream_failed", message: "It failed", retryable: true };
const failed = (heard: number): End => done({ outcome: "failed", characters_spoken: heard, error });
const TRUTH = Buffer.concat(
  frames(0, 15).map((item) => (item.kind === "frame" ? item.bytes : new Uint8Array())),
);
const judged = (
  items: readonly Item[],
  end: End,
  truth: Uint8Array | null = null,
  interruptedAt: number | null = TEXT.length,
) => judge(items, { utteranceId: "first", text: TEXT, truth, interruptedAt }, end);
const KEPT = { lostWords: 0, doubledWords: 0, shortfalls: [], falseReceipts: [] };

describe("judge", () => {
  it("calls an utterance whole whose words, frames and bytes are all there", () => {
    const items = [started, words([0, 1, 2]), ...frames(0, 15)];
    expect(judged(items, done(), TRUTH)).toEqual({ outcome: "whole", ...KEPT });
  });

  it("believes a refusal of the rest of a text, if what is called spoken has come", () => {
    const refused = event({
      type: "error",
      seq: 0,
      at_ms: 0,
      code: "text_after_end",
      message: "Text for utterance first has ended",
      retryable: false,
    });
    const spoken = done({ characters_spoken: 7 });
    const items = [refused, started, words([0, 1]), ...frames(0, 15)];
    expect(judged(items, spoken)).toEqual({ outcome: "text_after_end", ...KEPT });
    const short = judged([refused, started, words([0]), ...frames(0, 15)], spoken);
    expect(short.falseReceipts).toHaveLength(1);
    expect(judged(items.slice(1), spoken)).toMatchObject({ outcome: "whole", lostWords: 1 });
  });

  it("finds a word without an event, and one whose audio did not come", () => {
    expect(judged([started, words([0, 1]), ...frames(0, 15)], done())).toMatchObject({ lostWords: 1 });
    const short = judged([started, words([0, 1, 2]), ...frames(0, 13)], done());
    expect(short.lostWords).toBe(1);
    expect(short.shortfalls).toHaveLength(2);
  });

  it("finds a word that was heard twice", () => {
    const twice = [started, words([0, 1, 2]), words([2], 300), ...frames(0, 20)];
    expect(judged(twice, done({ end_ms: 400 }))).toMatchObject({ outcome: "whole", doubledWords: 1 });
  });

  it("counts a word once that was begun, and said again behind a splice", () => {
    const start = wordsOf(TEXT)[1]?.start ?? 0;
    const recovered = event({
      type: "warning",
      ...base,
      at_ms: 160,
      code: "speech_recovered",
      message: "It broke off",
      start,
    });
    const items = [started, words([0, 1]), recovered, words([1, 2], 160), ...frames(0, 18)];
    expect(judged(items, done({ end_ms: 360 }))).toEqual({ outcome: "whole", ...KEPT });
  });

  it("finds bytes that are not the service's own", () => {
    const items = [started, words([0, 1, 2]), ...frames(0, 15)];
    const other = Buffer.from(TRUTH).fill(99, 500, 501);
    expect(judged(items, done(), other).shortfalls).toEqual(["audio differs from the service's own"]);
    expect(judged(items, done(), Buffer.concat([TRUTH, TRUTH])).shortfalls).toEqual([]);
  });

  it("takes a failure with what was heard, and finds one that claims more or less", () => {
    const items = [started, words([0, 1]), ...frames(0, 10)];
    const [, second, third] = wordsOf(TEXT).map(({ end }) => end);
    expect(judged(items, failed(second ?? 0))).toEqual({ outcome: "upstream_failed", ...KEPT });
    expect(judged(items, failed(third ?? 0)).falseReceipts).toHaveLength(1);
    expect(judged(items, failed(0)).falseReceipts).toHaveLength(1);
  });

  it("finds a receipt that claims a word that was not sent", () => {
    const receipt = (end: number, accepted = TEXT.length): Item =>
      event({
        type: "interrupted",
        ...base,
        heard: { text: TEXT.slice(0, end), end, ms: 200, source: "estimate", bound_ms: 40 },
        unheard_text: TEXT.slice(end, accepted),
        resumable: true,
        next_ms: 200,
      });
    const [, second = 0, third = 0] = wordsOf(TEXT).map(({ end }) => end);
    const heard = [started, words([0, 1]), ...frames(0, 10)];
    const cut = done({ outcome: "interrupted" });
    expect(judged([...heard, receipt(second)], cut)).toEqual({ outcome: "interrupted", ...KEPT });
    expect(judged([...heard, receipt(third)], cut).falseReceipts).toHaveLength(1);
    expect(judged(heard, cut).shortfalls).toEqual(["interrupted without a receipt"]);
    expect(judged([...heard, receipt(second)], cut, null, null).shortfalls).toEqual([
      "interrupted, and its caller did not ask for it",
    ]);
    // It was interrupted while its text came: the receipt has what had been sent, or more.
    const early = [...heard, receipt(second, third)];
    expect(judged(early, cut, null, second)).toEqual({ outcome: "interrupted", ...KEPT });
    expect(judged(early, cut, null, third + 1).falseReceipts).toEqual([
      "the receipt's two texts are not the text",
    ]);
  });

  it("accepts missing audio that a gap event reports", () => {
    const gap = event({ type: "gap", seq: 2, at_ms: 200, frames: 5, ms: 100 });
    const items = [started, words([0, 1, 2]), ...frames(0, 5), gap, ...frames(10, 15)];
    expect(judged(items, done())).toEqual({ outcome: "gap", ...KEPT });
  });

  it("goes on counting on another node's timeline", () => {
    const joined: Item = { kind: "joined", gapMs: null, isTakenOver: true, wallMs: 0 };
    const before = [started, words([0, 1, 2]), ...frames(0, 10)];
    const behind = [joined, words([2], 0), ...frames(0, 5)];
    expect(judged([...before, ...behind], done({ end_ms: 100 }))).toEqual({ outcome: "whole", ...KEPT });
    const again = [joined, words([1, 2], 0), ...frames(0, 10)];
    expect(judged([...before, ...again], done({ end_ms: 200 })).doubledWords).toBe(1);
  });

  it("finds an utterance that never ends", () => {
    const verdict = judged([started, words([0]), ...frames(0, 5)], { kind: "never" });
    expect(verdict).toMatchObject({ outcome: "never ended", shortfalls: ["no end came"] });
  });
});
