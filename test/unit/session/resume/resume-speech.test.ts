/** `resume`: an interrupted utterance goes on from the word in which it was cut, and says nothing else twice. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WordScanner } from "../../../../src/text/words.ts";
import type { MemoryListener } from "../../../helpers/memory-listener.ts";
import { heardOf, letterAt, lettersOf, read, type SpellingFormat, spell, stage, VOICE } from "../spelling.ts";

const TEXT = "alpha bravo charlie delta echo";
const SPLICES = { trimMs: 300, pauseClauseMs: 100, pauseSentenceMs: 250, pauseParagraphMs: 400 };
const code = (expected: string) => expect.objectContaining({ code: expected });

/** What was heard, each stretch between cuts as its letters. */
function heardLetters(listener: MemoryListener, format: SpellingFormat = "ulaw_8000"): string[] {
  return heardOf(listener, format).map(({ audio }) => read(audio, format));
}

/** Words emitted after the latest `utterance.resumed`. */
function wordsSinceResume(listener: MemoryListener) {
  const from = Math.max(
    0,
    listener.events.findLastIndex((event) => event.type === "utterance.resumed"),
  );
  return listener.events.slice(from).flatMap((event) => (event.type === "words" ? event.words : []));
}

function wordStarts(text: string): number[] {
  const scanner = new WordScanner();
  return [...scanner.push(text), ...scanner.endWord()].map((word) => word.start);
}

describe("resume from audio that had come", () => {
  it.each([
    ["ulaw_8000", "format=ulaw_8000"],
    ["pcm_8000", "format=pcm_8000"],
    ["pcm_16000", "format=pcm_16000&frame_ms=20"],
  ] as const)("goes on from the word it was cut in, byte for byte, in %s", (format, query) => {
    const { speak, answer, clock, send, listener, requests, outcomes } = stage(query);
    speak(TEXT, "u");
    answer(0);
    // Inside "bravo" (300 to 550 ms).
    clock.advance(420);
    send({ type: "interrupt" });
    const [receipt] = listener.eventsOf("interrupted");
    expect(receipt).toMatchObject({
      heard: { text: "alpha ", end: 6 },
      unheard_text: "bravo charlie delta echo",
      resumable: true,
    });
    clock.advance(1000);
    send({ type: "resume" });
    clock.advance(5000);
    expect(requests).toHaveLength(1);
    const nextMs = receipt?.next_ms ?? -1;
    expect(listener.eventsOf("utterance.resumed")).toMatchObject([
      { utterance_id: "u", start: 6, start_ms: nextMs, kept_end: TEXT.length },
    ]);
    const second = heardOf(listener, format)[1];
    // 40 ms of the pause before the word, then everything to the end, as it came.
    const expected = spell(` ${TEXT.slice(6)}`, format);
    const skipped = (expected.byteLength / (TEXT.length - 6 + 1) / 50) * 10;
    const rest = expected.subarray(skipped);
    expect(Buffer.from(second?.audio.subarray(0, rest.byteLength) ?? []).equals(rest)).toBe(true);
    expect(read(second?.audio.subarray(rest.byteLength) ?? new Uint8Array(0), format)).toBe("");
    expect(outcomes()).toEqual(["u/interrupted", "u/done"]);
  });

  it("emits words and characters of the rest with their offsets and new places", () => {
    const { speak, answer, clock, send, listener } = stage();
    speak(TEXT, "u");
    answer(0);
    clock.advance(420);
    send({ type: "interrupt" });
    send({ type: "resume" });
    clock.advance(5000);
    const words = wordsSinceResume(listener);
    expect(words.map((word) => word.text)).toEqual(["bravo", "charlie", "delta", "echo"]);
    const stretches = heardOf(listener);
    for (const word of words) {
      expect(TEXT.slice(word.start, word.end)).toBe(word.text);
      expect(letterAt(stretches, word.start_ms)).toBe(word.text[0]);
      expect(letterAt(stretches, word.end_ms - 50)).toBe(word.text.at(-1));
    }
    const from = listener.events.findIndex((event) => event.type === "utterance.resumed");
    const characters = listener.events
      .slice(from)
      .flatMap((event) => (event.type === "characters" ? [event] : []));
    expect(characters.flatMap((event) => event.characters).join("")).toBe(TEXT.slice(6));
    expect(characters[0]?.start).toBe(6);
    const done = listener.eventsOf("utterance.done").at(-1);
    expect(done).toMatchObject({ outcome: "done", characters_spoken: TEXT.length });
    expect(done?.end_ms).toBeCloseTo(words.at(-1)?.end_ms ?? 0, 3);
  });

  it.each([
    ["in a pause between words", 560, 12],
    ["before the first word", 0, 0],
    ["at the end of a word", 550, 12],
    ["at the start of a word", 600, 12],
    ["in the last word", 1400, 26],
  ])("cut %s", (_, cutMs, start) => {
    const { speak, answer, clock, send, listener, requests, outcomes } = stage();
    speak(TEXT, "u");
    answer(0);
    clock.advance(cutMs);
    send({ type: "interrupt" });
    send({ type: "resume" });
    clock.advance(5000);
    expect(requests).toHaveLength(1);
    expect(listener.eventsOf("utterance.resumed")[0]?.start).toBe(start);
    expect(heardLetters(listener).at(-1)).toBe(lettersOf(TEXT.slice(start)));
    expect(outcomes()).toEqual(["u/interrupted", "u/done"]);
  });

  it("cut after the last word there is nothing to go on with, and it says so", () => {
    const { speak, answer, clock, send, listener } = stage();
    speak("alpha bravo...", "u");
    answer(0);
    clock.advance(620);
    send({ type: "interrupt" });
    expect(listener.eventsOf("interrupted")[0]).toMatchObject({ resumable: false });
    expect(() => send({ type: "resume" })).toThrow(code("resume_expired"));
  });

  it("says nothing of an utterance that was before it or was made behind it", () => {
    const { speak, answer, clock, send, listener, hearOut, outcomes } = stage(
      "format=ulaw_8000&lead_ms=2000",
    );
    speak("zulu yankee", "before");
    speak(TEXT, "u");
    speak("quebec romeo", "behind");
    answer(0);
    answer(1);
    answer(2);
    // In the first word of "u", which begins at once.
    clock.advance(11 * 50 + 10 + 30);
    send({ type: "interrupt", utterance_id: "u" });
    expect(outcomes()).toEqual(["before/done", "u/interrupted"]);
    clock.advance(100);
    send({ type: "resume" });
    hearOut();
    const [, rest] = heardLetters(listener);
    expect([lettersOf(`quebec romeo${TEXT}`), lettersOf(`${TEXT}quebec romeo`)]).toContain(rest);
    expect(outcomes().slice(2).sort()).toEqual(["behind/done", "u/done"]);
  });

  it("is cut out in its own format where another utterance was heard in another one just before", () => {
    const rig = stage("format=ulaw_8000");
    rig.speak("zulu", "before");
    rig.answer(0);
    rig.clock.advance(1000);
    rig.send({ type: "configure", format: "pcm_16000" });
    rig.speak(TEXT, "u");
    expect(rig.requests[1]?.request.outputFormat).toBe("pcm_16000");
    rig.answer(1);
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    const framesBefore = rig.listener.frames.length;
    rig.send({ type: "resume" });
    rig.clock.advance(5000);
    const heard = read(Uint8Array.from(Buffer.concat(rig.listener.frames.slice(framesBefore))), "pcm_16000");
    expect(heard).toBe(lettersOf(TEXT.slice(6)));
  });
});

