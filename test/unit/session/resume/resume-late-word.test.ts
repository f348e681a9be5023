/** `resume` where words have estimated times, and the last one is still heard when by these it is over. */
import { describe, expect, it } from "vitest";
import { heardOf, read, spell, stage, VOICE } from "../spelling.ts";

/** The mark at the end is taken to have a part of the audio, in which the last word is still heard. */
const TEXT = "今天天气很好吧。";
const SAID = "abcdefghijklmnopqrst";

function untimed(said = SAID) {
  const rig = stage();
  rig.speak(TEXT, "u");
  const [request] = rig.requests;
  request?.head();
  request?.chunk(spell(said));
  request?.handlers.end();
  return rig;
}

describe("resume behind the estimated end of the last word", () => {
  it("says that word again where something sounds yet", () => {
    const rig = untimed();
    rig.clock.advance(970);
    const [last] = rig.sink.eventsOf("words").flatMap(({ words }) => words.slice(-1));
    expect(last).toMatchObject({ start: 6, end: 7 });
    expect(last?.end_ms).toBeLessThan(970);
    rig.send({ type: "interrupt" });
    rig.send({ type: "resume" });
    rig.hearOut();
    expect(rig.sink.eventsOf("utterance.resumed")).toMatchObject([{ start: 6, timing: "estimated" }]);
    expect(rig.requests).toHaveLength(1);
    expect(read(heardOf(rig.sink)[1]?.audio ?? new Uint8Array(0)).at(-1)).toBe("t");
    expect(rig.outcomes()).toEqual(["u/interrupted", "u/done"]);
  });

  it("does so also where the next piece is being made", () => {
    const rig = stage();
    for (const text of [TEXT, "明天见。"]) {
      rig.send({ type: "text", text, voice_id: VOICE, utterance_id: "u" });
      rig.send({ type: "flush", utterance_id: "u" });
    }
    rig.send({ type: "end", utterance_id: "u" });
    rig.requests[0]?.head();
    rig.requests[0]?.chunk(spell(SAID));
    rig.requests[0]?.handlers.end();
    rig.clock.advance(900);
    rig.requests[1]?.head();
    rig.requests[1]?.chunk(spell("uv"));
    rig.clock.advance(70);
    rig.send({ type: "interrupt" });
    rig.send({ type: "resume" });
    rig.hearOut();
    expect(rig.sink.eventsOf("utterance.resumed")).toMatchObject([{ start: 6, timing: "estimated" }]);
    expect(rig.asked()).toEqual([TEXT, "明天见。", "明天见。"]);
    expect(read(heardOf(rig.sink)[1]?.audio ?? new Uint8Array(0))).toMatch(/t$/);
  });

  it("has nothing to go on with where only silence is left", () => {
    const rig = untimed(`${SAID}   `);
    rig.clock.advance(1050);
    rig.send({ type: "interrupt" });
    expect(rig.sink.eventsOf("interrupted")).toMatchObject([{ resumable: false }]);
  });
});
