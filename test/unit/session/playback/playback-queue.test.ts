/** The queue of utterances: who comes when, what takes whose place, and what is taken out. */
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../../src/errors.ts";
import { heardOf, lettersOf, read, stage, VOICE } from "../spelling.ts";

const code = (expected: string, field?: string) =>
  expect.objectContaining(field === undefined ? { code: expected } : { code: expected, field });

/** Room for many, so that order is what is tested. */
const ROOMY = { maxQueuedUtterances: 32, maxListeners: 8 };

function heard(rig: ReturnType<typeof stage>): string {
  return heardOf(rig.listener)
    .map(({ audio }) => read(audio))
    .join("|");
}

describe("order", () => {
  it("is that of their coming, whoever says them, and each learns how many are before it", () => {
    const rig = stage();
    const other = rig.join("format=none");
    rig.speak("alpha", "a");
    other.send({ type: "speak", text: "bravo", voice_id: VOICE, utterance_id: "b" });
    rig.speak("charlie", "c");
    expect(rig.listener.eventsOf("utterance.queued").map((event) => event.ahead)).toEqual([0, 2]);
    expect(other.listener.eventsOf("utterance.queued")).toMatchObject([{ utterance_id: "b", ahead: 1 }]);
    rig.hearOut();
    expect(heard(rig)).toBe("alphabravocharlie");
    expect(rig.outcomes()).toEqual(["a/done", "b/done", "c/done"]);
  });

  it("keeps token streams of several speakers apart, each whole, in the order of their first tokens", () => {
    const rig = stage("format=ulaw_8000", ROOMY);
    const speakers = [rig, rig.join("role=speaker"), rig.join("role=speaker")];
    const texts = ["alpha bravo. charlie delta. ", "echo foxtrot. golf. ", "hotel india juliet. "];
    const longest = Math.max(...texts.map((text) => text.length));
    for (let at = 0; at < longest; at += 3) {
      speakers.forEach(({ send }, index) => {
        const token = texts[index]?.slice(at, at + 3) ?? "";
        if (token !== "") send({ type: "text", text: token, voice_id: VOICE, utterance_id: `u${index}` });
      });
      rig.answerAll();
      rig.clock.advance(20);
    }
    // Ended in another order than begun.
    for (const index of [2, 0, 1]) speakers[index]?.send({ type: "end" });
    rig.hearOut();
    expect(heard(rig)).toBe(lettersOf(texts.join("")));
    expect(rig.outcomes()).toEqual(["u0/done", "u1/done", "u2/done"]);
    for (const [index, text] of texts.entries()) {
      const words = rig.listener
        .eventsOf("words")
        .filter((event) => event.utterance_id === `u${index}`)
        .flatMap((event) => event.words);
      expect(words.map((word) => word.text)).toEqual(text.match(/[a-z]+/g));
      for (const word of words) expect(text.slice(word.start, word.end)).toBe(word.text);
    }
  });

  it("a speaker's text without an id goes on its own open text, never another's", () => {
    const rig = stage();
    const other = rig.join("role=speaker");
    rig.send({ type: "text", text: "alpha ", voice_id: VOICE });
    other.send({ type: "text", text: "golf ", voice_id: VOICE });
    rig.send({ type: "text", text: "bravo" });
    other.send({ type: "text", text: "hotel" });
    other.send({ type: "end" });
    rig.send({ type: "end" });
    rig.hearOut();
    expect(heard(rig)).toBe("alphabravogolfhotel");
  });
});