describe("resume where the response was cut in the middle", () => {
  it("says what is kept up to the last whole word, then asks for the rest of the text and only that", () => {
    const { speak, answer, clock, send, listener, requests, hearOut, asked, outcomes } = stage();
    speak(TEXT, "u");
    // "alpha bravo charlie de": half of "delta".
    answer(0, { chars: 22 });
    clock.advance(420);
    send({ type: "interrupt" });
    expect(requests[0]?.isAborted).toBe(true);
    expect(requests).toHaveLength(1);
    send({ type: "resume" });
    expect(listener.eventsOf("utterance.resumed")).toMatchObject([{ start: 6, kept_end: 19 }]);
    hearOut();
    expect(asked()).toEqual([TEXT, " delta echo"]);
    expect(heardLetters(listener)[1]).toBe("bravocharliedeltaecho");
    expect(wordsSinceResume(listener).map((word) => [word.text, word.start])).toEqual([
      ["bravo", 6],
      ["charlie", 12],
      ["delta", 20],
      ["echo", 26],
    ]);
    expect(outcomes()).toEqual(["u/interrupted", "u/done"]);
  });

  it("echoes a mark of what was interrupted when that has gone on to its end, and not before", () => {
    const { speak, answer, clock, send, listener, hearOut } = stage();
    speak(TEXT, "u");
    answer(0);
    send({ type: "mark", name: "end" });
    clock.advance(420);
    send({ type: "interrupt" });
    clock.advance(1000);
    expect(listener.eventsOf("mark")).toEqual([]);
    send({ type: "resume" });
    hearOut();
    expect(listener.eventsOf("mark")).toMatchObject([{ name: "end" }]);
  });

  it("emits the punctuation behind the last word, for which nothing is asked", () => {
    const { speak, answer, clock, send, listener, hearOut, asked, outcomes } = stage();
    const text = "alpha bravo?!";
    speak(text, "u");
    answer(0, { chars: 11 });
    clock.advance(420);
    send({ type: "interrupt" });
    send({ type: "resume" });
    hearOut();
    expect(asked()).toEqual([text]);
    expect(listener.eventsOf("utterance.resumed")).toMatchObject([{ start: 6, kept_end: text.length }]);
    const from = listener.events.findIndex((event) => event.type === "utterance.resumed");
    const emitted = listener.events
      .slice(from)
      .flatMap((event) => (event.type === "characters" ? [event] : []));
    expect(emitted.flatMap((event) => event.characters).join("")).toBe("bravo?!");
    expect(emitted.at(-1)?.end).toBe(text.length);
    expect(outcomes()).toEqual(["u/interrupted", "u/done"]);
    const done = listener.eventsOf("utterance.done").at(-1);
    expect(done?.characters_spoken).toBe(text.length);
    expect(emitted.at(-1)?.end_ms.at(-1)).toBeLessThanOrEqual(done?.end_ms ?? 0);
  });

  it("emits the punctuation that ends an input of a dialogue, for which nothing is asked", () => {
    const rig = stage();
    const inputs = [
      { text: "alpha bravo.", voice_id: VOICE },
      { text: "charlie", voice_id: "other" },
    ];
    rig.send({ type: "dialogue", inputs, utterance_id: "u" });
    rig.answer(0, { chars: 11 });
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    rig.send({ type: "resume" });
    rig.hearOut();
    expect(rig.asked()[1]).toBe("charlie");
    const from = rig.listener.events.findIndex((event) => event.type === "utterance.resumed");
    const emitted = rig.listener.events.slice(from);
    const characters = emitted.flatMap((event) => (event.type === "characters" ? event.characters : []));
    expect(characters.join("")).toBe("bravo.charlie");
  });

  it("asks for everything from the word on where that word had not come whole", () => {
    const { speak, answer, clock, send, listener, hearOut, asked } = stage();
    speak(TEXT, "u");
    answer(0, { chars: 9 });
    clock.advance(420);
    send({ type: "interrupt" });
    send({ type: "resume" });
    hearOut();
    expect(lettersOf(asked()[1] ?? "")).toBe(lettersOf(TEXT.slice(6)));
    expect(heardLetters(listener)[1]).toBe(lettersOf(TEXT.slice(6)));
  });

  it("says a word again whose last frame was not full and did not leave", () => {
    const { speak, answer, clock, send, listener, hearOut, asked } = stage();
    speak("alpha delta", "u");
    answer(0, { chars: 5 });
    // 250 ms of 20 ms frames: the last 10 ms wait for more.
    clock.advance(1000);
    send({ type: "interrupt" });
    expect(listener.eventsOf("interrupted")[0]?.heard).toMatchObject({ text: "", ms: 240 });
    send({ type: "resume" });
    hearOut();
    expect(asked()[1]).toBe(" delta");
    expect(heardLetters(listener)[1]).toBe("alphadelta");
  });

  it("keeps the times of the words where only what is not said had not come", () => {
    const { speak, answer, clock, send, listener, hearOut, asked } = stage();
    speak("alpha bravo charlie, ", "u");
    answer(0, { chars: 20 });
    clock.advance(420);
    send({ type: "interrupt" });
    send({ type: "resume" });
    hearOut();
    expect(asked()).toHaveLength(1);
    const words = wordsSinceResume(listener);
    expect(words.map((word) => [word.text, word.end_ms - word.start_ms])).toEqual([
      ["bravo", 250],
      ["charlie", 350],
    ]);
  });

  it("is said from its start where not even its first word had come", () => {
    const { speak, answer, clock, send, listener, hearOut, asked, outcomes } = stage();
    speak(TEXT, "u");
    answer(0, { chars: 3 });
    clock.advance(60);
    send({ type: "interrupt" });
    expect(listener.eventsOf("interrupted")[0]).toMatchObject({
      heard: { text: "", ms: 60 },
      resumable: true,
    });
    send({ type: "resume" });
    hearOut();
    expect(asked()).toEqual([TEXT, TEXT]);
    expect(heardLetters(listener).at(-1)).toBe(lettersOf(TEXT));
    expect(outcomes()).toEqual(["u/interrupted", "u/done"]);
  });

  it("in a second segment, with the third already asked for", () => {
    const text = `${"alpha bravo charlie delta echo foxtrot golf hotel. ".repeat(2)}${"india juliet kilo lima mike november oscar papa. ".repeat(3)}${"quebec romeo sierra tango uniform victor. ".repeat(5)}`;
    const rig = stage();
    rig.send({ type: "text", text, voice_id: VOICE, utterance_id: "u" });
    rig.send({ type: "end", utterance_id: "u" });
    rig.answer(0);
    const first = rig.asked()[0]?.length ?? 0;
    rig.clock.advance(first * 50 - 200);
    expect(rig.requests.length).toBeGreaterThan(1);
    rig.answer(1);
    rig.clock.advance(200 + 320);
    for (let index = 2; index < rig.requests.length; index += 1) expect(rig.requests[index]).toBeDefined();
    const before = rig.requests.length;
    rig.send({ type: "interrupt" });
    const { end } = rig.listener.eventsOf("interrupted")[0]?.heard ?? { end: -1 };
    expect(end).toBeGreaterThan(first);
    rig.send({ type: "resume" });
    rig.hearOut(60_000);
    const start = rig.listener.eventsOf("utterance.resumed")[0]?.start ?? -1;
    expect(start).toBe(wordStarts(text).findLast((at) => at <= end));
    expect(heardLetters(rig.listener)[1]).toBe(lettersOf(text.slice(start)));
    const again = rig.asked().slice(before).join("");
    expect(text.endsWith(again)).toBe(true);
    expect(wordsSinceResume(rig.listener).map((word) => word.start)).toEqual(
      wordStarts(text).filter((at) => at >= start),
    );
    expect(rig.outcomes()).toEqual(["u/interrupted", "u/done"]);
  });
});

