/** Speech that breaks off where more than one text, one voice or one wish is at hand; and what is not recovered. */

import { describe, expect, it } from "vitest";
import { spliceStep } from "../../../helpers/splice-step.ts";
import { audioOf, breakOff, charactersOf, expectTrue, type Stage, TEXT } from "../broken-speech.ts";
import { heard, SPLICES, toneOf } from "../scripted-speech.ts";
import { CHAR_MS, heardOf, lettersOf, read, spell, stage, VOICE } from "../spelling.ts";

/** One that is heard up to a place: `chars` came of request `index`, and it broke off. */
function broken(rig: Stage, chars: number, index = rig.requests.length - 1): void {
  rig.answer(index, { chars, chunk: chars, isOpen: true });
  breakOff(rig, index);
}

describe("what is not recovered", () => {
  it("where nobody asked for timing: what came is heard, and it fails by name", () => {
    const rig = stage("format=ulaw_8000&events=none");
    rig.speak(TEXT, "u");
    broken(rig, 6);
    rig.hearOut();
    expect(rig.asked()).toEqual([TEXT]);
    expect(rig.listener.eventsOf("utterance.done")).toMatchObject([
      { outcome: "failed", end_ms: 6 * CHAR_MS, error: { code: "upstream_truncated", retryable: true } },
    ]);
    expect(audioOf(rig.listener)).toBe("abcde");
  });

  it("where no alignment came", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    rig.answer(0, { chars: 0, isOpen: true });
    rig.requests[0]?.chunk(spell("abc def"));
    breakOff(rig, 0);
    rig.hearOut();
    expect(rig.asked()).toEqual([TEXT]);
    expect(rig.outcomes()).toEqual(["u/failed"]);
    expect(audioOf(rig.listener)).toBe("abcdef");
  });

  it("where more was heard than its timing covers", () => {
    const rig = stage("format=ulaw_8000&lead_ms=1000");
    rig.speak(TEXT, "u");
    rig.answer(0, { chars: 4, isOpen: true });
    rig.requests[0]?.chunk(spell("defg, hij"));
    breakOff(rig, 0);
    rig.hearOut();
    expect(rig.outcomes()).toEqual(["u/failed"]);
    expect(audioOf(rig.listener)).toBe("abcdefghij");
    expect(rig.listener.eventsOf("utterance.done")).toMatchObject([{ characters_spoken: 4 }]);
  });

  it("what would fail again", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    rig.answer(0, { chars: 6, isOpen: true });
    breakOff(rig, 0, "upstream_unauthorized");
    rig.hearOut();
    expect(rig.asked()).toEqual([TEXT]);
    expect(rig.outcomes()).toEqual(["u/failed"]);
  });

  it("from one place more than three times", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    for (let index = 0; index < 4; index += 1) {
      expect(rig.requests).toHaveLength(index + 1);
      broken(rig, 2);
      rig.clock.advance(1000);
    }
    rig.hearOut();
    expect(rig.asked()).toEqual([TEXT, TEXT, TEXT, TEXT]);
    expect(rig.outcomes()).toEqual(["u/failed"]);
    expect(rig.listener.eventsOf("warning")).toHaveLength(3);
    expect(rig.listener.eventsOf("error")).toMatchObject([{ code: "upstream_truncated", utterance_id: "u" }]);
  });

  it("an upstream that sends no audio at all: it is asked five times", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    for (let index = 0; index < 5; index += 1) {
      breakOff(rig, index, "upstream_unreachable");
      rig.clock.advance(2000);
    }
    rig.clock.advance(5000);
    expect(rig.requests).toHaveLength(5);
    expect(rig.outcomes()).toEqual(["u/failed"]);
  });
});