describe("priority", () => {
  it("goes before lower ones and behind its equals", () => {
    const rig = stage("format=ulaw_8000", { ...ROOMY, speculateMs: 0 });
    rig.speak("alpha", "speaking");
    rig.answer(0);
    rig.clock.advance(50);
    for (const [text, priority] of [
      ["bravo", 0],
      ["charlie", 5],
      ["delta", -100],
      ["echo", 5],
      ["foxtrot", 100],
      ["golf", 0],
    ] as const) {
      rig.speak(text, text, { priority });
    }
    // Behind "speaking" and all that go before it.
    expect(rig.listener.eventsOf("utterance.queued").map((event) => event.ahead)).toEqual([
      0, 1, 1, 3, 2, 1, 5,
    ]);
    rig.hearOut();
    expect(rig.outcomes()).toEqual(
      ["speaking", "foxtrot", "charlie", "echo", "bravo", "golf", "delta"].map((id) => `${id}/done`),
    );
  });

  it("never goes before what speaks or what was asked for, and aborts nothing", () => {
    const rig = stage();
    rig.speak("alpha", "speaking");
    rig.answer(0);
    rig.speak("bravo", "asked");
    rig.speak("charlie", "waits");
    rig.clock.advance(50);
    expect(rig.asked()).toEqual(["alpha", "bravo"]);
    rig.speak("delta", "urgent", { priority: 100 });
    expect(rig.requests.some((open) => open.isAborted)).toBe(false);
    rig.hearOut();
    expect(heard(rig)).toBe("alphabravodeltacharlie");
    expect(rig.requests).toHaveLength(4);
  });

  it("goes for token streams and dialogues too", () => {
    const rig = stage("format=ulaw_8000", { speculateMs: 0 });
    rig.speak("alpha", "speaking");
    rig.answer(0);
    rig.clock.advance(50);
    rig.speak("bravo", "low");
    rig.send({ type: "text", text: "charlie", voice_id: VOICE, utterance_id: "t", priority: 1 });
    rig.send({ type: "end" });
    rig.send({ type: "dialogue", inputs: [{ text: "delta", voice_id: "d" }], priority: 2 });
    rig.hearOut();
    expect(heard(rig)).toBe("alphadeltacharliebravo");
  });

  it.each([-101, 101, 0.5, "high"])("priority %s is refused", (priority) => {
    const rig = stage();
    expect(() => rig.speak("alpha", "a", { priority })).toThrow(code("invalid_field", "priority"));
    expect(rig.requests).toHaveLength(0);
  });
});

describe("replace", () => {
  it("queued: takes the place of what has not begun, and lets what speaks go on", () => {
    const rig = stage();
    rig.speak("alpha bravo charlie", "now");
    rig.speak("delta", "one");
    rig.speak("echo", "two");
    rig.answer(0);
    rig.clock.advance(100);
    rig.speak("foxtrot", "new", { replace: "queued" });
    rig.hearOut();
    expect(rig.outcomes()).toEqual(["one/cancelled", "two/cancelled", "now/done", "new/done"]);
    expect(heard(rig)).toBe("alphabravocharliefoxtrot");
  });

  it("all: interrupts what speaks as well, with a receipt each, and speaks at once", () => {
    const rig = stage();
    rig.speak("alpha bravo charlie", "now");
    rig.speak("delta", "one");
    rig.answer(0);
    rig.clock.advance(420);
    rig.speak("foxtrot", "new", { replace: "all" });
    expect(rig.listener.eventsOf("interrupted")).toMatchObject([
      { utterance_id: "now", heard: { text: "alpha " } },
      { utterance_id: "one", heard: { text: "" }, unheard_text: "delta" },
    ]);
    expect(rig.listener.eventsOf("utterance.queued").at(-1)).toMatchObject({ utterance_id: "new", ahead: 0 });
    rig.hearOut();
    expect(heard(rig)).toBe("alphabr|foxtrot");
    expect(rig.outcomes()).toEqual(["now/interrupted", "one/interrupted", "new/done"]);
  });

  it.each(["queued", "all"])("%s where there is nothing to replace just speaks", (replace) => {
    const rig = stage();
    rig.speak("alpha", "a", { replace });
    rig.hearOut(2000);
    // Played to the end at this very moment.
    rig.speak("bravo", "b", { replace });
    rig.hearOut(2000);
    expect(rig.outcomes()).toEqual(["a/done", "b/done"]);
  });

  it("at the very moment when the one before is over interrupts nothing", () => {
    const rig = stage();
    rig.speak("alph", "a");
    rig.answer(0);
    rig.clock.advance(200);
    rig.speak("bravo", "b", { replace: "all" });
    rig.hearOut(2000);
    expect(rig.outcomes()).toEqual(["a/done", "b/done"]);
  });

  it("makes room in a queue that is full", () => {
    const rig = stage();
    for (const id of ["a", "b", "c", "d", "e"]) rig.speak("alpha", id);
    expect(() => rig.speak("bravo", "f")).toThrow(code("queue_full"));
    expect(() => rig.speak("bravo", "f", { replace: "queued" })).not.toThrow();
  });

  it("replaces nothing where the utterance itself is refused", () => {
    const rig = stage();
    rig.speak("alpha", "a");
    rig.speak("bravo", "b");
    rig.answer(0);
    rig.clock.advance(50);
    expect(() => rig.speak("charlie", "b", { replace: "all" })).toThrow(code("utterance_id_taken"));
    expect(() => rig.speak("", "c", { replace: "all" })).toThrow(code("invalid_field"));
    expect(() => rig.speak("x".repeat(1001), "c", { replace: "all" })).toThrow(code("text_too_long"));
    rig.session.utteranceCommands.drain();
    expect(() => rig.speak("charlie", "c", { replace: "all" })).toThrow(code("draining"));
    rig.hearOut();
    expect(rig.outcomes()).toEqual(["a/done", "b/done"]);
  });

  it("counts for the first token of a text and not for those that follow", () => {
    const rig = stage();
    rig.speak("alpha", "a");
    rig.answer(0);
    rig.clock.advance(50);
    rig.send({ type: "text", text: "bravo ", voice_id: VOICE, utterance_id: "t", replace: "all" });
    rig.speak("delta", "d");
    rig.send({ type: "text", text: "charlie", utterance_id: "t", replace: "all" });
    rig.send({ type: "end", utterance_id: "t" });
    rig.hearOut();
    expect(rig.outcomes()).toEqual(["a/interrupted", "t/done", "d/done"]);
  });
});