describe("resume where the answer behind had come, too", () => {
  const FIRST = "alpha bravo charlie. ";
  const SECOND = "delta echo foxtrot. ";

  /** Two segments, both answered, with the playhead somewhere in the first. */
  function stageTwo(cutMs: number, secondChars = SECOND.length) {
    const rig = stage();
    for (const text of [FIRST, SECOND]) {
      rig.send({ type: "text", text, voice_id: VOICE, utterance_id: "u" });
      rig.send({ type: "flush", utterance_id: "u" });
    }
    rig.send({ type: "end", utterance_id: "u" });
    rig.answer(0);
    rig.clock.advance(20);
    rig.answer(1, { chars: secondChars });
    rig.clock.advance(cutMs - 20);
    expect(rig.asked()).toEqual([FIRST, SECOND]);
    return rig;
  }
  const wordFrom = (end: number): number => wordStarts(FIRST + SECOND).findLast((at) => at <= end) ?? -1;

  it.each([60, 420, 900, 1050])(
    "asks for nothing again, and every word is emitted in its place (cut at %i ms)",
    (cutMs) => {
      const rig = stageTwo(cutMs);
      rig.send({ type: "interrupt" });
      const { end } = rig.listener.eventsOf("interrupted")[0]?.heard ?? { end: -1 };
      rig.send({ type: "resume" });
      const [resumed] = rig.listener.eventsOf("utterance.resumed");
      expect(resumed).toMatchObject({ kept_end: (FIRST + SECOND).length });
      rig.hearOut();
      expect(rig.requests).toHaveLength(2);
      const start = resumed?.start ?? -1;
      expect(start).toBeLessThanOrEqual(Math.max(end, 0));
      const rest = (FIRST + SECOND).slice(start);
      expect(heardLetters(rig.listener)[1]).toBe(lettersOf(rest));
      const words = wordsSinceResume(rig.listener);
      expect(words.map((word) => word.start)).toEqual(wordStarts(FIRST + SECOND).filter((at) => at >= start));
      const stretches = heardOf(rig.listener);
      for (const word of words) expect(letterAt(stretches, word.start_ms)).toBe(word.text[0]);
      expect(rig.outcomes()).toEqual(["u/interrupted", "u/done"]);
    },
  );

  it("nor when it is cut and goes on again and again, in either segment", () => {
    const rig = stageTwo(420);
    for (const ms of [200, 100, 600, 300]) {
      rig.send({ type: "interrupt" });
      const { end } = rig.listener.eventsOf("interrupted").at(-1)?.heard ?? { end: -1 };
      rig.send({ type: "resume" });
      rig.clock.advance(ms);
      expect(rig.listener.eventsOf("utterance.resumed").at(-1)?.start).toBe(wordFrom(end));
    }
    rig.hearOut();
    expect(rig.requests).toHaveLength(2);
    expect(heardLetters(rig.listener).join("").endsWith("deltaechofoxtrot")).toBe(true);
    expect(rig.outcomes().at(-1)).toBe("u/done");
  });

  it("nor when it was made again behind one that is cut: that part is kept as it was", () => {
    const rig = stageTwo(420);
    rig.send({ type: "interrupt" });
    rig.speak("golf", "g");
    rig.answer(2);
    rig.clock.advance(20);
    rig.send({ type: "resume" });
    rig.clock.advance(100);
    // It may have been made behind the other by now.
    rig.send({ type: "interrupt", utterance_id: "g" });
    rig.hearOut();
    expect(rig.requests).toHaveLength(3);
    expect(heardLetters(rig.listener).at(-1)).toBe("bravocharliedeltaechofoxtrot");
  });

  it("asks again for one that had come in part only", () => {
    const rig = stageTwo(420, 8);
    rig.send({ type: "interrupt" });
    rig.send({ type: "resume" });
    rig.hearOut();
    expect(rig.asked()).toEqual([FIRST, SECOND, SECOND]);
    expect(heardLetters(rig.listener)[1]).toBe("bravocharliedeltaechofoxtrot");
  });
});

