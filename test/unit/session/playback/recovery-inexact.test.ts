/** Speech that breaks off where its times were corrected, or where it has none. */
import { describe, expect, it } from "vitest";
import { audioOf, breakOff, expectTrue } from "../broken-speech.ts";
import { CHAR_MS, lettersOf, spell, stage } from "../spelling.ts";

const TEXT = "Abc def ghi jkl. Mno pqr stu. Vwx yza.";

describe("a response without any times that breaks off", () => {
  it.each([true, false])("fails with what was heard (all of it pushed: %s)", (isPushed) => {
    const rig = stage(isPushed ? "format=ulaw_8000&lead_ms=4000" : "format=ulaw_8000", { aheadMs: 8000 });
    rig.speak(TEXT, "u");
    rig.answer(0, { chars: 0, isOpen: true });
    rig.requests[0]?.chunk(spell("Abc def ghi jkl"));
    rig.clock.advance(200);
    breakOff(rig, 0);
    rig.hearOut();
    expect(rig.outcomes()).toEqual(["u/failed"]);
    expect(rig.listener.eventsOf("error")).toMatchObject([{ code: "upstream_truncated" }]);
    expect(rig.asked()).toEqual([TEXT]);
    expect(audioOf(rig.listener)).toBe(lettersOf("Abc def ghi jkl"));
  });
});

describe("a response at a wrong pace that breaks off", () => {
  const WORDS = "abc defg, hij klmno pq rstu vwx yzab cde fghi.";

  it.each([0.9, 1.1])("goes on behind the last whole word of times that were corrected: %f", (factor) => {
    const rig = stage("format=ulaw_8000&lead_ms=1000");
    rig.speak(WORDS, "u");
    const [request] = rig.requests;
    rig.answer(0, { chars: 0, isOpen: true });
    for (let at = 0; at < 36; at += 9) {
      const characters = [...WORDS.slice(at, at + 9)];
      const secondsAt = (index: number): number => ((at + index) * CHAR_MS * factor) / 1000;
      const alignment = {
        characters,
        character_start_times_seconds: characters.map((_, index) => secondsAt(index)),
        character_end_times_seconds: characters.map((_, index) => secondsAt(index + 1)),
      };
      request?.chunk(spell(characters.join("")), { alignment });
    }
    rig.clock.advance(300);
    expect(new Set(rig.listener.eventsOf("words").map(({ timing }) => timing))).toEqual(new Set(["scaled"]));
    breakOff(rig, 0);
    rig.hearOut();
    expect(rig.outcomes()).toEqual(["u/done"]);
    expect(rig.asked()).toEqual([WORDS, WORDS.slice(WORDS.indexOf(" cde"))]);
    expect(audioOf(rig.listener)).toBe(lettersOf(WORDS));
    expectTrue(rig.listener, WORDS);
  });
});