describe("cancel", () => {
  it("takes one out, aborts its request, and says so to everybody", () => {
    const rig = stage();
    const client = rig.join("role=listener&format=ulaw_8000");
    rig.speak("alpha bravo", "now");
    rig.answer(0);
    rig.speak("charlie", "asked");
    rig.speak("delta", "later");
    rig.clock.advance(50);
    const [, asked] = rig.requests;
    asked?.head();
    rig.send({ type: "cancel", utterance_id: "asked" });
    expect(asked?.isAborted).toBe(true);
    rig.hearOut();
    expect(rig.outcomes()).toEqual(["asked/cancelled", "now/done", "later/done"]);
    expect(client.listener.eventsOf("utterance.done")[0]).toMatchObject({
      utterance_id: "asked",
      outcome: "cancelled",
      characters_spoken: 0,
      latency: null,
      segments: [],
    });
    expect(rig.listener.eventsOf("interrupted")).toEqual([]);
    expect(heard(rig)).toBe("alphabravodelta");
  });

  it("takes all out that have not begun, and lets what speaks go on", () => {
    const rig = stage();
    rig.speak("alpha bravo", "now");
    rig.answer(0);
    rig.speak("charlie", "one");
    rig.send({ type: "text", text: "delta", voice_id: VOICE, utterance_id: "two" });
    rig.clock.advance(50);
    rig.send({ type: "cancel" });
    rig.hearOut();
    expect(rig.outcomes()).toEqual(["one/cancelled", "two/cancelled", "now/done"]);
    expect(heard(rig)).toBe("alphabravo");
    expect(rig.session.isIdle).toBe(true);
  });

  it("cancelling the only utterance, asked for and not answered, leaves the session idle", () => {
    const rig = stage();
    rig.speak("alpha", "a");
    rig.send({ type: "cancel", utterance_id: "a" });
    expect(rig.outcomes()).toEqual(["a/cancelled"]);
    expect(rig.requests[0]?.isAborted).toBe(true);
    expect(rig.session.isIdle).toBe(true);
    rig.speak("bravo", "b");
    rig.hearOut();
    expect(heard(rig)).toBe("bravo");
  });

  it("does not echo the marks of what was taken out", () => {
    const rig = stage();
    rig.speak("alpha", "a");
    rig.answer(0);
    rig.speak("bravo", "b");
    rig.clock.advance(10);
    rig.send({ type: "mark", name: "behind b" });
    rig.send({ type: "cancel" });
    rig.hearOut();
    expect(rig.listener.eventsOf("mark")).toEqual([]);
  });

  it("cancelling what speaks is refused and says what to do; so is an unknown id, one that is over, and an empty queue", () => {
    const rig = stage();
    expect(() => rig.send({ type: "cancel" })).toThrow(code("nothing_to_cancel"));
    rig.speak("alpha", "a");
    rig.answer(0);
    rig.clock.advance(50);
    expect(() => rig.send({ type: "cancel", utterance_id: "a" })).toThrow(code("nothing_to_cancel"));
    expect(() => rig.send({ type: "cancel", utterance_id: "a" })).toThrow(/interrupt/);
    expect(() => rig.send({ type: "cancel" })).toThrow(code("nothing_to_cancel"));
    expect(() => rig.send({ type: "cancel", utterance_id: "x" })).toThrow(
      code("unknown_utterance", "utterance_id"),
    );
    rig.hearOut(2000);
    expect(() => rig.send({ type: "cancel", utterance_id: "a" })).toThrow(code("unknown_utterance"));
    expect(rig.outcomes()).toEqual(["a/done"]);
  });

  it("is not for listeners, nor are resume and interrupt", () => {
    const rig = stage();
    const client = rig.join("role=listener&format=ulaw_8000");
    for (const type of ["cancel", "resume", "interrupt"]) {
      expect(() => client.send({ type })).toThrow(code("not_a_speaker"));
    }
  });
});

