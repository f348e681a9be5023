/** `interrupt` at its edges: what leaves after it, what it resets, and what exactly it meant. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { wordSpans } from "../../../../src/text/words.ts";
import { countingUlaw, evenAlignment } from "../../../helpers/session-rig.ts";
import { SlowEncoder } from "../../../helpers/slow-encoder.ts";
import { CHAR_MS, heardOf, letterAt, lettersOf, read, spell, stage, VOICE } from "../spelling.ts";

const TEXT = "alpha bravo charlie delta echo";
const code = (expected: string, field?: string) =>
  expect.objectContaining(field === undefined ? { code: expected } : { code: expected, field });

describe("after an interruption", () => {
  it.each([
    "format=ulaw_8000&lead_ms=0",
    "format=ulaw_8000&lead_ms=2000",
    "format=pcm_24000&frame_ms=60",
    "format=alaw_8000&framing=rtp",
    "format=none",
  ])("no frame and no event behind the cut reaches anybody (a second listener with %s)", (query) => {
    const rig = stage();
    const other = rig.join(query);
    rig.speak(TEXT, "u");
    const open = rig.requests[0];
    open?.head();
    const isPcm = open?.request.outputFormat.startsWith("pcm") ?? false;
    open?.chunk(isPcm ? new Uint8Array(24 * 2 * 1000) : spell(TEXT.slice(0, 20)), {
      alignment: evenAlignment(TEXT.slice(0, 20), 50),
    });
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    expect(open?.isAborted).toBe(true);
    const counts = [rig.listener.sent.length, other.listener.sent.length];
    // What the upstream still had under way comes to nothing.
    open?.chunk(new Uint8Array(48_000), { alignment: evenAlignment(TEXT.slice(20), 50, 1000) });
    open?.handlers.end();
    rig.clock.advance(10_000);
    expect([rig.listener.sent.length, other.listener.sent.length]).toEqual(counts);
    expect(other.listener.eventsOf("utterance.done")).toMatchObject([{ outcome: "interrupted" }]);
    expect(rig.requests).toHaveLength(1);
  });

  it.each([
    ["a resampler and an encoder", "format=ulaw_8000"],
    ["longer frames", "format=pcm_24000&frame_ms=60"],
  ])("what follows comes out of %s as if fresh", (_, query) => {
    const tone = Uint8Array.from({ length: 24_000 * 2 }, (__, index) => (index * index * 31) & 0xff);
    /** The frames of 1 s of PCM for a listener, after some of it was said and cut, or not. */
    const framesOf = (cutMs: number | null): Uint8Array[] => {
      const rig = stage("format=pcm_24000");
      const other = rig.join(query);
      const say = (index: number): void => {
        rig.requests[index]?.head();
        rig.requests[index]?.chunk(tone);
        rig.requests[index]?.handlers.end();
      };
      if (cutMs !== null) {
        rig.speak("First", "a");
        say(0);
        rig.clock.advance(cutMs);
        rig.send({ type: "interrupt" });
      }
      const before = other.listener.frames.length;
      rig.speak("Second", "b");
      say(rig.requests.length - 1);
      rig.clock.advance(3000);
      return other.listener.frames.slice(before);
    };
    const fresh = framesOf(null);
    expect(fresh.length).toBeGreaterThan(10);
    for (const cutMs of [10, 333, 501]) expect(framesOf(cutMs)).toEqual(fresh);
  });

  it.each([
    [100, "frame_ms=60&lead_ms=0", 78],
    [100, "frame_ms=20&lead_ms=0", 78],
    [300, "frame_ms=60&lead_ms=0", 278],
    [300, "frame_ms=60&lead_ms=100", 78],
  ])(
    "what stands before is played to its end (leads of %i ms and %s, %i ms kept)",
    (leadMs, other, keepMs) => {
      let made = 0;
      for (let atMs = 700; atMs <= 1250; atMs += 10) {
        const rig = stage(`format=ulaw_8000&lead_ms=${leadMs}`);
        // Audio is made earlier for the sake of longer frames, so that the second may be made while its cut waits.
        const second = rig.join(`format=ulaw_8000&${other}`);
        const listeners = [rig.listener, second.listener];
        rig.speak("alpha bravo charlie del.", "a");
        rig.answer(0);
        rig.speak("echo foxtrot golf hotel.", "b");
        rig.answer(1);
        rig.clock.advance(atMs);
        rig.send({ type: "interrupt", utterance_id: "b", keep_ms: keepMs });
        const startedMs = rig.clock.nowMs() - atMs;
        let endedMs = 0;
        for (let ms = 0; ms < 2000; ms += 1) {
          rig.clock.advance(1);
          const hasEnded = rig.listener.eventsOf("utterance.done").some((end) => end.utterance_id === "a");
          if (endedMs === 0 && hasEnded) endedMs = rig.clock.nowMs() - startedMs;
        }
        // Not before it was played.
        if (atMs < 1190) expect(endedMs).toBeGreaterThanOrEqual(1200);
        const [cut] = rig.listener.eventsOf("interrupted");
        // null: nothing of it was made.
        const isMade = cut?.next_ms !== null;
        made += isMade ? 1 : 0;
        if (isMade) expect(cut?.at_ms).toBe(Math.max(1200, atMs + keepMs));
        for (const listener of listeners) {
          const ends = listener.eventsOf("utterance.done");
          expect(ends.find((end) => end.utterance_id === "a")).toMatchObject({
            outcome: "done",
            end_ms: 1200,
          });
          expect(ends.find((end) => end.utterance_id === "b")).toMatchObject({ outcome: "interrupted" });
          const heard = read(Buffer.concat(listener.frames)).slice(0, 20);
          expect(heard).toBe("alphabravocharliedel");
        }
        const before = listeners.map((listener) => listener.frames.length);
        rig.speak("india.", "c");
        rig.answer(rig.requests.length - 1);
        rig.clock.advance(5000);
        const start = rig.listener.eventsOf("utterance.started").at(-1);
        expect(start).toMatchObject({ utterance_id: "c", start_ms: cut?.next_ms ?? 1200 });
        const after = listeners.map((listener, index) =>
          read(Buffer.concat(listener.frames.slice(before[index]))),
        );
        expect(after).toEqual(["india", "india"]);
      }
      expect(made).toBeGreaterThan(10);
    },
  );

  it.each([
    [10, 20],
    [16, 20],
    [12, 60],
  ])(
    "what stands before is heard to its end though it is still with an encoder (%i turns, frames of %i ms)",
    async (turns, frameMs) => {
      let late = 0;
      for (let atMs = 560; atMs <= 600; atMs += 10) {
        const encoder = new SlowEncoder(turns);
        const rig = stage("format=alaw_8000&lead_ms=0", {}, encoder.pool);
        const opus = rig.join(`format=opus_48000&lead_ms=0&frame_ms=${frameMs}`);
        const pass = async (ms: number): Promise<void> => {
          for (let passed = 0; passed < ms; passed += 10) {
            rig.clock.advance(10);
            encoder.turn();
            await Promise.resolve();
          }
        };
        rig.speak("alpha bravo.", "a");
        rig.answer(0, { chars: 11 });
        await pass(520);
        // The end comes together with what is cut: there is little time to encode it.
        rig.answer(0, { from: 11 });
        rig.speak("echo foxtrot golf hotel.", "b");
        rig.answer(1);
        await pass(atMs - 520);
        rig.send({ type: "interrupt", utterance_id: "b", keep_ms: 5 });
        for (let ms = 0; rig.listener.eventsOf("interrupted").length === 0 && ms < 1000; ms += 10)
          await pass(10);
        const [cut] = rig.listener.eventsOf("interrupted");
        if (cut?.next_ms !== null && opus.listener.frames.length * frameMs < 600) late += 1;
        rig.speak("india.", "c");
        rig.answer(rig.requests.length - 1);
        await pass(3000);
        expect(opus.listener.eventsOf("interrupted")).toMatchObject([{ next_ms: cut?.next_ms }]);
        const heard = heardOf(opus.listener, "pcm_24000", frameMs);
        const startMs = cut?.next_ms ?? cut?.at_ms ?? 0;
        // As many samples as stand before the cut, and the next ones where they are said to be.
        const before = heard.find((stretch) => stretch.startMs === 0)?.audio ?? new Uint8Array(0);
        expect(read(before.subarray(0, 600 * 48), "pcm_24000")).toBe("alphabravo");
        if (cut?.next_ms !== null) expect(before.length).toBe((cut?.at_ms ?? 0) * 48);
        expect(heard.map(({ audio }) => read(audio, "pcm_24000")).join("")).toBe("alphabravoindia");
        const start = opus.listener.eventsOf("utterance.started").at(-1);
        expect(start).toMatchObject({ utterance_id: "c" });
        expect(startMs).toBeLessThanOrEqual(start?.start_ms ?? 0);
        expect(letterAt(heard, (start?.start_ms ?? 0) + 5, "pcm_24000")).toBe("i");
      }
      expect(late).toBeGreaterThan(0);
    },
  );

  it("is emitted to its end where the event loop stood still, or a listener was ahead of the playhead", () => {
    for (let atMs = 300; atMs <= 620; atMs += 20) {
      for (const [stallMs, hasAck] of [
        [0, true],
        [400, true],
        [400, false],
      ] as const) {
        const rig = stage("format=ulaw_8000&lead_ms=100&events=characters,words");
        // Audio is made far ahead of what is sent.
        const late = rig.join("format=ulaw_8000&frame_ms=60&lead_ms=0");
        rig.speak(TEXT, "u");
        const [open] = rig.requests;
        open?.head();
        // A chunk, and so an event, a word.
        TEXT.split(/(?<= )/).reduce((atMs, word) => {
          open?.chunk(spell(word), { alignment: evenAlignment(word, CHAR_MS, atMs) });
          return atMs + word.length * CHAR_MS;
        }, 0);
        rig.clock.advance(atMs);
        const sentMs = rig.listener.frames.length * 20;
        if (hasAck) rig.send({ type: "played", at_ms: sentMs });
        rig.clock.stall(stallMs);
        rig.send({ type: "interrupt" });
        rig.clock.advance(50);
        for (const listener of [rig.listener, late.listener]) {
          expect(listener.eventsOf("utterance.done")).toMatchObject([{ outcome: "interrupted" }]);
          const [cut] = listener.eventsOf("interrupted");
          // Nobody has heard what nobody was sent.
          expect(cut?.heard.ms).toBeLessThanOrEqual(sentMs);
          expect(cut?.next_ms).toBe(sentMs);
        }
        expect(rig.listener.frames).toHaveLength(sentMs / 20);
        rig.speak("golf", "next");
        rig.answer(1);
        rig.clock.advance(2000);
        expect(rig.listener.eventsOf("utterance.done")).toHaveLength(2);
        expect(read(Buffer.concat(rig.listener.frames.slice(sentMs / 20)))).toBe("golf");
      }
    }
  });

  it("the interruption of an utterance that was not made is emitted where the audio ended in the middle of another listener's frame", () => {
    const rig = stage("format=ulaw_8000&lead_ms=0");
    const longer = rig.join("format=ulaw_8000&frame_ms=60&lead_ms=0");
    rig.speak("abc", "first");
    rig.answer(0);
    // Its 150 ms are played: frames up to 160 for the one, up to 180 for the other.
    rig.clock.advance(161);
    rig.speak("def", "second");
    rig.send({ type: "interrupt" });
    rig.clock.advance(100);
    for (const { listener } of [rig, longer]) {
      expect(listener.eventsOf("interrupted")).toMatchObject([{ utterance_id: "second", next_ms: null }]);
      expect(listener.eventsOf("utterance.done")).toHaveLength(2);
    }
  });

  it("leaves nobody out who was sent less when the event loop stood still", () => {
    const rig = stage("format=ulaw_8000&lead_ms=0");
    const ahead = rig.join("format=ulaw_8000&lead_ms=300");
    rig.speak("alpha bravo", "u");
    rig.answer(0);
    rig.clock.advance(1);
    rig.clock.stall(249);
    rig.send({ type: "interrupt" });
    rig.send({ type: "resume" });
    rig.clock.advance(50);
    rig.answer(rig.requests.length - 1);
    rig.clock.advance(3000);
    for (const { listener } of [rig, ahead]) {
      expect(
        heardOf(listener)
          .map(({ audio }) => read(audio))
          .join(""),
      ).toMatch(/^a?l?p?h?a?alphabravo$/);
    }
  });

  it("the next frame stands where next_ms says, for every listener", () => {
    const rig = stage("format=ulaw_8000&lead_ms=100");
    const ahead = rig.join("format=ulaw_8000&lead_ms=900&frame_ms=60");
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    const [receipt] = rig.listener.eventsOf("interrupted");
    expect(ahead.listener.eventsOf("interrupted")[0]?.next_ms).toBe(receipt?.next_ms);
    // Behind all that anybody was sent: nobody's place is used twice.
    expect(receipt?.next_ms).toBeGreaterThanOrEqual(ahead.listener.frames.length * 60);
    rig.speak("golf", "next");
    rig.answer(1);
    rig.clock.advance(2000);
    expect(rig.listener.eventsOf("utterance.started")[1]?.start_ms).toBe(receipt?.next_ms);
    for (const { listener, frameMs } of [
      { listener: rig.listener, frameMs: 20 },
      { listener: ahead.listener, frameMs: 60 },
    ]) {
      const [first, second] = heardOf(listener, "ulaw_8000", frameMs);
      expect(lettersOf(TEXT).startsWith(read(first?.audio ?? new Uint8Array(0)))).toBe(true);
      expect(read(second?.audio ?? new Uint8Array(0))).toBe("golf");
    }
  });
});

