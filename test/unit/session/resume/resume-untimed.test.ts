/** `resume` where the time of the word of the cut is not known: what the receipt calls unheard is asked for again. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { wordSpans } from "../../../../src/text/words.ts";
import type { MemoryListener } from "../../../helpers/memory-listener.ts";
import { CHAR_MS, heardOf, lettersOf, read, type SpellingFormat, spell, stage, VOICE } from "../spelling.ts";

const TEXT = "alpha bravo charlie delta echo foxtrot golf hotel india juliet";

function heardLetters(listener: MemoryListener, format: SpellingFormat = "ulaw_8000"): string[] {
  return heardOf(listener, format).map(({ audio }) => read(audio, format));
}

const wordStarts = (text: string): number[] => wordSpans(text).map(({ start }) => start);

/** The word that a place is inside of. */
const cutWord = (text: string, at: number) =>
  wordSpans(text).find(({ start, end }) => start < at && at < end);

/** Speech of which the upstream says no times. `said`: how it sounds. */
function untimed(
  query: string,
  text: string,
  { said = text, isWhole = true }: { said?: string; isWhole?: boolean } = {},
) {
  const rig = stage(query);
  rig.speak(text, "u");
  const [request] = rig.requests;
  request?.head();
  request?.chunk(spell(said, request.request.outputFormat as SpellingFormat));
  if (isWhole) request?.handlers.end();
  const cutAt = (ms: number) => {
    rig.clock.advance(ms);
    rig.send({ type: "interrupt" });
    return rig.listener.eventsOf("interrupted").at(-1);
  };
  const resumed = () => rig.listener.eventsOf("utterance.resumed").at(-1);
  return { ...rig, cutAt, resumed };
}

const PIECES = ["alpha bravo charlie. ", "delta echo foxtrot."];

/** A text that comes, and is asked for, in two pieces. */
function inPieces(query: string) {
  const rig = stage(query);
  for (const text of PIECES) {
    rig.send({ type: "text", text, voice_id: VOICE, utterance_id: "u" });
    rig.send({ type: "flush", utterance_id: "u" });
  }
  rig.send({ type: "end", utterance_id: "u" });
  return rig;
}