describe("resume of text that is still open", () => {
  it("keeps the tokens that name it while it is interrupted, and says them after the rest", () => {
    const rig = stage();
    rig.send({ type: "text", text: "alpha bravo charlie. ", voice_id: VOICE, utterance_id: "u" });
    rig.send({ type: "flush", utterance_id: "u" });
    rig.answer(0);
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    rig.send({ type: "text", text: "delta echo", utterance_id: "u" });
    rig.clock.advance(1000);
    expect(rig.requests).toHaveLength(1);
    rig.send({ type: "resume", utterance_id: "u" });
    rig.send({ type: "text", text: " foxtrot.", utterance_id: "u" });
    rig.send({ type: "end", utterance_id: "u" });
    rig.hearOut();
    expect(heardLetters(rig.listener)[1]).toBe("bravocharliedeltaechofoxtrot");
    expect(rig.asked().join("")).toBe("alpha bravo charlie. delta echo foxtrot.");
    expect(rig.outcomes()).toEqual(["u/interrupted", "u/done"]);
  });

  it("waits for more text where all that had come was heard", () => {
    const rig = stage();
    rig.send({ type: "text", text: "alpha bravo. ", voice_id: VOICE, utterance_id: "u" });
    rig.send({ type: "flush", utterance_id: "u" });
    rig.answer(0);
    rig.clock.advance(625);
    rig.send({ type: "interrupt" });
    expect(rig.listener.eventsOf("interrupted")[0]).toMatchObject({ resumable: true });
    rig.send({ type: "resume" });
    rig.clock.advance(500);
    expect(rig.outcomes()).toEqual(["u/interrupted"]);
    rig.send({ type: "text", text: "charlie", utterance_id: "u" });
    rig.send({ type: "end", utterance_id: "u" });
    rig.hearOut();
    expect(heardLetters(rig.listener)).toEqual(["alphabravo", "charlie"]);
    expect(rig.outcomes()).toEqual(["u/interrupted", "u/done"]);
  });

  it("its text is over, by name, once it can't go on", () => {
    const rig = stage("format=ulaw_8000", { resumeMs: 1000 });
    rig.send({ type: "text", text: "alpha bravo. ", voice_id: VOICE, utterance_id: "u" });
    rig.send({ type: "flush", utterance_id: "u" });
    rig.answer(0);
    rig.clock.advance(300);
    rig.send({ type: "interrupt" });
    rig.clock.advance(1001);
    expect(() => rig.send({ type: "text", text: "more", utterance_id: "u" })).toThrow(code("utterance_over"));
  });

  it("is ended when its speaker leaves while it is interrupted", () => {
    const rig = stage();
    const other = rig.join("format=ulaw_8000");
    rig.send({ type: "text", text: "alpha bravo charlie. And", voice_id: VOICE, utterance_id: "u" });
    rig.send({ type: "flush", utterance_id: "u" });
    rig.answer(0);
    rig.clock.advance(300);
    rig.send({ type: "interrupt" });
    rig.send({ type: "text", text: " delta", utterance_id: "u" });
    rig.session.leave(rig.participant);
    other.send({ type: "resume" });
    rig.hearOut();
    expect(heardLetters(other.listener)[1]).toBe("bravocharlieanddelta");
    expect(other.listener.eventsOf("utterance.done").at(-1)).toMatchObject({ outcome: "done" });
  });
});