describe("what is recovered", () => {
  it.each([
    ["a part of the next word", "de", "abcde"],
    ["all of the next word", "defg", "abcdefg"],
    ["a pause", "          ", "abc"],
  ])("where %s was heard that its timing did not cover", (_, untimed, heardBefore) => {
    const rig = stage("format=ulaw_8000&lead_ms=2000");
    rig.speak(TEXT, "u");
    rig.answer(0, { chars: 4, isOpen: true });
    rig.requests[0]?.chunk(spell(untimed));
    rig.clock.advance(100);
    breakOff(rig, 0);
    rig.hearOut();
    expect(rig.outcomes()).toEqual(["u/done"]);
    expect(rig.asked()).toEqual([TEXT, TEXT.slice(3)]);
    expect(rig.listener.eventsOf("warning")).toMatchObject([{ code: "speech_recovered", start: 3 }]);
    expect(audioOf(rig.listener)).toBe(heardBefore + lettersOf(TEXT.slice(3)));
    expectTrue(rig.listener, TEXT);
  });

  it.each(["upstream_truncated", "upstream_timeout", "upstream_unreachable", "upstream_protocol"] as const)(
    "%s",
    (code) => {
      const rig = stage();
      rig.speak(TEXT, "u");
      rig.answer(0, { chars: 10, isOpen: true });
      breakOff(rig, 0, code);
      rig.hearOut();
      expectTrue(rig.listener, TEXT);
      expect(rig.listener.eventsOf("warning")).toMatchObject([{ cause: { code } }]);
    },
  );

  it("at once, before what is in hand has been heard, and with the text before it", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    broken(rig, 15);
    expect(rig.asked()).toEqual([TEXT, ", hij klmno pq.".slice(5)]);
    const { request } = rig.requests[1] ?? {};
    expect(request).toMatchObject({ previousText: "abc defg, hij" });
    expect(rig.listener.eventsOf("warning")).toEqual([]);
    rig.hearOut();
    // It is emitted where it was joined, in its place among the others.
    const [warning] = rig.listener.eventsOf("warning");
    expect(warning).toMatchObject({ at_ms: 13 * CHAR_MS, start: 13 });
    const seqs = rig.listener.events.flatMap((event) => (event.type === "hello" ? [] : [event.seq]));
    expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
  });

  it("each piece of a longer text by itself, and the pieces behind it in their order", () => {
    const rig = stage();
    rig.send({ type: "text", text: "abc def. ", voice_id: VOICE, utterance_id: "u" });
    rig.send({ type: "flush" });
    rig.send({ type: "text", text: "ghi jkl." });
    rig.send({ type: "end" });
    broken(rig, 5, 0);
    rig.answer(1);
    rig.clock.advance(100);
    rig.answerAll();
    rig.hearOut();
    expect(rig.asked()).toEqual(["abc def. ", " def. ", "ghi jkl."]);
    expectTrue(rig.listener, "abc def. ghi jkl.");
    expect(rig.listener.eventsOf("utterance.done")).toMatchObject([
      { outcome: "done", characters_billed: 30 },
    ]);
  });

  it("a response that nothing was taken of is asked for again as a whole, without a warning", () => {
    const rig = stage();
    rig.send({ type: "text", text: "abc def. ", voice_id: VOICE, utterance_id: "u" });
    rig.send({ type: "flush" });
    rig.send({ type: "text", text: "ghi jkl." });
    rig.send({ type: "end" });
    rig.answer(0);
    broken(rig, 5, 1);
    rig.clock.advance(150);
    expect(rig.asked()).toEqual(["abc def. ", "ghi jkl.", "ghi jkl."]);
    rig.hearOut();
    expect(rig.listener.eventsOf("warning")).toEqual([]);
    expect(audioOf(rig.listener)).toBe("abcdefghijkl");
    // The upstream named a cost for the response that broke off, too.
    expect(rig.listener.eventsOf("utterance.done")).toMatchObject([
      { outcome: "done", characters_billed: 30 },
    ]);
  });

  it("the rest of a dialogue: its inputs from there on, with their voices", () => {
    const rig = stage();
    const inputs = [
      { text: "abc def", voice_id: "v1" },
      { text: "ghi jkl", voice_id: "v2" },
      { text: "mno", voice_id: "v3" },
    ];
    const text = "abc defghi jklmno";
    rig.send({ type: "dialogue", inputs, utterance_id: "u" });
    broken(rig, 12);
    expect(rig.requests[1]?.request).toMatchObject({
      inputs: [
        { text: " jkl", voiceId: "v2" },
        { text: "mno", voiceId: "v3" },
      ],
    });
    const open = rig.requests[1];
    open?.head();
    open?.chunk(spell(" jklmno"), {
      alignment: {
        characters: [..." jklmno"],
        character_start_times_seconds: [0, 1, 2, 3, 4, 5, 6].map((at) => (at * CHAR_MS) / 1000),
        character_end_times_seconds: [1, 2, 3, 4, 5, 6, 7].map((at) => (at * CHAR_MS) / 1000),
      },
      voiceSegments: [
        {
          voice_id: "v2",
          start_time_seconds: 0,
          end_time_seconds: 0.2,
          character_start_index: 0,
          character_end_index: 4,
          dialogue_input_index: 0,
        },
      ],
    });
    open?.handlers.end();
    rig.clock.advance(5000);
    expect(rig.outcomes()).toEqual(["u/done"]);
    expect(audioOf(rig.listener)).toBe(lettersOf(text));
    expect(
      charactersOf(rig.listener)
        .map((character) => character.text)
        .join(""),
    ).toBe(text);
    expect(rig.listener.eventsOf("segment")).toMatchObject([
      { dialogue_input_index: 1, voice_id: "v2", start: 10, end: 14 },
    ]);
  });

  it("goes on behind a replaced part of the text, never inside it", () => {
    const text = "abc X def";
    const rig = stage();
    rig.speak(text, "u", { replacements: [{ from: "X", to: "gh ij" }] });
    expect(rig.asked()).toEqual(["abc gh ij def"]);
    broken(rig, 7);
    expect(rig.asked()[1]).toBe(" gh ij def");
    rig.hearOut();
    const words = rig.listener.eventsOf("words").flatMap((event) => event.words);
    expect(words.map((word) => word.text)).toEqual(["abc", "X", "def"]);
    for (const word of words) expect(text.slice(word.start, word.end)).toBe(word.text);
    expect(audioOf(rig.listener)).toMatch(/^abc(g|gh)?ghijdef$/);
  });

  it("its captions show every word once, in order", () => {
    const text = "abc defg hij klmno pq rst uvw xyz";
    for (const chars of [6, 10, 20, 27]) {
      const rig = stage("format=ulaw_8000&events=cues,words");
      rig.speak(text, "u");
      broken(rig, chars);
      rig.hearOut();
      const cues = rig.listener.eventsOf("cue");
      const lines = cues.flatMap((cue) => cue.lines.map((line) => line.text));
      expect(lines.join(" ")).toBe(text);
      const words = cues.flatMap((cue) => cue.lines.flatMap((line) => line.words));
      for (const word of words) expect(text.slice(word.start, word.end)).toBe(word.text);
      const times = cues.flatMap((cue) => [cue.start_ms, cue.end_ms]);
      expect(times).toEqual([...times].sort((a, b) => a - b));
    }
  });

  it.each([
    ["trimmed", SPLICES],
    ["as it is", { trimMs: 0, pauseClauseMs: 0, pauseSentenceMs: 0, pauseParagraphMs: 0 }],
  ])("without a click where it is joined: %s", (_name, splices) => {
    const rig = stage("format=pcm_16000&pace=burst", splices);
    rig.speak("abc def ghi", "u");
    for (const index of [0, 1]) {
      const open = rig.requests[index];
      const asked = rig.asked()[index] ?? "";
      const { audio, alignment } = toneOf("pcm_16000", asked, { msPerChar: 31 });
      open?.head();
      if (index === 1) {
        open?.chunk(audio, { alignment });
        open?.handlers.end();
        continue;
      }
      const count = 9;
      open?.chunk(audio.subarray(0, count * 31 * 32), {
        alignment: {
          characters: alignment.characters.slice(0, count),
          character_start_times_seconds: alignment.character_start_times_seconds.slice(0, count),
          character_end_times_seconds: alignment.character_end_times_seconds.slice(0, count),
        },
      });
      breakOff(rig, 0);
    }
    rig.clock.advance(5000);
    expect(rig.outcomes()).toEqual(["u/done"]);
    const pcm = heard(rig.listener, "pcm");
    const at = 7 * 31 * 16;
    expect(spliceStep(pcm.subarray(at - 80, at), pcm.subarray(at, at + 80))).toBeLessThanOrEqual(1.01);
  });

  it("with the pause that the punctuation there asks for", () => {
    const rig = stage("format=ulaw_8000", { ...SPLICES });
    rig.speak("abc. def", "u");
    broken(rig, 6);
    rig.answerAll();
    rig.hearOut();
    const [first, second] = rig.listener.eventsOf("words").flatMap((event) => event.words);
    const pauseMs = (second?.start_ms ?? 0) - (first?.end_ms ?? 0);
    expect(Math.abs(pauseMs - 300)).toBeLessThanOrEqual(25);
    expect(rig.listener.eventsOf("utterance.done")).toMatchObject([{ outcome: "done" }]);
  });
});

