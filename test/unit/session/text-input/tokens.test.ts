import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { GatewayError } from "../../../../src/errors.ts";
import type { MemoryListener } from "../../../helpers/memory-listener.ts";
import { countingUlaw, createRig, type FakeRequest } from "../../../helpers/session-rig.ts";
import { Answering, requestAt, texts, VOICE, wordsOf } from "../scripted-speech.ts";

/** Stall cuts depend on when tokens come: here they never do. */
const NO_STALLS = {
  stallMs: 1e6,
  creditChars: 1e6,
  maxTextChars: 100_000,
  maxMarks: 8,
};

function say(tokens: readonly string[], command: object = {}) {
  const rig = createRig(NO_STALLS);
  const { send, listener } = rig.join("format=ulaw_8000&pace=burst&events=words,characters");
  tokens.forEach((text, index) => {
    send({ type: "text", text, ...(index === 0 ? { voice_id: VOICE, utterance_id: "u", ...command } : {}) });
  });
  send({ type: "end" });
  new Answering(rig).run(3000, 100);
  return { rig, listener, send };
}

function emitted(listener: MemoryListener) {
  return {
    words: wordsOf(listener).map(({ text, start, end, start_ms, end_ms }) => [
      text,
      start,
      end,
      start_ms,
      end_ms,
    ]),
    characters: listener.eventsOf("characters").map(({ start, end, characters }) => [start, end, characters]),
    done: listener.eventsOf("utterance.done").map((event) => [event.outcome, event.characters_spoken]),
  };
}

/** What is known of the text behind it depends on when that came, and is a hint only. Each session has an epoch of its own. */
function asked({ request }: FakeRequest) {
  return { ...request, nextText: undefined, utterance: request.utterance?.id };
}

/** Pieces of a text cut at any code unit, between the halves of a surrogate pair too. */
function splitAt(text: string, cuts: readonly number[]): string[] {
  const places = [...new Set(cuts.map((cut) => cut % (text.length + 1)))]
    .filter((at) => at > 0 && at < text.length)
    .sort((a, b) => a - b);
  return [0, ...places].map((from, index) => text.slice(from, places[index] ?? text.length));
}

const PIECES = [
  "Hello there. ",
  "Dr. Smith paid $3.50, or so he said; ",
  "👩‍👩‍👧 ok? ",
  "one two three four five six seven eight nine ten, ",
  "\n\n",
  "今日は晴れです。",
  "**bold** and [a link](https://example.com/x) ",
  "<break time='1s'/>then ",
  "VW drives. ",
  "café naïve! ",
];
const text = fc
  .array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 12 })
  .map((pieces) => `Go ${pieces.join("")}end`);