describe("interrupted again after a resume", () => {
  it("adds what was heard up, and goes on again", () => {
    const { speak, answer, clock, send, listener, requests, outcomes } = stage();
    speak(TEXT, "u");
    answer(0);
    clock.advance(420);
    send({ type: "interrupt" });
    send({ type: "resume" });
    // 40 ms of pause, "bravo ", then inside "charlie".
    clock.advance(40 + 300 + 120);
    send({ type: "interrupt" });
    const [, second] = listener.eventsOf("interrupted");
    expect(second).toMatchObject({
      heard: { text: "alpha bravo ", end: 12 },
      unheard_text: "charlie delta echo",
      resumable: true,
    });
    expect(second?.heard.ms).toBeCloseTo(260 + 460, 3);
    send({ type: "resume" });
    clock.advance(5000);
    expect(listener.eventsOf("utterance.resumed").map((event) => event.start)).toEqual([6, 12]);
    expect(heardLetters(listener)[2]).toBe(lettersOf(TEXT.slice(12)));
    expect(requests).toHaveLength(1);
    expect(outcomes()).toEqual(["u/interrupted", "u/interrupted", "u/done"]);
  });

  it("before anything of it was made: the receipt still says what was heard, and it can go on", () => {
    const { speak, answer, clock, send, listener, hearOut, asked } = stage();
    speak(TEXT, "u");
    answer(0, { chars: 9 });
    clock.advance(420);
    send({ type: "interrupt" });
    send({ type: "resume" });
    clock.advance(100);
    send({ type: "interrupt" });
    const [first, second] = listener.eventsOf("interrupted");
    expect(first?.heard.text).toBe("alpha ");
    expect(second?.heard.text.trimEnd()).toBe("alpha");
    expect(`${second?.heard.text}${second?.unheard_text}`).toBe(TEXT);
    expect(second?.resumable).toBe(true);
    send({ type: "resume" });
    hearOut();
    expect(asked()).toHaveLength(3);
    expect(heardLetters(listener).at(-1)).toBe(lettersOf(TEXT.slice(6)));
  });

  it("is not cut by an interruption with keep_ms that was given before", () => {
    const { speak, answer, clock, send, outcomes } = stage();
    speak(TEXT, "u");
    answer(0);
    clock.advance(300);
    send({ type: "interrupt", keep_ms: 800 });
    clock.advance(100);
    send({ type: "interrupt" });
    send({ type: "resume" });
    clock.advance(5000);
    expect(outcomes()).toEqual(["u/interrupted", "u/done"]);
  });
});

