/** A player that is behind by its own word when what it plays has been made and played to its end: that can be cut, too. */
import { describe, expect, it } from "vitest";
import { heardOf, lettersOf, read, stage } from "./spelling.ts";

const TEXT = "alpha bravo charlie delta echo";
/** 50 ms a character. */
const END_MS = TEXT.length * 50;
const code = (expected: string) => expect.objectContaining({ code: expected });

/** Speaks, and plays for `ms`; the player says every 100 ms that it is so far behind. */
function played(of: { ms: number; behindMs: number }, query = "format=ulaw_8000") {
  const rig = stage(query);
  rig.speak(TEXT, "u");
  rig.answer(0);
  for (let nowMs = 100; nowMs <= of.ms; nowMs += 100) {
    rig.clock.advance(100);
    const atMs = nowMs - of.behindMs;
    if (atMs > 0 && atMs <= END_MS) rig.send({ type: "played", at_ms: atMs });
  }
  return rig;
}

describe("an interruption behind the end of what a late player plays", () => {
  it.each([
    ["what is queued", {}],
    ["by its id", { utterance_id: "u" }],
  ])("reports what it has heard, and can be resumed from there: %s", (_name, named) => {
    const rig = played({ ms: 1900, behindMs: 1000 });
    expect(rig.outcomes()).toEqual(["u/done"]);
    rig.send({ type: "interrupt", ...named });
    const [receipt] = rig.listener.eventsOf("interrupted");
    expect(receipt).toMatchObject({
      utterance_id: "u",
      heard: { text: "alpha bravo ", end: 12, ms: 900, source: "ack" },
      unheard_text: "charlie delta echo",
      resumable: true,
    });
    rig.send({ type: "resume" });
    rig.hearOut(5000);
    expect(rig.asked()).toEqual([TEXT]);
    expect(rig.outcomes()).toEqual(["u/done", "u/interrupted", "u/done"]);
    expect(read(heardOf(rig.listener).at(-1)?.audio ?? new Uint8Array())).toBe(
      lettersOf("charlie delta echo"),
    );
  });

  it("reports each listener's own, where others have heard it all", () => {
    const rig = stage();
    const late = rig.join("role=listener&format=ulaw_8000");
    rig.speak(TEXT, "u");
    rig.answer(0);
    for (let nowMs = 100; nowMs <= 1800; nowMs += 100) {
      rig.clock.advance(100);
      rig.send({ type: "played", at_ms: Math.min(nowMs, END_MS) });
      if (nowMs > 1000) late.send({ type: "played", at_ms: nowMs - 1000 });
    }
    rig.send({ type: "interrupt" });
    const [receipt] = rig.listener.eventsOf("interrupted");
    expect(receipt?.heard.text).toBe("alpha bravo ");
    expect(receipt?.listeners?.map(({ ms, text }) => [ms, text])).toEqual([
      [END_MS, TEXT],
      [800, "alpha bravo "],
    ]);
    expect(late.listener.eventsOf("interrupted")).toEqual([receipt]);
  });

  it("cuts what waits behind it, too, and echoes no mark twice", () => {
    const rig = played({ ms: 1400, behindMs: 1000 });
    rig.send({ type: "mark", name: "m" });
    rig.clock.advance(300);
    rig.send({ type: "played", at_ms: 700 });
    rig.speak("more of it", "v");
    rig.send({ type: "interrupt" });
    expect(
      rig.listener.eventsOf("interrupted").map((event) => [event.utterance_id, event.heard.end]),
    ).toEqual([
      ["u", 12],
      ["v", 0],
    ]);
    rig.send({ type: "resume" });
    rig.hearOut(5000);
    expect(rig.listener.eventsOf("mark")).toHaveLength(1);
    expect(rig.outcomes()).toEqual(["u/done", "u/interrupted", "v/interrupted", "u/done"]);
  });

  it.each([
    ["a player that has come to the end", { ms: 2600, behindMs: 1000 }],
    ["a player that is hardly late", { ms: 1600, behindMs: 200 }],
    ["a player that says nothing", { ms: 1600, behindMs: 10_000 }],
    ["a player that has said nothing for long", { ms: 1600, behindMs: 1000, silentMs: 5000 }],
  ])(
    "has nothing to cut for %s",
    (_name, { silentMs = 0, ...of }: { ms: number; behindMs: number; silentMs?: number }) => {
      const rig = played(of);
      rig.clock.advance(silentMs);
      expect(() => rig.send({ type: "interrupt" })).toThrow(code("nothing_to_interrupt"));
      expect(() => rig.send({ type: "interrupt", utterance_id: "u" })).toThrow(code("unknown_utterance"));
    },
  );

  it("cuts what is heard at the playhead where that has begun: what was before it is over", () => {
    const rig = played({ ms: 1600, behindMs: 1000 });
    rig.speak("more of it", "v");
    rig.answer(1);
    rig.clock.advance(100);
    rig.send({ type: "played", at_ms: 700 });
    rig.send({ type: "interrupt" });
    expect(rig.listener.eventsOf("interrupted").map((event) => event.utterance_id)).toEqual(["v"]);
  });
});
