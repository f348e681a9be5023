/** `resume` where nothing was timed: it goes on by the share of the audio, in a pause, and says that it is an estimate. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { wordSpans } from "../../../../src/text/words.ts";
import type { MemoryListener } from "../../../helpers/memory-listener.ts";
import { CHAR_MS, heardOf, lettersOf, read, type SpellingFormat, spell, stage, VOICE } from "../spelling.ts";

const TEXT = "alpha bravo charlie delta echo foxtrot golf hotel india juliet";

function heardLetters(sink: MemoryListener, format: SpellingFormat = "ulaw_8000"): string[] {
  return heardOf(sink, format).map(({ audio }) => read(audio, format));
}

const wordStarts = (text: string): number[] => wordSpans(text).map(({ start }) => start);

/** The word that a place is inside of. */
const cutWord = (text: string, at: number) =>
  wordSpans(text).find(({ start, end }) => start < at && at < end);

/** Speech of which the upstream tells no times. `said`: how it sounds. */
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
    return rig.sink.eventsOf("interrupted").at(-1);
  };
  const resumed = () => rig.sink.eventsOf("utterance.resumed").at(-1);
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

describe("resume where nothing was timed and all audio is there", () => {
  it.each(["ulaw_8000", "pcm_16000"] as const)(
    "goes on from the word of the cut without asking again, in %s",
    (format) => {
      const rig = untimed(`format=${format}&events=none`, TEXT);
      const receipt = rig.cutAt(820);
      expect(receipt).toMatchObject({ resumable: true, heard: { text: "alpha bravo " } });
      rig.send({ type: "resume" });
      rig.hearOut();
      expect(rig.requests).toHaveLength(1);
      expect(rig.resumed()).toMatchObject({
        start: receipt?.heard.end,
        kept_end: TEXT.length,
        timing: "estimated",
        bound_ms: expect.any(Number),
      });
      expect(heardLetters(rig.sink, format)[1]).toBe(lettersOf(receipt?.unheard_text ?? ""));
      expect(rig.outcomes()).toEqual(["u/interrupted", "u/done"]);
    },
  );

  it("goes on in the last pause before the cut, with the word behind its mark", () => {
    const text = "alpha bravo, charlie delta echo. foxtrot golf";
    const said = "alpha bravo      charlie delta echo      foxtrot golf";
    const at = (word: string): number => said.indexOf(word) * CHAR_MS;
    for (const [cutMs, from] of [
      [at("delta") + 60, "charlie"],
      [at("charlie") + 20, "charlie"],
      // In the pause itself.
      [at("charlie") - 100, "charlie"],
      [at("golf") + 120, "foxtrot"],
    ] as const) {
      const rig = untimed("format=ulaw_8000&events=none", text, { said });
      rig.cutAt(cutMs);
      rig.send({ type: "resume" });
      rig.hearOut();
      expect(rig.requests).toHaveLength(1);
      expect(rig.resumed()?.start).toBe(text.indexOf(from));
      expect(heardLetters(rig.sink)[1]).toBe(lettersOf(text.slice(text.indexOf(from))));
    }
  });

  it("has times afterwards: what is told then has the text's offsets, and a second cut its word", () => {
    const rig = untimed("format=ulaw_8000&events=none", TEXT);
    rig.cutAt(820);
    const late = rig.join("role=listener&format=none&events=words");
    rig.send({ type: "resume" });
    const start = rig.resumed()?.start ?? -1;
    const second = rig.cutAt(700);
    expect(second?.heard.end).toBeGreaterThan(start);
    expect(cutWord(TEXT, second?.heard.end ?? -1)).toBeUndefined();
    rig.send({ type: "resume" });
    rig.hearOut();
    expect(rig.requests).toHaveLength(1);
    expect(heardLetters(rig.sink)[2]).toBe(lettersOf(TEXT.slice(rig.resumed()?.start)));
    const words = late.sink.eventsOf("words").flatMap((event) => event.words);
    expect(words[0]?.start).toBe(start);
    for (const word of words) expect(TEXT.slice(word.start, word.end)).toBe(word.text);
    expect(words.at(-1)?.text).toBe("juliet");
    expect(rig.sink.eventsOf("utterance.done").at(-1)).toMatchObject({ characters_spoken: TEXT.length });
  });

  it("tells what was heard also where it is cut again before it goes on", () => {
    const rig = untimed("format=ulaw_8000&events=none", TEXT);
    const first = rig.cutAt(820);
    rig.speak("kilo lima mike november", "now");
    rig.answer(1);
    rig.clock.advance(100);
    rig.send({ type: "resume" });
    rig.send({ type: "interrupt", utterance_id: "u" });
    const second = rig.sink.eventsOf("interrupted").at(-1);
    expect(second).toMatchObject({ heard: { text: first?.heard.text }, resumable: true });
    rig.send({ type: "resume" });
    rig.hearOut();
    expect(heardLetters(rig.sink)[1]).toBe(`kilolimamikenovember${lettersOf(first?.unheard_text ?? "")}`);
  });

  it.each(["format=ulaw_8000&events=none", "format=ulaw_8000&events=none&lead_ms=5000"])(
    "keeps the pieces behind, too (%s)",
    (query) => {
      const rig = inPieces(query);
      rig.answer(0);
      rig.clock.advance(20);
      rig.answer(1);
      rig.send({ type: "played", at_ms: 20 });
      rig.clock.advance(400);
      rig.send({ type: "interrupt" });
      rig.send({ type: "resume" });
      rig.hearOut();
      expect(rig.asked()).toEqual(PIECES);
      expect(heardLetters(rig.sink)[1]).toBe("bravocharliedeltaechofoxtrot");
      expect(rig.sink.eventsOf("utterance.resumed")[0]?.kept_end).toBe(PIECES.join("").length);
    },
  );

  it("asks for the piece behind again that had come in part only", () => {
    const rig = inPieces("format=ulaw_8000&events=none&lead_ms=5000");
    rig.answer(0);
    rig.clock.advance(20);
    rig.answer(1, { chars: 8 });
    rig.send({ type: "played", at_ms: 20 });
    rig.clock.advance(400);
    rig.send({ type: "interrupt" });
    rig.send({ type: "resume" });
    rig.hearOut();
    expect(rig.asked()).toEqual([...PIECES, PIECES[1]]);
    expect(heardLetters(rig.sink)[1]).toBe("bravocharliedeltaechofoxtrot");
  });
});