describe("resume among other utterances", () => {
  it("comes right after the one that speaks and before those that are queued", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    rig.speak("golf hotel india", "now");
    rig.speak("juliet kilo", "later");
    rig.answer(1);
    rig.clock.advance(100);
    rig.send({ type: "resume" });
    rig.hearOut();
    expect(rig.outcomes()).toEqual(["u/interrupted", "now/done", "u/done", "later/done"]);
    expect(heardLetters(rig.listener)[1]).toBe(lettersOf(`golf hotel india${TEXT.slice(6)}juliet kilo`));
  });

  it("is not said from its beginning where the one before it is interrupted", () => {
    const rig = stage("format=ulaw_8000&lead_ms=2000");
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    rig.speak("golf hotel india", "now");
    rig.answer(1);
    rig.clock.advance(100);
    rig.send({ type: "resume" });
    rig.clock.advance(100);
    rig.send({ type: "interrupt", utterance_id: "now" });
    rig.hearOut();
    expect(rig.listener.eventsOf("utterance.resumed").at(-1)?.start).toBe(6);
    expect(heardLetters(rig.listener).at(-1)).toBe(lettersOf(TEXT.slice(6)));
    expect(rig.requests).toHaveLength(2);
    expect(rig.outcomes()).toEqual(["u/interrupted", "now/interrupted", "u/done"]);
  });

  it("goes on after what took its place with replace", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(420);
    rig.speak("golf", "new", { replace: "all" });
    expect(rig.outcomes()).toEqual(["u/interrupted"]);
    rig.answer(1);
    rig.clock.advance(50);
    rig.send({ type: "resume", utterance_id: "u" });
    rig.hearOut();
    expect(heardLetters(rig.listener)[1]).toBe(lettersOf(`golf${TEXT.slice(6)}`));
    expect(rig.outcomes()).toEqual(["u/interrupted", "new/done", "u/done"]);
  });

  it("that is interrupted again while it waits asks for nothing again", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    rig.speak("golf hotel india", "now");
    rig.answer(1);
    rig.clock.advance(100);
    rig.send({ type: "resume" });
    rig.clock.advance(100);
    rig.send({ type: "interrupt", utterance_id: "u" });
    expect(rig.listener.eventsOf("interrupted").at(-1)).toMatchObject({
      utterance_id: "u",
      heard: { text: "alpha ", end: 6 },
      resumable: true,
      next_ms: null,
    });
    rig.send({ type: "resume" });
    rig.hearOut();
    expect(rig.requests).toHaveLength(2);
    expect(heardLetters(rig.listener)[1]).toBe(lettersOf(`golf hotel india${TEXT.slice(6)}`));
    expect(rig.outcomes()).toEqual(["u/interrupted", "u/interrupted", "now/done", "u/done"]);
  });

  it("waits on while another that was interrupted goes on before it, and asks for nothing again", () => {
    const rig = stage();
    rig.speak(TEXT, "one");
    rig.answer(0);
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    rig.speak("golf hotel india", "two");
    rig.answer(1);
    rig.clock.advance(320);
    rig.send({ type: "resume" });
    rig.clock.advance(20);
    rig.send({ type: "interrupt", utterance_id: "two" });
    rig.send({ type: "resume", utterance_id: "two" });
    rig.hearOut();
    expect(rig.requests).toHaveLength(2);
    expect(rig.outcomes().slice(2).sort()).toEqual(["one/done", "two/done"]);
    const rest = heardLetters(rig.listener)[2];
    expect([lettersOf(`hotel india${TEXT.slice(6)}`), lettersOf(`${TEXT.slice(6)}hotel india`)]).toContain(
      rest,
    );
  });

  it("may be cancelled while it waits", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    rig.speak("golf hotel india", "now");
    rig.answer(1);
    rig.clock.advance(100);
    rig.send({ type: "resume" });
    rig.send({ type: "cancel", utterance_id: "u" });
    rig.hearOut();
    expect(rig.outcomes()).toEqual(["u/interrupted", "u/cancelled", "now/done"]);
    expect(rig.listener.eventsOf("utterance.done")[1]).toMatchObject({ characters_spoken: 6 });
  });
});