describe("tokens", () => {
  it.each([
    ["as they are", {}],
    [
      "cleaned and replaced",
      { clean: ["markdown", "emoji", "urls", "code"], replacements: [{ from: "VW", to: "the car. Yes" }] },
    ],
  ])("any split of a text gives the same requests, words and offsets: %s", (_name, command) => {
    fc.assert(
      fc.property(text, fc.array(fc.nat(2000), { maxLength: 40 }), (whole, cuts) => {
        const one = say([whole], command);
        const many = say(splitAt(whole, cuts), command);
        expect(many.rig.requests.map(asked)).toEqual(one.rig.requests.map(asked));
        expect(emitted(many.listener)).toEqual(emitted(one.listener));
      }),
      { numRuns: 40 },
    );
  });

  it("words and characters stand where the client's text has them, and rise", () => {
    const whole = "One is here. Two follows, and three is a longer sentence that goes on. Four! The end";
    const { listener, rig } = say(splitAt(whole, [3, 9, 20, 31, 50, 77]));
    expect(rig.requests.length).toBeGreaterThan(1);
    for (const word of wordsOf(listener)) expect(whole.slice(word.start, word.end)).toBe(word.text);
    expect(wordsOf(listener).map((word) => word.text)).toEqual(whole.match(/[A-Za-z]+/g));
    const characters = listener.eventsOf("characters");
    expect(characters.map((event) => event.characters.join("")).join("")).toBe(whole);
    characters.forEach((event, index) => {
      expect(event.start).toBe(characters[index - 1]?.end ?? 0);
    });
  });

  it("text after its end is refused by name, without an id it begins a new utterance", () => {
    const { send, listener } = say(["Hello."]);
    expect(() => send({ type: "text", text: "x", utterance_id: "u", voice_id: VOICE })).toThrow(
      expect.objectContaining({ code: "utterance_over" }),
    );
    const other = createRig(NO_STALLS).join("format=ulaw_8000");
    other.send({ type: "text", text: "Hello there", utterance_id: "w", voice_id: VOICE });
    other.send({ type: "end" });
    expect(() => other.send({ type: "text", text: "x", utterance_id: "w" })).toThrow(
      expect.objectContaining({ code: "text_after_end" }),
    );
    other.send({ type: "text", text: "New one", voice_id: VOICE });
    expect(other.listener.eventsOf("utterance.queued")).toHaveLength(2);
    expect(listener.eventsOf("utterance.done")).toHaveLength(1);
  });

  it("warns of elements without their other half when the text ends, and says it unchanged", () => {
    const rig = createRig(NO_STALLS);
    const { send, listener } = rig.join("format=ulaw_8000");
    send({ type: "text", text: "Say <empha", voice_id: VOICE, utterance_id: "t" });
    send({ type: "text", text: "sis>this</prosody> now" });
    expect(listener.eventsOf("warning")).toEqual([]);
    send({ type: "end" });
    send({ type: "speak", text: "<prosody rate='slow'>again", voice_id: VOICE });
    const warnings = listener.eventsOf("warning");
    expect(warnings.map((event) => event.code)).toEqual(["unbalanced_markup", "unbalanced_markup"]);
    expect(warnings[0]?.message).toContain("/prosody");
    expect(warnings[1]?.message).toContain("prosody");
    expect(texts(rig).join("")).toBe("Say <emphasis>this</prosody> now");
  });

  it("warns of a tag without its end and of half a bracket tag, and speaks them unchanged", () => {
    const rig = createRig(NO_STALLS);
    const { send, listener } = rig.join("format=ulaw_8000");
    const text = '[laughs Hello <break time="1s" there.';
    send({ type: "speak", text, voice_id: VOICE });
    const [warning, ...more] = listener.eventsOf("warning");
    expect(warning?.message).toContain("<break, [");
    expect(more).toEqual([]);
    expect(texts(rig).join("")).toBe(text);
  });

  it("a token of a megabyte is refused whole and what was accepted is still said", () => {
    const rig = createRig(NO_STALLS);
    const { send, listener } = rig.join("format=ulaw_8000&pace=burst");
    send({ type: "text", text: "Short. ", voice_id: VOICE });
    const error = thrownBy(() => send({ type: "text", text: "a".repeat(1_000_000) }));
    expect(error).toMatchObject({ code: "text_too_long", field: "text" });
    expect(error?.message).not.toContain("aaa");
    send({ type: "text", text: "More." });
    send({ type: "end" });
    new Answering(rig).run(1000, 100);
    expect(texts(rig).join("")).toBe("Short. More.");
    expect(listener.eventsOf("utterance.done")).toMatchObject([{ outcome: "done" }]);
  });

  it("a million one-letter tokens end in text_too_long, with no more kept than the limit", () => {
    const rig = createRig({ ...NO_STALLS, maxTextChars: 2000 });
    const { send, listener, session } = rig.join("format=ulaw_8000");
    send({ type: "text", text: "a", voice_id: VOICE, utterance_id: "u" });
    const codes = new Set<string | undefined>();
    for (let count = 1; count < 1_000_000; count += 1) {
      // Past the limit each is refused in the same way: not all of them have to be tried.
      if (count > 4000) break;
      codes.add(thrownBy(() => send({ type: "text", text: "a" }))?.code);
    }
    expect([...codes]).toEqual([undefined, "text_too_long"]);
    expect(session.queue.findAny("u")?.text.length).toBe(2000);
    expect(rig.clock.pending).toBeLessThan(4);
    expect(listener.eventsOf("utterance.queued")).toHaveLength(1);
  });

  it.each([
    ["a NUL", "a\u0000b"],
    ["another control character", "a\u0007b"],
    ["half a surrogate pair", "a\ud83db"],
    ["the second half of one alone", "\ude00"],
  ])("refuses %s and goes on with the utterance", (_name, bad) => {
    const rig = createRig(NO_STALLS);
    const { send } = rig.join("format=ulaw_8000");
    send({ type: "text", text: "Fine. ", voice_id: VOICE });
    expect(() => send({ type: "text", text: bad })).toThrow(
      expect.objectContaining({ code: "invalid_text" }),
    );
    send({ type: "text", text: "Still fine." });
    send({ type: "end" });
    new Answering(rig).run(1000, 100);
    expect(texts(rig).join("")).toBe("Fine. Still fine.");
  });

  it.each([
    ["at the text's end", ["Fine \ud83d"], "Fine "],
    ["before other text", ["Fine \ud83d", "still."], "Fine still."],
    ["before another half", ["Fine \ud83d", "\ud83d", "\ude00!"], "Fine \u{1f600}!"],
  ])("leaves out half a surrogate pair %s, by name", (_name, pieces, whole) => {
    const { rig, listener } = say(pieces);
    expect(texts(rig).join("")).toBe(whole);
    expect(listener.eventsOf("warning")).toMatchObject([
      { code: "half_character", message: expect.stringContaining("index 5") },
    ]);
  });

  it("reports what is missing in a text that a long silence ends, as where its speaker ends it", () => {
    const rig = createRig({ textIdleMs: 2000 });
    const { send, listener, participant } = rig.join("format=ulaw_8000");
    send({ type: "text", text: "<sub alias='x'>Fine \ud83d", voice_id: VOICE });
    new Answering(rig).run(1000, 100);
    expect(listener.eventsOf("warning")).toEqual([]);
    new Answering(rig).run(2000, 100);
    expect(listener.eventsOf("warning").map(({ code }) => code)).toEqual([
      "half_character",
      "unbalanced_markup",
    ]);
    expect(participant.openIds.size).toBe(0);
  });

  it.each([
    [
      "a tag",
      ["Hello there <bre", 'ak time="1s"/> my friend.'],
      ["Hello there ", '<break time="1s"/> my friend.'],
    ],
    ["its first character", ["Hello there <", "break/> my friend."], ["Hello there ", "<break/> my friend."]],
    ["an audio tag", ["Hello there [lau", "ghs] my friend."], ["Hello there ", "my friend."]],
    [
      "an element",
      ["Hello <sub alias='doctor'>D", "r.</sub> Who."],
      ["Hello ", "<sub alias='doctor'>Dr.</sub> Who."],
    ],
    ["no tag", ["Hello a <b", " or c"], ["Hello a ", "<b or c"]],
    [
      "a bracket that is none",
      [`Hello [no${"te".repeat(40)}`, "s on"],
      [`Hello [no${"te".repeat(40)}`, "s on"],
    ],
  ])("reads no half of %s that is open at a flush", (_name, [first = "", second = ""], pieces) => {
    const rig = createRig(NO_STALLS);
    const { send } = rig.join("format=ulaw_8000");
    send({ type: "text", text: first, voice_id: VOICE });
    send({ type: "flush" });
    expect(texts(rig)).toEqual(pieces.slice(0, 1));
    send({ type: "text", text: second });
    send({ type: "end" });
    new Answering(rig).run(3000, 100);
    expect(texts(rig)).toEqual(pieces);
  });

  it("keeps half a surrogate pair for the next text over a flush and an empty one", () => {
    const rig = createRig(NO_STALLS);
    const { send, listener } = rig.join("format=ulaw_8000&offsets=cp");
    send({ type: "text", text: "\ud83d", voice_id: VOICE });
    send({ type: "flush" });
    send({ type: "text", text: "" });
    send({ type: "text", text: "\ude00 Fine." });
    send({ type: "end" });
    new Answering(rig).run(1000, 100);
    expect(texts(rig).join("")).toBe("\u{1f600} Fine.");
    expect(listener.eventsOf("warning")).toEqual([]);
    expect(wordsOf(listener).map(({ start, end }) => [start, end])).toEqual([
      [0, 1],
      [2, 6],
    ]);
  });

  it.each<[string, unknown]>([
    [
      "ends too few",
      {
        characters: [..."Hello"],
        character_start_times_seconds: [0, 0.1, 0.2, 0.3, 0.4],
        character_end_times_seconds: [0.1],
      },
    ],
    [
      "characters too few",
      {
        characters: ["H"],
        character_start_times_seconds: [0, 0.1, 0.2],
        character_end_times_seconds: [0.1, 0.2, 0.3],
      },
    ],
    [
      "NaN",
      {
        characters: [..."Hello"],
        character_start_times_seconds: [0, Number.NaN, 0.2, 0.3, 0.4],
        character_end_times_seconds: [0.1, 0.2, Number.NaN, 0.4, 0.5],
      },
    ],
    [
      "null",
      {
        characters: [..."Hello"],
        character_start_times_seconds: [0, null, 0.2, 0.3, 0.4],
        character_end_times_seconds: [null, 0.2, 0.3, 0.4, 0.5],
      },
    ],
    [
      "backwards",
      {
        characters: [..."Hello"],
        character_start_times_seconds: [0.4, 0.3, 0.2, 0.1, 0],
        character_end_times_seconds: [0.5, 0.4, 0.3, 0.2, 0.1],
      },
    ],
    [
      "infinite",
      {
        characters: [..."Hello"],
        character_start_times_seconds: [0, 0.1, 0.2, 0.3, 1e300],
        character_end_times_seconds: [0.1, 0.2, 0.3, 1e300, Number.POSITIVE_INFINITY],
      },
    ],
  ])("broken alignment (%s) neither stops the speech nor is called exact", (_name, alignment) => {
    const rig = createRig(NO_STALLS);
    const { send, listener } = rig.join(
      "format=ulaw_8000&pace=burst&events=characters,normalized,words,cues",
    );
    send({ type: "speak", text: "Hello", voice_id: VOICE });
    const request = requestAt(rig, 0);
    request.handlers.head({});
    request.handlers.chunk({
      audio: countingUlaw(500),
      alignment: alignment as never,
      normalizedAlignment: alignment as never,
      voiceSegments: [],
    });
    request.handlers.end();
    rig.clock.advance(1000);
    const [done] = listener.eventsOf("utterance.done");
    expect(done).toMatchObject({ outcome: "done", end_ms: 500 });
    expect(done?.timing).not.toBe("exact");
    const events = listener.eventsOf("characters");
    expect(events.flatMap((event) => event.characters).join("")).toBe("Hello");
    expect(events.every((event) => event.timing === "exact")).toBe(false);
    const times = events.flatMap((event) =>
      event.start_ms.flatMap((start, index) => [start, event.end_ms[index] ?? Number.NaN]),
    );
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(times.every((ms) => ms >= 0 && ms <= 500)).toBe(true);
    for (const event of listener.eventsOf("normalized")) {
      expect(event.start_ms).toHaveLength(event.characters.length);
      const all = event.start_ms.flatMap((start, index) => [start, event.end_ms[index] ?? Number.NaN]);
      expect(all).toEqual([...all].sort((a, b) => a - b));
    }
  });
});

function thrownBy(action: () => void): GatewayError | undefined {
  try {
    action();
    return undefined;
  } catch (thrown) {
    return thrown as GatewayError;
  }
}