describe("the receipt", () => {
  it("says how much was heard, wherever the cut: whole words; text, offset and ms agree and add up to the text", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 1490 }),
        fc.constantFrom(TEXT, "é😀 ünï 東京 code", "a 👩‍👩‍👧 b"),
        (cutMs, text) => {
          const rig = stage();
          rig.speak(text, "u");
          rig.requests[0]?.head();
          const { length } = [...text];
          const ms = 1500 / length;
          rig.requests[0]?.chunk(countingUlaw(1500), { alignment: evenAlignment(text, ms) });
          rig.requests[0]?.handlers.end();
          rig.clock.advance(cutMs);
          rig.send({ type: "interrupt" });
          const [receipt] = rig.listener.eventsOf("interrupted");
          const heard = receipt?.heard;
          expect(`${heard?.text}${receipt?.unheard_text}`).toBe(text);
          expect(heard?.end).toBe(heard?.text.length);
          expect(heard?.ms).toBeCloseTo(cutMs, 3);
          expect(heard).toMatchObject({ source: "estimate", bound_ms: 240 });
          const over = [...text].slice(0, Math.floor((cutMs + 1e-6) / ms)).join("").length;
          const cutWord = wordSpans(text).find(({ start, end }) => start < over && over < end);
          expect(heard?.end).toBe(cutWord?.start ?? over);
          expect(receipt?.at_ms).toBeCloseTo(cutMs, 3);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("counts in code points for a listener that asked for them", () => {
    const rig = stage("format=ulaw_8000&offsets=cp");
    rig.speak("😀😀 four", "u");
    rig.requests[0]?.head();
    rig.requests[0]?.chunk(countingUlaw(700), { alignment: evenAlignment("😀😀 four", 100) });
    rig.clock.advance(310);
    rig.send({ type: "interrupt" });
    expect(rig.listener.eventsOf("interrupted")[0]?.heard).toMatchObject({ text: "😀😀 ", end: 3 });
  });

  it("the receipt of an utterance that waits has nothing heard, and the one that speaks goes on", () => {
    const rig = stage();
    rig.speak(TEXT, "now");
    rig.speak("golf", "queued");
    rig.answer(0);
    rig.clock.advance(420);
    const asked = rig.requests[1];
    rig.send({ type: "interrupt", utterance_id: "queued" });
    expect(rig.listener.eventsOf("interrupted")).toMatchObject([
      {
        utterance_id: "queued",
        heard: { text: "", end: 0, ms: 0, bound_ms: 0 },
        unheard_text: "golf",
        resumable: false,
        next_ms: null,
      },
    ]);
    expect(asked?.isAborted ?? true).toBe(true);
    rig.hearOut(3000);
    expect(heardOf(rig.listener).map(({ audio }) => read(audio))).toEqual([lettersOf(TEXT)]);
    expect(rig.outcomes()).toEqual(["queued/interrupted", "now/done"]);
  });

  it("an utterance that was made behind the one that speaks is not heard, and that one is heard out", () => {
    const rig = stage("format=ulaw_8000&lead_ms=3000");
    rig.speak(TEXT, "now");
    rig.speak("golf hotel", "made");
    rig.answer(0);
    rig.answer(1);
    rig.clock.advance(420);
    rig.send({ type: "interrupt", utterance_id: "made" });
    expect(rig.listener.eventsOf("interrupted")).toEqual([]);
    rig.clock.advance(3000);
    expect(rig.listener.eventsOf("interrupted")).toMatchObject([
      { utterance_id: "made", heard: { text: "", end: 0, ms: 0 }, unheard_text: "golf hotel" },
    ]);
    expect(heardOf(rig.listener).map(({ audio }) => read(audio))).toEqual([lettersOf(TEXT), ""]);
    expect(rig.outcomes()).toEqual(["now/done", "made/interrupted"]);
  });

  it("an interruption of nothing, of an unknown utterance and of one that is over is refused by name", () => {
    const rig = stage();
    expect(() => rig.send({ type: "interrupt" })).toThrow(code("nothing_to_interrupt"));
    expect(() => rig.send({ type: "interrupt", utterance_id: "x" })).toThrow(
      code("unknown_utterance", "utterance_id"),
    );
    rig.speak("golf", "u");
    rig.answer(0);
    rig.clock.advance(200);
    // Played to the end at this very moment.
    expect(() => rig.send({ type: "interrupt" })).toThrow(code("nothing_to_interrupt"));
    expect(rig.outcomes()).toEqual(["u/done"]);
    expect(() => rig.send({ type: "interrupt", utterance_id: "u" })).toThrow(code("unknown_utterance"));
  });

  it("does not echo marks of what was cut, and keeps those of what goes on", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.send({ type: "mark", name: "m" });
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    rig.clock.advance(2000);
    expect(rig.listener.eventsOf("mark")).toEqual([]);
    rig.send({ type: "resume" });
    rig.clock.advance(3000);
    expect(rig.listener.eventsOf("mark")).toMatchObject([{ name: "m" }]);
  });
});

