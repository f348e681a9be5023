/** Speech whose upstream breaks off: what is whole is heard, the rest is asked for again, and nothing is said twice. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { audioOf, breakOff, charactersOf, expectHeard, expectTrue, TEXT } from "../broken-speech.ts";
import { lettersOf, stage } from "../spelling.ts";

const cuts = Array.from({ length: TEXT.length - 1 }, (_, index) => index + 1);

describe("a response that breaks off", () => {
  it.each(cuts)(
    "behind character %i, ahead of what is heard: goes on behind the last whole word",
    (chars) => {
      const rig = stage("format=ulaw_8000&lead_ms=20");
      rig.speak(TEXT, "u");
      rig.answer(0, { chars, chunk: chars, isOpen: true });
      breakOff(rig, 0);
      rig.hearOut();
      expect(rig.outcomes()).toEqual(["u/done"]);
      expect(rig.listener.eventsOf("error")).toEqual([]);
      expectTrue(rig.listener, TEXT);
      const isInside = /^[a-z]/.test(TEXT.slice(chars));
      const end = TEXT.slice(0, chars)
        .replace(/[a-z]+$/, (part) => (isInside ? "" : part))
        .replace(/[^a-z]+$/, "").length;
      // Of the first word something had been sent before it broke off.
      expect(audioOf(rig.listener)).toBe((end === 0 ? "a" : "") + lettersOf(TEXT));
      const rest = /[a-z]/.test(TEXT.slice(end)) ? [TEXT.slice(end)] : [];
      expect(rig.asked()).toEqual([TEXT, ...rest]);
      expect(rig.listener.eventsOf("warning")).toMatchObject(
        rest.map(() => ({
          code: "speech_recovered",
          utterance_id: "u",
          start: end,
          cause: { code: "upstream_truncated", retryable: true },
        })),
      );
      expect(rig.counters.speechRecovered).toBe(rest.length);
    },
  );

  it.each([
    ["a burst listener", "format=ulaw_8000&pace=burst", {}],
    ["a burst listener of another rate", "format=pcm_16000&pace=burst", {}],
    ["a long lead", "format=ulaw_8000&lead_ms=1000", {}],
    ["text that is cleaned", "format=ulaw_8000", { clean: ["markdown"] }],
  ])("again and again, wherever: %s", (_name, query, more) => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ chars: fc.integer({ min: 1, max: 9 }), waitMs: fc.nat(900) }), {
          maxLength: 12,
        }),
        fc.integer({ min: 1, max: 6 }),
        (breaks, chunk) => {
          const rig = stage(query);
          rig.speak(TEXT, "u", more);
          let stuck = 0;
          for (const { chars, waitMs } of breaks) {
            const index = rig.requests.length - 1;
            const asked = rig.asked()[index] ?? "";
            // From one place three times at most, whether a word was there or nothing had been taken yet; and it ends.
            stuck = asked === rig.asked()[index - 1] ? stuck + 1 : 0;
            if (stuck >= 3 || chars >= asked.length) break;
            rig.answer(index, { chars, chunk, isOpen: true });
            rig.clock.advance(waitMs);
            breakOff(rig, index);
            // At once, or after a wait where nothing of it had been taken.
            for (let ms = 0; ms < 8000 && rig.requests.length === index + 1; ms += 50) rig.clock.advance(50);
          }
          rig.hearOut();
          expect(rig.outcomes()).toEqual(["u/done"]);
          if (query.includes("ulaw")) {
            expectTrue(rig.listener, TEXT);
            expectHeard(rig.listener, TEXT);
          }
          const characters = charactersOf(rig.listener);
          expect(characters.map(({ text }) => text).join("")).toBe(TEXT);
        },
      ),
      { numRuns: 60 },
    );
  });
});
