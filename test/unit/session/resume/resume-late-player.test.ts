/** Players that say that they are far behind what was made: cut, they go on from where they were, from the audio that is kept. */
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../../src/errors.ts";
import { CHAR_MS, heardOf, lettersOf, read, stage } from "../spelling.ts";

/** 40 s of words that are all different. */
const TEXT = `${Array.from({ length: 200 }, (_, at) => `${letter(at / 20)}${letter(at)}k`).join(" ")}.`;

function letter(at: number): string {
  return String.fromCharCode(97 + (Math.floor(at) % 20));
}

type Rig = ReturnType<typeof stage>;

/** Speaks for `ms`; the upstream sends all within 4 s. The listener says where it is at the times that `says` picks. */
function listen(rig: Rig, of: { ms: number; behindMs: number; says: (nowMs: number) => boolean }): void {
  rig.speak(TEXT, "u");
  for (let nowMs = 100; nowMs <= of.ms; nowMs += 100) {
    const from = (nowMs / 100 - 1) * 20;
    if (from < TEXT.length) rig.answer(0, { from, chars: 20 });
    rig.clock.advance(100);
    const atMs = nowMs - of.behindMs;
    if (atMs > 0 && of.says(nowMs)) rig.send({ type: "played", at_ms: atMs });
  }
}

const twiceASecond = (nowMs: number): boolean => nowMs % 500 === 0;

/** What sounds behind the cut is all that was not heard, and nothing was asked for again. */
function expectGoesOn(rig: Rig, heardMs: number): void {
  rig.send({ type: "interrupt" });
  const receipt = rig.listener.eventsOf("interrupted").at(-1);
  expect(receipt).toMatchObject({ resumable: true, heard: { source: "ack" } });
  expect(receipt?.heard.end).toBeGreaterThan(heardMs / CHAR_MS - 6);
  expect(receipt?.heard.end).toBeLessThanOrEqual(heardMs / CHAR_MS);
  rig.send({ type: "resume" });
  rig.hearOut(40_000);
  expect(rig.asked()).toEqual([TEXT]);
  expect(read(heardOf(rig.listener).at(-1)?.audio ?? new Uint8Array())).toBe(
    lettersOf(receipt?.unheard_text ?? ""),
  );
  expect(rig.outcomes()).toEqual(["u/interrupted", "u/done"]);
}

describe("a player that says that it is behind the playhead", () => {
  it.each([1000, 2500, 4000, 8000, 11_500])("by %d ms is resumed from where it was", (behindMs) => {
    const rig = stage();
    listen(rig, { ms: 24_000, behindMs, says: twiceASecond });
    expectGoesOn(rig, 24_000 - behindMs);
  });

  it("also where it says so now and then, and again only when it interrupts", () => {
    const rig = stage();
    listen(rig, { ms: 24_000, behindMs: 6000, says: (nowMs) => nowMs === 9000 || nowMs === 24_000 });
    expectGoesOn(rig, 18_000);
  });

  it("by more than the reach is not: so much is not kept", () => {
    const rig = stage("format=ulaw_8000", { resumeReachMs: 4000 });
    listen(rig, { ms: 24_000, behindMs: 8000, says: twiceASecond });
    rig.send({ type: "interrupt" });
    expect(rig.listener.eventsOf("interrupted")).toMatchObject([
      { resumable: false, heard: { source: "ack" } },
    ]);
  });

  it("for the first time when it interrupts is not: nothing is kept for those who say nothing", () => {
    const rig = stage();
    listen(rig, { ms: 24_000, behindMs: 6000, says: (nowMs) => nowMs === 24_000 });
    rig.send({ type: "interrupt" });
    expect(rig.listener.eventsOf("interrupted")).toMatchObject([
      { resumable: false, heard: { source: "ack" } },
    ]);
  });

  it("costs memory of the gateway that is counted, until the session is over", () => {
    const rig = stage();
    expect(rig.sessions.recentAudioBytes).toBe(0);
    listen(rig, { ms: 3000, behindMs: 200, says: twiceASecond });
    // 8 bytes a millisecond: 2 s behind the playhead, 200 ms before it, and slices of a second.
    expect(rig.sessions.recentAudioBytes).toBeGreaterThan(16_000);
    expect(rig.sessions.recentAudioBytes).toBeLessThan(28_000);
    const late = stage();
    listen(late, { ms: 12_000, behindMs: 6000, says: twiceASecond });
    expect(late.sessions.recentAudioBytes).toBeGreaterThan(64_000);
    late.sessions.close(() => new GatewayError("draining", "Over"));
    expect(late.sessions.recentAudioBytes).toBe(0);
  });

  it("and caught up gives the memory back", () => {
    const late = stage();
    listen(late, { ms: 12_000, behindMs: 6000, says: twiceASecond });
    for (let nowMs = 12_100; nowMs <= 16_000; nowMs += 100) {
      late.clock.advance(100);
      if (twiceASecond(nowMs)) late.send({ type: "played", at_ms: nowMs - 300 });
    }
    expect(late.sessions.recentAudioBytes).toBeLessThan(28_000);
  });

  it("and caught up is not kept for any longer", () => {
    const rig = stage();
    listen(rig, { ms: 12_000, behindMs: 6000, says: twiceASecond });
    for (let nowMs = 12_100; nowMs <= 16_000; nowMs += 100) {
      rig.clock.advance(100);
      if (twiceASecond(nowMs)) rig.send({ type: "played", at_ms: nowMs - 300 });
    }
    rig.send({ type: "played", at_ms: 10_000 });
    rig.send({ type: "interrupt" });
    expect(rig.listener.eventsOf("interrupted")).toMatchObject([{ resumable: false }]);
  });
});