describe("keep_ms", () => {
  it.each([1, 80, 333.5, 900])("lets exactly %d ms more be heard", (keepMs) => {
    const rig = stage();
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(420);
    rig.send({ type: "interrupt", keep_ms: keepMs });
    rig.clock.advance(keepMs - 0.5);
    expect(rig.listener.eventsOf("interrupted")).toEqual([]);
    rig.clock.advance(0.5);
    const [receipt] = rig.listener.eventsOf("interrupted");
    expect(receipt?.heard.ms).toBeCloseTo(420 + keepMs, 3);
    const over = Math.floor((420 + keepMs) / 50);
    expect(receipt?.heard.end).toBe(
      wordSpans(TEXT).find(({ start, end }) => start < over && over < end)?.start ?? over,
    );
    rig.clock.advance(3000);
    expect(rig.outcomes()).toEqual(["u/interrupted"]);
  });

  it("does not cut what is queued after it, made by then or not", () => {
    const rig = stage("format=ulaw_8000&lead_ms=2000");
    rig.speak("golf", "u");
    rig.speak("hotel", "v");
    rig.answer(0);
    rig.answer(1);
    rig.clock.advance(50);
    rig.send({ type: "interrupt", keep_ms: 300 });
    rig.speak("india juliet", "later");
    rig.hearOut(5000);
    // "golf" (200 ms) was heard whole by then.
    expect(rig.outcomes()).toEqual(["u/done", "v/interrupted", "later/done"]);
    expect(rig.listener.eventsOf("interrupted")[0]?.heard).toMatchObject({ text: "", ms: 150 });
    expect(heardOf(rig.listener).map(({ audio }) => read(audio))[1]).toBe("indiajuliet");
  });

  it("that outlasts the speech cuts nothing and leaves nothing behind", () => {
    const rig = stage();
    rig.speak("golf", "u");
    rig.answer(0);
    rig.clock.advance(50);
    rig.send({ type: "interrupt", keep_ms: 5000 });
    rig.clock.advance(1000);
    rig.speak(TEXT.repeat(10), "next");
    rig.answer(1);
    rig.clock.advance(6000);
    expect(rig.outcomes()).toEqual(["u/done"]);
    expect(rig.listener.eventsOf("interrupted")).toEqual([]);
    expect(rig.session.isIdle).toBe(false);
  });

  it("keep_ms for a queued utterance that begins by then cuts only that", () => {
    const rig = stage();
    rig.speak("golf", "u");
    rig.speak(TEXT, "v");
    rig.answer(0);
    rig.clock.advance(0);
    rig.send({ type: "interrupt", utterance_id: "v", keep_ms: 500 });
    rig.hearOut(4000);
    expect(rig.outcomes()).toEqual(["u/done", "v/interrupted"]);
    expect(rig.listener.eventsOf("interrupted")[0]?.heard.text).toBe(TEXT.slice(0, 6));
  });

  it("takes 16 that wait and refuses the next by name, and the session's end leaves none", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    rig.answer(0);
    for (let index = 0; index < 16; index += 1) rig.send({ type: "interrupt", keep_ms: 1000 + index });
    expect(() => rig.send({ type: "interrupt", keep_ms: 1000 })).toThrow(code("queue_full"));
    // At once still goes.
    rig.send({ type: "interrupt" });
    expect(rig.outcomes()).toEqual(["u/interrupted"]);
    rig.session.leave(rig.participant);
    rig.clock.advance(1001);
    expect(rig.session.isClosed).toBe(true);
    expect(rig.clock.pending).toBe(0);
  });
});