describe("resume of a dialogue", () => {
  const inputs = [
    { text: "alpha bravo charlie.", voice_id: "a" },
    { text: "delta echo", voice_id: "b" },
    { text: "foxtrot golf", voice_id: "a" },
  ];
  const text = inputs.map((input) => input.text).join("");

  it("goes on from kept audio, words ending where an input does", () => {
    const rig = stage();
    rig.send({ type: "dialogue", inputs, utterance_id: "u" });
    rig.answer(0);
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    rig.send({ type: "resume" });
    rig.hearOut();
    expect(rig.requests).toHaveLength(1);
    expect(heardLetters(rig.listener)[1]).toBe(lettersOf(text.slice(6)));
    expect(wordsSinceResume(rig.listener).map((word) => word.text)).toEqual([
      "bravo",
      "charlie",
      "delta",
      "echo",
      "foxtrot",
      "golf",
    ]);
  });

  it.each([
    ["in the first input", 15],
    ["at the end of the first input", 22],
  ])("asks for the rest by its inputs where the response was cut %s", (_, chars) => {
    const rig = stage();
    rig.send({ type: "dialogue", inputs, utterance_id: "u" });
    rig.answer(0, { chars });
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    rig.send({ type: "resume" });
    rig.hearOut();
    const again = rig.requests[1]?.request;
    if (again?.kind !== "dialogue") throw new Error("No dialogue was asked for");
    expect(again.inputs.at(-1)).toEqual({ text: "foxtrot golf", voiceId: "a" });
    for (const input of again.inputs) expect(input.text).toMatch(/[a-z]/);
    expect(again.inputs.map((input) => input.voiceId)).toEqual(chars < 20 ? ["a", "b", "a"] : ["b", "a"]);
    expect(heardLetters(rig.listener)[1]).toBe(lettersOf(text.slice(6)));
    expect(wordsSinceResume(rig.listener).map((word) => text.slice(word.start, word.end))).toEqual([
      "bravo",
      "charlie",
      "delta",
      "echo",
      "foxtrot",
      "golf",
    ]);
  });

  it("names inputs as the client counts them in the segments that follow", () => {
    const rig = stage();
    rig.send({ type: "dialogue", inputs, utterance_id: "u" });
    rig.answer(0, { chars: 22 });
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    rig.send({ type: "resume" });
    const again = rig.requests[1];
    again?.head();
    again?.chunk(spell("delta echofoxtrot golf"), {
      voiceSegments: [
        {
          voice_id: "a",
          start_time_seconds: 0.5,
          end_time_seconds: 1.1,
          character_start_index: 10,
          character_end_index: 22,
          dialogue_input_index: 1,
        },
      ],
    });
    again?.handlers.end();
    rig.clock.advance(10_000);
    expect(rig.listener.eventsOf("segment").at(-1)).toMatchObject({
      voice_id: "a",
      dialogue_input_index: 2,
      start: 30,
      end: 42,
    });
  });
});

describe("resume is refused by name", () => {
  it("where nothing was interrupted", () => {
    const rig = stage();
    expect(() => rig.send({ type: "resume" })).toThrow(code("nothing_to_resume"));
    expect(() => rig.send({ type: "resume", utterance_id: "x" })).toThrow(code("nothing_to_resume"));
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(100);
    expect(() => rig.send({ type: "resume", utterance_id: "u" })).toThrow(code("nothing_to_resume"));
  });

  it("where it was said to its end", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    rig.hearOut(3000);
    expect(() => rig.send({ type: "resume" })).toThrow(code("nothing_to_resume"));
    expect(() => rig.send({ type: "resume", utterance_id: "u" })).toThrow(code("nothing_to_resume"));
  });

  it("a second time", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    rig.send({ type: "resume" });
    expect(() => rig.send({ type: "resume" })).toThrow(code("nothing_to_resume"));
    expect(() => rig.send({ type: "resume", utterance_id: "u" })).toThrow(code("nothing_to_resume"));
  });

  it("when resume_ms have passed, saying what to do instead; not a millisecond before", () => {
    for (const [waitMs, isGone] of [
      [4999, false],
      [5000, true],
    ] as const) {
      const rig = stage();
      rig.speak(TEXT, "u");
      rig.answer(0);
      rig.clock.advance(420);
      rig.send({ type: "interrupt" });
      rig.clock.advance(waitMs);
      const resume = () => rig.send({ type: "resume" });
      if (isGone) {
        expect(resume).toThrow(code("resume_expired"));
        expect(resume).toThrow(/unheard_text/);
      } else expect(resume).not.toThrow();
    }
  });

  it("where it is not kept at all (resume_ms=0): the receipt says so", () => {
    const rig = stage("format=ulaw_8000", { resumeMs: 0 });
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    expect(rig.listener.eventsOf("interrupted")[0]?.resumable).toBe(false);
    expect(() => rig.send({ type: "resume" })).toThrow(code("resume_expired"));
  });

  it("for all but the one that was interrupted last", () => {
    const rig = stage();
    rig.speak(TEXT, "one");
    rig.answer(0);
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    rig.speak(TEXT, "two");
    rig.answer(1);
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    expect(() => rig.send({ type: "resume", utterance_id: "one" })).toThrow(code("resume_expired"));
    expect(() => rig.send({ type: "resume", utterance_id: "two" })).not.toThrow();
  });

  it("while the gateway takes nothing new", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    rig.session.utteranceCommands.drain();
    expect(() => rig.send({ type: "resume" })).toThrow(code("draining"));
  });

  it("leaves no timer behind when the session ends first", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    rig.session.leave(rig.participant);
    rig.clock.advance(1001);
    expect(rig.session.isClosed).toBe(true);
    expect(rig.clock.pending).toBe(0);
  });
});