describe("resume without times", () => {
  it.each([
    ["ulaw_8000", "none", true],
    ["pcm_16000", "none", true],
    ["ulaw_8000", "words", true],
    ["ulaw_8000", "words", false],
    ["ulaw_8000", "none", false],
  ] as const)(
    "asks again for what the receipt calls unheard (%s, events=%s, whole: %s)",
    (format, events, isWhole) => {
      const said = isWhole ? TEXT : TEXT.slice(0, 30);
      const rig = untimed(`format=${format}&events=${events}`, TEXT, { said, isWhole });
      const receipt = rig.cutAt(820);
      expect(receipt?.resumable).toBe(true);
      expect(wordStarts(TEXT)).toContain(receipt?.heard.end);
      rig.send({ type: "resume" });
      rig.hearOut();
      expect(rig.asked()).toEqual([TEXT, receipt?.unheard_text]);
      const { end = -1 } = receipt?.heard ?? {};
      expect(rig.resumed()).toMatchObject({ start: end, kept_end: end, timing: "estimated" });
      expect(heardLetters(rig.listener, format)[1]).toBe(lettersOf(receipt?.unheard_text ?? ""));
      expect(rig.outcomes()).toEqual(["u/interrupted", "u/done"]);
    },
  );

  it("asks again where only the word of the cut has no known time", () => {
    const rig = inPieces("format=ulaw_8000");
    const [first] = rig.requests;
    first?.head();
    first?.chunk(spell(PIECES[0] ?? ""));
    first?.handlers.end();
    rig.clock.advance(20);
    rig.answer(1);
    rig.clock.advance(400);
    rig.send({ type: "interrupt" });
    const [receipt] = rig.listener.eventsOf("interrupted");
    rig.send({ type: "resume" });
    rig.hearOut();
    const [rest = "", behind] = rig.asked().slice(2);
    expect(PIECES[0]?.endsWith(rest)).toBe(true);
    expect(behind).toBe(PIECES[1]);
    expect(`${rest}${behind}`).toBe(receipt?.unheard_text);
    expect(heardLetters(rig.listener)[1]).toBe(lettersOf(receipt?.unheard_text ?? ""));
  });

  it("asks again for the pieces behind that were pushed, with the one that is being pushed", () => {
    const rig = inPieces("format=ulaw_8000&events=none&lead_ms=5000");
    rig.answer(0);
    rig.clock.advance(20);
    rig.answer(1, { chars: 8 });
    rig.send({ type: "played", at_ms: 20 });
    rig.clock.advance(400);
    rig.send({ type: "interrupt" });
    rig.send({ type: "resume" });
    rig.hearOut();
    expect(rig.asked().at(-1)).toBe(PIECES[1]);
    expect(heardLetters(rig.listener)[1]).toBe("bravocharliedeltaechofoxtrot");
  });

  it("reports what was heard also where it is cut again before it goes on", () => {
    const rig = untimed("format=ulaw_8000&events=none", TEXT);
    const first = rig.cutAt(820);
    rig.speak("kilo lima mike november", "now");
    rig.answer(1);
    rig.clock.advance(100);
    rig.send({ type: "resume" });
    rig.send({ type: "interrupt", utterance_id: "u" });
    const second = rig.listener.eventsOf("interrupted").at(-1);
    expect(second).toMatchObject({ heard: { text: first?.heard.text }, resumable: true });
    rig.send({ type: "resume" });
    rig.hearOut();
    expect(heardLetters(rig.listener)[1]).toBe(`kilolimamikenovember${lettersOf(first?.unheard_text ?? "")}`);
  });

  it("says the words of a replacement as one", () => {
    const rig = stage("format=ulaw_8000&events=none");
    const text = "alpha VW delta echo foxtrot";
    rig.speak(text, "u", { replacements: [{ from: "VW", to: "bravo charlie" }] });
    rig.answer(0);
    // In "charlie".
    rig.clock.advance(14 * CHAR_MS);
    rig.send({ type: "interrupt" });
    expect(rig.listener.eventsOf("interrupted")[0]).toMatchObject({
      heard: { text: "alpha ", end: 6 },
      unheard_text: "VW delta echo foxtrot",
    });
    rig.send({ type: "resume" });
    rig.hearOut();
    expect(rig.listener.eventsOf("utterance.resumed")[0]?.start).toBe(6);
    expect(heardLetters(rig.listener)[1]).toBe("bravocharliedeltaechofoxtrot");
  });
});

describe("any text, any cut", () => {
  it("loses nothing of what the receipt calls unheard", () => {
    const word = fc.constantFrom("a", "to", "alpha", "bravo", "charlie", "juliet", "november");
    const end = fc.constantFrom(" ", " ", " ", ",   ", ".      ");
    const texts = fc
      .array(fc.tuple(word, end), { minLength: 2, maxLength: 40 })
      .map((parts) => parts.map((part) => part.join("")).join(""));
    fc.assert(
      fc.property(texts, fc.integer({ min: 1, max: 3000 }), fc.boolean(), (text, wanted, hasEvents) => {
        const lettersEnd = wordSpans(text).at(-1)?.end ?? 0;
        const cutMs = Math.min(wanted, lettersEnd * CHAR_MS - 20);
        const rig = untimed(hasEvents ? "format=ulaw_8000" : "format=ulaw_8000&events=none", text);
        const receipt = rig.cutAt(cutMs);
        expect(`${receipt?.heard.text}${receipt?.unheard_text}`).toBe(text);
        expect(cutWord(text, receipt?.heard.end ?? -1)).toBeUndefined();
        const isLeft = lettersOf(receipt?.unheard_text ?? "") !== "";
        expect(receipt?.resumable).toBe(isLeft);
        if (!isLeft) return;
        rig.send({ type: "resume" });
        rig.hearOut();
        const [, behind = ""] = heardLetters(rig.listener);
        expect(behind).toBe(lettersOf(receipt?.unheard_text ?? ""));
      }),
      { numRuns: 100 },
    );
  });
});
