/** Mouth shapes where the upstream breaks off: those of words that are kept stay, those of the rest come again. */
import { describe, expect, it } from "vitest";
import { breakOff, TEXT } from "../../session/broken-speech.ts";
import { stage } from "../../session/spelling.ts";

const cuts = Array.from({ length: TEXT.length - 1 }, (_, index) => index + 1);

describe("mouth shapes of a response that breaks off", () => {
  it.each(cuts)("behind character %i cover every word once", (chars) => {
    const rig = stage("format=ulaw_8000&lead_ms=20&events=words,visemes");
    rig.speak(TEXT, "u");
    rig.answer(0, { chars, chunk: chars, isOpen: true });
    breakOff(rig, 0);
    rig.hearOut();
    let spans: { startMs: number; endMs: number }[] = [];
    let words: { start: number; start_ms: number; end_ms: number }[] = [];
    for (const event of rig.listener.events) {
      if (event.type === "viseme") {
        event.vtimes_ms.forEach((startMs, index) => {
          spans.push({ startMs, endMs: startMs + (event.vdurations_ms[index] ?? Number.NaN) });
        });
      } else if (event.type === "words") words.push(...event.words);
      else if (event.type === "warning") {
        spans = spans.filter(({ startMs }) => startMs < event.at_ms);
        words = words.filter(({ start }) => start < (event.start ?? 0));
      }
    }
    expect(words.length).toBe(TEXT.match(/[a-z]+/g)?.length);
    for (const word of words) {
      const its = spans.filter(({ startMs }) => startMs >= word.start_ms && startMs < word.end_ms);
      expect(its[0]?.startMs).toBe(word.start_ms);
      expect(its.at(-1)?.endMs).toBeCloseTo(word.end_ms, 2);
    }
    spans.slice(1).forEach(({ startMs }, index) => {
      expect(startMs).toBeGreaterThan((spans[index]?.endMs ?? 0) - 0.01);
    });
  });
});