describe("with silence trimmed at the splices", () => {
  it("goes on from the word, its times those of the audio", () => {
    const text = "   alpha bravo. charlie delta.    ";
    const rig = stage("format=ulaw_8000", { ...SPLICES });
    rig.speak(text, "u");
    rig.answer(0);
    // 20 ms are left of the 150 ms before the first word.
    rig.clock.advance(20 + 300 + 120);
    rig.send({ type: "interrupt" });
    expect(rig.listener.eventsOf("interrupted")[0]?.heard.text).toBe("   alpha ");
    rig.send({ type: "resume" });
    rig.hearOut();
    expect(heardLetters(rig.listener)[1]).toBe("bravocharliedelta");
    const stretches = heardOf(rig.listener);
    for (const word of wordsSinceResume(rig.listener)) {
      expect(text.slice(word.start, word.end)).toBe(word.text);
      // The first 3 ms of what was cut may rise.
      expect(letterAt(stretches, word.start_ms)).toBe(word.text[0]);
    }
    expect(rig.outcomes()).toEqual(["u/interrupted", "u/done"]);
  });
});

describe("any text, any chunks, any cuts", () => {
  const WORDS = ["a", "to", "alpha", "bravo", "charlie", "delta", "juliet", "november"];
  const texts = fc
    .array(
      fc.record({ word: fc.constantFrom(...WORDS), end: fc.constantFrom(" ", " ", " ", ", ", ". ", "\n\n") }),
      {
        minLength: 1,
        maxLength: 60,
      },
    )
    .map((parts) => parts.map(({ word, end }) => word + end).join(""));
  const cuts = fc.array(
    fc.record({
      afterMs: fc.integer({ min: 1, max: 2500 }),
      waitMs: fc.integer({ min: 0, max: 300 }),
    }),
    { minLength: 1, maxLength: 5 },
  );

  it("what is heard is the text once, but for the word that each cut was in", () => {
    fc.assert(
      fc.property(
        texts,
        cuts,
        fc.integer({ min: 1, max: 30 }),
        fc.integer({ min: 1, max: 90 }),
        fc.boolean(),
        fc.boolean(),
        (text, places, chunk, stepMs, isStream, isTrimmed) => {
          const rig = stage("format=ulaw_8000", isTrimmed ? { ...SPLICES } : {});
          if (isStream) {
            rig.send({ type: "text", text, voice_id: VOICE, utterance_id: "u" });
            rig.send({ type: "end", utterance_id: "u" });
          } else rig.speak(text, "u");
          const sent = new Map<number, number>();
          // Every open request brings a chunk each step: responses are cut anywhere.
          const step = (ms: number): void => {
            for (let passed = 0; passed < ms; passed += stepMs) {
              for (let index = 0; index < rig.requests.length; index += 1) {
                const open = rig.requests[index];
                const from = sent.get(index) ?? 0;
                if (open === undefined || open.isAborted || open.isPaused) continue;
                const length = rig.asked()[index]?.length ?? 0;
                if (from >= length) continue;
                rig.answer(index, { from, chars: Math.min(chunk, length - from) });
                sent.set(index, from + chunk);
              }
              rig.clock.advance(Math.min(stepMs, ms - passed));
            }
          };
          for (const place of places) {
            step(place.afterMs);
            try {
              rig.send({ type: "interrupt" });
            } catch (thrown) {
              expect(thrown).toEqual(code("nothing_to_interrupt"));
              break;
            }
            rig.clock.advance(place.waitMs);
            const receipt = rig.listener.eventsOf("interrupted").at(-1);
            expect(`${receipt?.heard.text}${receipt?.unheard_text}`).toBe(text);
            if (receipt?.resumable !== true) {
              // Nothing was made of it yet, or nothing is left of it.
              expect([lettersOf(text), ""]).toContain(lettersOf(receipt?.unheard_text ?? "?"));
              return;
            }
            rig.send({ type: "resume" });
          }
          for (let round = 0; round < 400 && !rig.session.isIdle; round += 1) step(500);
          expect(rig.outcomes().at(-1)).toBe("u/done");
          const resumed = rig.listener.eventsOf("utterance.resumed");
          const last = resumed.at(-1)?.start ?? 0;
          // The last stretch is the text from where it went on, to its end.
          expect(heardLetters(rig.listener).at(-1)).toBe(lettersOf(text.slice(last)));
          const receipts = rig.listener.eventsOf("interrupted");
          const starts = wordStarts(text);
          for (const event of resumed) {
            const before = receipts.findLast((receipt) => receipt.seq < event.seq);
            const heardEnd = before?.heard.end ?? 0;
            // It goes on with what was not heard: the word of the cut is emitted as that.
            expect(starts.find((at) => at >= event.start)).toBe(starts.find((at) => at >= heardEnd));
            expect(lettersOf(text.slice(heardEnd, event.start))).toBe("");
          }
          expect(wordsSinceResume(rig.listener).map((word) => word.start)).toEqual(
            starts.filter((at) => at >= last),
          );
        },
      ),
      {
        numRuns: 150,
        // What ends the piece before the one that was cut was kept without its audio.
        examples: [["a\n\ncharlie a ", Array(2).fill({ afterMs: 1, waitMs: 0 }), 3, 1, true, false]],
      },
    );
  });
});