describe("utterances behind the one that is cut", () => {
  it("keep their order, where the first was made and the second asked for", () => {
    const rig = stage("format=ulaw_8000&lead_ms=200");
    rig.speak("aaa", "u");
    rig.speak("bravo golf", "first");
    rig.speak("charlie", "second");
    rig.answer(0);
    rig.answer(1);
    rig.clock.advance(1);
    expect(rig.asked()).toEqual(["aaa", "bravo golf", "charlie"]);
    rig.send({ type: "interrupt", utterance_id: "u" });
    rig.hearOut();
    expect(rig.outcomes()).toEqual(["u/interrupted", "first/done", "second/done"]);
    expect(heardOf(rig.listener).map(({ audio }) => read(audio))).toEqual(["", "bravogolfcharlie"]);
  });
});

describe("an interruption while", () => {
  it("the upstream has not answered at all: all is unheard and nothing was cut", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    rig.clock.advance(300);
    rig.send({ type: "interrupt" });
    expect(rig.requests[0]?.isAborted).toBe(true);
    expect(rig.listener.eventsOf("interrupted")).toMatchObject([
      { heard: { text: "", ms: 0 }, unheard_text: TEXT, next_ms: null, resumable: false },
    ]);
  });

  it("the audio has run dry: what was heard is what had come in whole frames", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    rig.answer(0, { chars: 9 });
    rig.clock.advance(3000);
    rig.send({ type: "interrupt" });
    const [receipt] = rig.listener.eventsOf("interrupted");
    expect(receipt?.heard).toMatchObject({ text: TEXT.slice(0, 6), end: 6 });
    expect(receipt?.heard.ms).toBeCloseTo(440, 3);
  });

  it("a request waits to be tried again: it is not tried", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    rig.send({ type: "text", text: "open ", voice_id: VOICE, utterance_id: "t" });
    const [open] = rig.requests;
    rig.send({ type: "interrupt" });
    open?.handlers.end();
    rig.clock.advance(5000);
    expect(rig.requests).toHaveLength(1);
    expect(() => rig.send({ type: "text", text: "more", utterance_id: "t" })).toThrow(code("utterance_over"));
  });
});