describe("resume where nothing was timed and the audio is there in part", () => {
  it.each(["format=ulaw_8000&events=none", "format=ulaw_8000"])(
    "speaks what the receipt calls unheard, all of it (%s)",
    (query) => {
      const rig = untimed(query, TEXT, { said: TEXT.slice(0, 30), isWhole: false });
      const receipt = rig.cutAt(820);
      expect(receipt?.resumable).toBe(true);
      expect(wordStarts(TEXT)).toContain(receipt?.heard.end);
      rig.send({ type: "resume" });
      rig.hearOut();
      expect(rig.asked()).toEqual([TEXT, receipt?.unheard_text]);
      const { end = -1 } = receipt?.heard ?? {};
      expect(rig.resumed()).toMatchObject({ start: end, kept_end: end, timing: "estimated" });
      expect(heardLetters(rig.sink)[1]).toBe(lettersOf(receipt?.unheard_text ?? ""));
    },
  );

  it("says at least the last word again, though by a typical pace it was heard", () => {
    const rig = untimed("format=ulaw_8000&events=none", "go on", { said: "go         ", isWhole: false });
    rig.cutAt(550);
    rig.send({ type: "resume" });
    rig.hearOut();
    expect(lettersOf(rig.asked()[1] ?? "")).toBe("on");
  });
});

describe("the words of a replacement", () => {
  it("are kept as one where nothing was timed, and told from its beginning", () => {
    const rig = stage("format=ulaw_8000&events=none");
    const text = "alpha VW delta echo foxtrot";
    rig.speak(text, "u", { replacements: [{ from: "VW", to: "bravo charlie" }] });
    rig.answer(0);
    // In "charlie".
    rig.clock.advance(14 * CHAR_MS);
    rig.send({ type: "interrupt" });
    expect(rig.sink.eventsOf("interrupted")[0]).toMatchObject({
      heard: { text: "alpha ", end: 6 },
      unheard_text: "VW delta echo foxtrot",
    });
    rig.send({ type: "resume" });
    rig.hearOut();
    expect(rig.sink.eventsOf("utterance.resumed")[0]?.start).toBe(6);
    expect(heardLetters(rig.sink)[1]).toBe("bravocharliedeltaechofoxtrot");
  });
});

describe("any text, any cut", () => {
  it("loses nothing: what goes on begins with a word that had begun, and ends with the text", () => {
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
        expect(receipt?.resumable).toBe(true);
        rig.send({ type: "resume" });
        rig.hearOut();
        expect(rig.requests).toHaveLength(1);
        expect(wordStarts(text)).toContain(rig.resumed()?.start);
        const [before = "", behind = ""] = heardLetters(rig.sink);
        const all = lettersOf(text);
        expect(all.startsWith(before.slice(0, -1))).toBe(true);
        expect(all.endsWith(behind)).toBe(true);
        expect(before.length + behind.length).toBeGreaterThanOrEqual(all.length - 1);
      }),
      { numRuns: 100 },
    );
  });
});