describe("an interrupt of what was recovered", () => {
  it.each([50, 250, 400, 600, 800, 1050])(
    "after %i ms: it goes on, and every word is heard once",
    (cutMs) => {
      for (const isAnswered of [false, true]) {
        const rig = stage("format=ulaw_8000&lead_ms=20");
        rig.speak(TEXT, "u");
        broken(rig, 10);
        if (isAnswered) rig.answer(1);
        rig.clock.advance(cutMs);
        rig.send({ type: "interrupt" });
        const [interrupted] = rig.listener.eventsOf("interrupted");
        expect(interrupted?.resumable).toBe(true);
        expect(`${interrupted?.heard.text}${interrupted?.unheard_text}`).toBe(TEXT);
        rig.send({ type: "resume" });
        rig.hearOut();
        expect(rig.outcomes()).toEqual(["u/interrupted", "u/done"]);
        const all = heardOf(rig.listener)
          .map((stretch) => read(stretch.audio))
          .join("|");
        const [before = "", after = ""] = all.split("|");
        // From the word in which it was cut.
        expect(lettersOf(TEXT).endsWith(after)).toBe(true);
        const start = lettersOf(TEXT).length - after.length;
        expect(lettersOf(TEXT).startsWith(before)).toBe(true);
        expect(start).toBeLessThanOrEqual(before.length);
        expect(before.length - start).toBeLessThanOrEqual(5);
      }
    },
  );

  it("an interruption of the utterance before has all of the recovered one said again, in one request", () => {
    for (const isTaken of [false, true]) {
      const rig = stage("format=ulaw_8000&lead_ms=2000");
      rig.speak("zz.", "first");
      rig.answer(0);
      rig.speak(TEXT, "u");
      broken(rig, 10, 1);
      if (isTaken) rig.answer(2);
      rig.clock.advance(40);
      rig.send({ type: "interrupt", utterance_id: "first" });
      rig.hearOut();
      expect(rig.asked()).toEqual(["zz.", TEXT, TEXT.slice(8), TEXT]);
      expect(rig.outcomes()).toEqual(["first/interrupted", "u/done"]);
      expect(audioOf(rig.listener)).toMatch(/abcdefghijklmnopq$/);
    }
  });
});

