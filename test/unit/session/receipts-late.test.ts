/** Receipts of listeners that say that they are far behind what was made: the times of what they hear are kept for them. */
import { expect, it } from "vitest";
import { CHAR_MS, stage } from "./spelling.ts";

/** 40 s of it. */
const TEXT = `${Array.from({ length: 200 }, () => "abc").join(" ")}.`;

/** Speaks for `ms`; the upstream sends so many characters in 100 ms. The listener says every half second where it is. */
function listen(query: string, of: { ms: number; charsAtOnce: number; playedMs: (nowMs: number) => number }) {
  const rig = stage(query);
  rig.speak(TEXT, "u");
  let sent = 0;
  for (let nowMs = 0; nowMs < of.ms; nowMs += 100) {
    if (sent < TEXT.length) rig.answer(0, { from: sent, chars: of.charsAtOnce });
    sent += of.charsAtOnce;
    rig.clock.advance(100);
    const atMs = of.playedMs(nowMs + 100);
    if (nowMs % 500 === 400 && atMs > 0) rig.send({ type: "played", at_ms: atMs });
  }
  return rig;
}

function expectHeard({ send, listener }: ReturnType<typeof stage>, ms: number): void {
  send({ type: "interrupt" });
  const [receipt] = listener.eventsOf("interrupted");
  expect(receipt?.heard).toMatchObject({ source: "ack", ms });
  // A word has three characters and a space.
  const heardMs = (receipt?.heard.end ?? 0) * CHAR_MS;
  expect(heardMs).toBeLessThanOrEqual(ms);
  expect(heardMs).toBeGreaterThan(ms - 5 * CHAR_MS);
  expect(`${receipt?.heard.text}${receipt?.unheard_text}`).toBe(TEXT);
}

it.each([1000, 3000, 6000, 11_000])("a player that is %d ms behind the playhead", (behindMs) => {
  const playedMs = (nowMs: number): number => nowMs - behindMs;
  expectHeard(listen("format=ulaw_8000", { ms: 30_000, charsAtOnce: 20, playedMs }), 30_000 - behindMs);
});

it("a player that falls behind more and more", () => {
  const playedMs = (nowMs: number): number => nowMs / 2;
  expectHeard(listen("format=ulaw_8000", { ms: 38_000, charsAtOnce: 20, playedMs }), 19_000);
});

it.each([1000, 3000])("one that is sent all at once and has played %d ms", (ms) => {
  const playedMs = (nowMs: number): number => (nowMs > 500 ? nowMs : 0);
  expectHeard(listen("format=ulaw_8000&pace=burst", { ms, charsAtOnce: 20, playedMs }), ms);
});