describe("text that comes too late", () => {
  it.each([
    ["cancelled", (rig: ReturnType<typeof stage>) => rig.send({ type: "cancel", utterance_id: "t" })],
    ["interrupted", (rig: ReturnType<typeof stage>) => rig.send({ type: "interrupt", utterance_id: "t" })],
    [
      "failed",
      (rig: ReturnType<typeof stage>) => {
        rig.requests[0]?.handlers.error(new GatewayError("upstream_invalid", "No"));
        rig.clock.advance(100);
      },
    ],
  ])("for an utterance that was %s is refused by name, and begins no other", (_, end) => {
    const rig = stage();
    rig.send({ type: "text", text: "alpha bravo. ", voice_id: VOICE, utterance_id: "t" });
    rig.send({ type: "flush", utterance_id: "t" });
    end(rig);
    const asked = rig.requests.length;
    for (const late of [
      { type: "text", text: "charlie. ", utterance_id: "t" },
      { type: "flush", utterance_id: "t" },
      { type: "end", utterance_id: "t" },
    ]) {
      expect(() => rig.send(late)).toThrow(code("utterance_over", "utterance_id"));
    }
    expect(rig.requests).toHaveLength(asked);
    // Without an id it is a new one.
    rig.send({ type: "text", text: "delta", voice_id: VOICE });
    rig.send({ type: "end" });
    rig.hearOut();
    expect(
      heardOf(rig.listener)
        .map(({ audio }) => read(audio))
        .at(-1),
    ).toBe("delta");
  });

  it("for one whose text has ended is refused by name while it waits, and is over when it was said", () => {
    const rig = stage();
    rig.send({ type: "text", text: "alpha", voice_id: VOICE, utterance_id: "t" });
    rig.send({ type: "end", utterance_id: "t" });
    const late = { type: "text", text: "bravo", utterance_id: "t" };
    expect(() => rig.send(late)).toThrow(code("text_after_end", "utterance_id"));
    rig.hearOut();
    expect(() => rig.send(late)).toThrow(code("utterance_over", "utterance_id"));
    expect(heard(rig)).toBe("alpha");
  });
});

describe("limits of the queue", () => {
  it.each([
    ["that has begun", true],
    ["that is about to begin", false],
  ])("are those of hello, count what waits behind the one %s, and say when to try again", (_, hasBegun) => {
    const rig = stage();
    const limit = rig.listener.eventsOf("hello")[0]?.limits.queued_utterances ?? 0;
    rig.speak("alpha", "first");
    if (hasBegun) rig.answer(0, { chars: 4 });
    for (let index = 0; index < limit; index += 1) rig.speak("alpha", `u${index}`);
    if (hasBegun) rig.answer(0, { from: 4 });
    expect(() => rig.speak("bravo", "more")).toThrow(code("queue_full"));
    expect(() => rig.speak("bravo", "more")).toThrow(
      expect.objectContaining({ message: expect.stringContaining(`${limit}`), retryAfterMs: 1000 }),
    );
    expect(() => rig.send({ type: "text", text: "bravo", voice_id: VOICE })).toThrow(code("queue_full"));
    expect(() => rig.send({ type: "dialogue", inputs: [{ text: "bravo", voice_id: "b" }] })).toThrow(
      code("queue_full"),
    );
    rig.hearOut();
    expect(rig.outcomes()).toHaveLength(1 + limit);
    // An id that was refused is free.
    rig.speak("bravo", "more");
    rig.hearOut();
    expect(rig.outcomes().at(-1)).toBe("more/done");
  });
});