describe("the first audio", () => {
  const late = { firstAudioMs: 1000 };
  const sent = (rig: Stage, index: number): void => rig.requests[index]?.handlers.requestSent?.();

  it("that does not come is asked for again, with twice the patience", () => {
    const rig = stage("format=ulaw_8000", late);
    rig.speak(TEXT, "u");
    rig.clock.advance(5000);
    // It waits for its turn: that is no fault of the upstream's.
    expect(rig.requests).toHaveLength(1);
    sent(rig, 0);
    rig.clock.advance(999);
    rig.requests[0]?.head();
    expect(rig.requests[0]?.isAborted).toBe(false);
    rig.clock.advance(2);
    expect(rig.requests[0]?.isAborted).toBe(true);
    rig.clock.advance(100);
    expect(rig.requests).toHaveLength(2);
    sent(rig, 1);
    rig.clock.advance(1900);
    expect(rig.requests[1]?.isAborted).toBe(false);
    rig.answer(1);
    rig.hearOut();
    expect(rig.outcomes()).toEqual(["u/done"]);
    expect(rig.counters).toMatchObject({ upstreamLateFirstAudio: 1, upstreamRetries: 1, upstreamErrors: 1 });
    expectTrue(rig.listener, TEXT);
  });

  it("is not waited for while the request, turned away for too many, waits for its turn again", () => {
    const rig = stage("format=ulaw_8000", late);
    rig.speak(TEXT, "u");
    sent(rig, 0);
    rig.clock.advance(900);
    rig.requests[0]?.handlers.requestTurnedAway?.();
    rig.clock.advance(20_000);
    expect(rig.requests[0]?.isAborted).toBe(false);
    sent(rig, 0);
    rig.clock.advance(1001);
    expect(rig.requests[0]?.isAborted).toBe(true);
  });

  it("in time ends the watch: what follows may take longer", () => {
    const rig = stage("format=ulaw_8000", late);
    rig.speak(TEXT, "u");
    sent(rig, 0);
    rig.clock.advance(900);
    rig.answer(0, { chars: 2, isOpen: true });
    rig.clock.advance(5000);
    expect(rig.requests).toHaveLength(1);
    expect(rig.requests[0]?.isAborted).toBe(false);
  });

  it("is waited for as long as it takes with 0", () => {
    const rig = stage("format=ulaw_8000", { firstAudioMs: 0 });
    rig.speak(TEXT, "u");
    sent(rig, 0);
    rig.clock.advance(100_000);
    expect(rig.requests).toHaveLength(1);
    expect(rig.requests[0]?.isAborted).toBe(false);
  });

  it("that a service of long waits never sends is the utterance's failure after two tries", () => {
    const rig = stage("format=ulaw_8000", late);
    rig.speak(TEXT, "u");
    rig.requests[0]?.handlers.requestSent?.(20_000);
    rig.clock.advance(20_001 + 100);
    expect(rig.requests).toHaveLength(2);
    expect(rig.outcomes()).toEqual([]);
    rig.requests[1]?.handlers.requestSent?.(20_000);
    rig.clock.advance(40_001 + 2000);
    expect(rig.requests).toHaveLength(2);
    expect(rig.outcomes()).toEqual(["u/failed"]);
    expect(rig.listener.eventsOf("utterance.done")[0]?.error).toMatchObject({ code: "upstream_timeout" });
  });

  it("that never comes is the utterance's failure after five tries", () => {
    const rig = stage("format=ulaw_8000", late);
    rig.speak(TEXT, "u");
    for (let index = 0; index < 5; index += 1) {
      sent(rig, index);
      rig.clock.advance(1000 * 2 ** index + 2000);
    }
    expect(rig.requests).toHaveLength(5);
    expect(rig.listener.eventsOf("error")).toMatchObject([{ code: "upstream_timeout", retryable: true }]);
  });

  it("is watched over where speech is recovered, too, and forgotten with an interrupt", () => {
    const rig = stage("format=ulaw_8000", late);
    rig.speak(TEXT, "u");
    sent(rig, 0);
    broken(rig, 10);
    sent(rig, 1);
    rig.clock.advance(1200);
    expect(rig.asked()).toEqual([TEXT, TEXT.slice(8), TEXT.slice(8)]);
    sent(rig, 2);
    rig.send({ type: "interrupt" });
    rig.clock.advance(10_000);
    expect(rig.requests).toHaveLength(3);
    expect(rig.counters.upstreamLateFirstAudio).toBe(1);
  });
});
