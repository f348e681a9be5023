/** A receipt divides the text between words: one that was cut in half is emitted as not heard, and is what goes on. */
import { describe, expect, it } from "vitest";
import type { MemoryListener } from "../../helpers/memory-listener.ts";
import { countingUlaw, evenAlignment } from "../../helpers/session-rig.ts";
import { CHAR_MS, heardOf, lettersOf, read, stage, VOICE } from "./spelling.ts";

function heardLetters(listener: MemoryListener): string[] {
  return heardOf(listener).map(({ audio }) => read(audio));
}

describe("a receipt's words", () => {
  it.each([
    ["of a script without spaces", "今天北京很冷", 3, "今天"],
    ["of Thai", "สวัสดีครับ", 8, "สวัสดี"],
    ["with marks on their letters", "no cafe\u0301 noir", 5, "no "],
    ["that are pictures", "ok 👩‍👩‍👧 yes", 4, "ok "],
    ["outside the BMP", "a 𝒜𝒷𝒸 b", 3, "a "],
    ["in quotes", 'say "hello"', 7, 'say "'],
    ["behind a break", 'one <break time="1s"/> two', 10, "one "],
    ["in an element", 'the <sub alias="x">World Health</sub> body', 26, "the "],
  ])("%s are whole, timed or not", (_name, text, cutCharacters, heard) => {
    for (const isTimed of [true, false]) {
      const rig = stage(isTimed ? "format=ulaw_8000" : "format=ulaw_8000&events=none");
      rig.speak(text, "u");
      const { length } = [...text];
      rig.requests[0]?.head();
      rig.requests[0]?.chunk(
        countingUlaw(length * CHAR_MS),
        isTimed ? { alignment: evenAlignment(text, CHAR_MS) } : {},
      );
      rig.requests[0]?.handlers.end();
      rig.clock.advance(cutCharacters * CHAR_MS + 20);
      rig.send({ type: "interrupt" });
      const [receipt] = rig.listener.eventsOf("interrupted");
      expect(`${receipt?.heard.text}${receipt?.unheard_text}`).toBe(text);
      expect(receipt?.heard.end).toBe(receipt?.heard.text.length);
      if (isTimed) expect(receipt?.heard.text).toBe(heard);
      else expect([heard, text.slice(0, receipt?.heard.end)]).toContain(receipt?.heard.text);
      rig.send({ type: "resume" });
      rig.hearOut(3000);
      if (!isTimed) continue;
      const start = rig.listener.eventsOf("utterance.resumed")[0]?.start ?? -1;
      // Where a tag or a quote stands before the word it goes on with the word.
      expect(lettersOf(text.slice(heard.length, start).replace(/<[^>]*>/g, ""))).toBe("");
    }
  });

  it("the words of a dialogue end where its inputs do", () => {
    const rig = stage();
    const inputs = [
      { text: "hello", voice_id: VOICE },
      { text: "world", voice_id: "other" },
    ];
    rig.send({ type: "dialogue", inputs, utterance_id: "u" });
    rig.answer(0);
    rig.clock.advance(7 * CHAR_MS);
    rig.send({ type: "interrupt" });
    expect(rig.listener.eventsOf("interrupted")[0]).toMatchObject({
      heard: { text: "hello" },
      unheard_text: "world",
    });
  });

  it("are those of the whole that was replaced: it was heard when all that stands for it was", () => {
    const text = "alpha (VW)s charlie";
    const rules = { replacements: [{ from: "VW", to: "bravo delta" }] };
    // "alpha (bravo delta)s charlie"
    for (const [cutCharacters, heard] of [
      [9, "alpha ("],
      [15, "alpha ("],
      [19, "alpha ("],
      [23, "alpha (VW)s "],
    ] as const) {
      const rig = stage();
      rig.speak(text, "u", rules);
      rig.answer(0);
      rig.clock.advance(cutCharacters * CHAR_MS + 20);
      rig.send({ type: "interrupt" });
      const [receipt] = rig.listener.eventsOf("interrupted");
      expect(receipt).toMatchObject({ heard: { text: heard }, unheard_text: text.slice(heard.length) });
    }
  });
});

describe("what goes on", () => {
  const text = "alpha VW echo foxtrot";
  const rules = { replacements: [{ from: "VW", to: "bravo charlie delta" }] };
  const spoken = "alpha bravo charlie delta echo foxtrot";
  const at = (word: string): number => spoken.indexOf(word);

  it.each(["charlie", "delta"])("begins with the whole of a replacement that was cut in %s", (word) => {
    const rig = stage();
    rig.speak(text, "u", rules);
    rig.answer(0);
    rig.clock.advance(at(word) * CHAR_MS + 70);
    rig.send({ type: "interrupt" });
    expect(rig.listener.eventsOf("interrupted")[0]?.unheard_text).toBe("VW echo foxtrot");
    rig.send({ type: "resume" });
    rig.hearOut();
    expect(rig.asked()).toEqual([spoken]);
    expect(rig.listener.eventsOf("utterance.resumed")[0]?.start).toBe(6);
    expect(heardLetters(rig.listener)[1]).toBe(lettersOf(spoken.slice(6)));
    const words = rig.listener.events.slice(
      rig.listener.events.findIndex((e) => e.type === "utterance.resumed"),
    );
    const [first] = words.flatMap((event) => (event.type === "words" ? event.words : []));
    expect(first).toMatchObject({ text: "VW", start: 6, end: 8 });
  });

  it.each([
    ["cut before it", at("alpha") + 2, at("delta") + 2, "alpha"],
    ["cut in it", at("charlie") + 2, at("delta") + 2, ""],
    ["cut in it, behind all words that have come", at("delta") + 1, at("delta") + 2, ""],
  ])(
    "is asked for from a replacement's beginning where that had come in part: %s",
    (_name, cut, come, kept) => {
      const rig = stage();
      rig.speak(text, "u", rules);
      rig.answer(0, { chars: come });
      rig.clock.advance(cut * CHAR_MS + 20);
      rig.send({ type: "interrupt" });
      rig.send({ type: "resume" });
      rig.hearOut();
      expect(rig.asked()[1]?.trim()).toBe("bravo charlie delta echo foxtrot");
      expect(heardLetters(rig.listener)[1]).toBe(kept + lettersOf(spoken.slice(6)));
      expect(rig.listener.eventsOf("utterance.resumed")[0]?.kept_end).toBeLessThanOrEqual(6);
    },
  );

  it("is asked for with the markup that stays whole", () => {
    const marked = 'alpha <phoneme alphabet="ipa" ph="x">bravo charlie</phoneme> delta';
    const rig = stage();
    rig.speak(marked, "u");
    rig.answer(0, { chars: marked.indexOf("charlie") + 3 });
    rig.clock.advance(2 * CHAR_MS);
    rig.send({ type: "interrupt" });
    rig.send({ type: "resume" });
    rig.hearOut(500);
    expect(rig.asked()[1]?.trim()).toBe(marked.slice(6));
  });
});
