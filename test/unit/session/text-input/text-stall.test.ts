import { describe, expect, it, vi } from "vitest";
import { createRig } from "../../../helpers/session-rig.ts";
import { Answering, type Manner, type Rig, texts, VOICE, wordsOf } from "../scripted-speech.ts";

function start(settings: Parameters<typeof createRig>[0] = {}, manner: Manner = {}) {
  const rig = createRig({ textIdleMs: 1e9, ...settings });
  const joined = rig.join("format=ulaw_8000&events=words,characters");
  const answering = new Answering(rig, manner);
  /** Tokens, so long after one another. */
  const stream = (tokens: readonly string[], gapMs: number, command: object = {}): void => {
    for (const text of tokens) {
      joined.send({ type: "text", text, voice_id: VOICE, utterance_id: "u", ...command });
      answering.run(gapMs);
    }
  };
  return { rig, ...joined, answering, stream };
}

/** ms until a condition holds, in steps of 5; fails after `maxMs`. */
function msUntil(rig: Rig, isTrue: () => boolean, maxMs = 10_000): number {
  for (let ms = 0; ms <= maxMs; ms += 5) {
    if (isTrue()) return ms;
    rig.clock.advance(5);
  }
  throw new Error(`It never came in ${maxMs} ms`);
}

describe("tokens that dry up", () => {
  it.each([
    ["a sentence end", ["I am ", "here ", "now."], "I am here now."],
    ["a clause", ["Well ", "then, ", "as I ", "sa"], "Well then, "],
    ["a word", ["I am ", "going ", "to the sta"], "I am going to the "],
    ["a word of Japanese", ["今日は", "とても良い", "天気で"], /^今日はとても良い/],
    ["not in a tag", ["Say it ", '<phoneme ph="x y'], "Say it "],
    ["not behind an abbreviation's dot", ["Ask ", "for Dr."], "Ask for "],
  ])("are spoken up to %s", (_name, tokens, expected) => {
    const { rig, stream } = start();
    stream(tokens, 30);
    expect(rig.requests).toHaveLength(0);
    rig.clock.advance(5000);
    if (typeof expected === "string") expect(texts(rig)).toEqual([expected]);
    else expect(texts(rig)[0]).toMatch(expected);
    expect(rig.counters.stallCuts).toBe(1);
  });

  it("wait the longer the slower the tokens came, and never longer than the setting", () => {
    const waitOf = (gapMs: number): number => {
      const { rig, stream } = start();
      stream(
        Array.from({ length: 8 }, () => "word "),
        gapMs,
      );
      return gapMs + msUntil(rig, () => rig.requests.length > 0);
    };
    const [fast, middle, slow] = [waitOf(10), waitOf(90), waitOf(120)];
    expect(fast).toBeLessThan(middle);
    expect(middle).toBeLessThan(slow);
    expect(fast).toBeLessThanOrEqual(250);
    expect(slow).toBeLessThanOrEqual(500 + 120);
  });

  it("are cut at a better boundary sooner", () => {
    const waitFor = (last: string): number => {
      const { rig, stream } = start();
      stream(["It ", "is ", "like ", "that", last], 50);
      return msUntil(rig, () => rig.requests.length > 0);
    };
    const [sentence, clause, word] = [waitFor("."), waitFor(", "), waitFor(" so")];
    expect(sentence).toBeLessThan(clause);
    expect(clause).toBeLessThan(word);
  });

  it("nothing is spoken of half a word, and the next token gets it going", () => {
    const { rig, stream } = start();
    stream(["Extra"], 5000);
    expect(texts(rig)).toEqual([]);
    stream(["ordinary ", "thi"], 2000);
    expect(texts(rig)).toEqual(["Extraordinary "]);
  });

  it("go on later with offsets that are right, nothing twice and nothing lost", () => {
    const { rig, listener, send, answering, stream } = start();
    const tokens = ["The quick ", "bro", "wn fox ", "jum", "ps over ", "the lazy dog. ", "And rests."];
    for (const token of tokens) stream([token], 1500);
    send({ type: "end" });
    answering.run(5000);
    const whole = tokens.join("");
    expect(rig.counters.stallCuts).toBeGreaterThanOrEqual(4);
    expect(texts(rig).join("")).toBe(whole);
    expect(wordsOf(listener).map((word) => word.text)).toEqual(whole.match(/[A-Za-z]+/g));
    for (const word of wordsOf(listener)) expect(whole.slice(word.start, word.end)).toBe(word.text);
    const starts = wordsOf(listener).map((word) => word.start_ms);
    expect(starts).toEqual([...starts].sort((a, b) => a - b));
    expect(listener.eventsOf("utterance.done")).toMatchObject([
      { outcome: "done", characters_spoken: whole.length },
    ]);
  });

  it("slow and steady: what is there is spoken although tokens keep coming", () => {
    const { rig, stream, listener } = start();
    stream(
      Array.from({ length: 14 }, (_, index) => `w${index} `),
      400,
    );
    expect(rig.requests.length).toBeGreaterThanOrEqual(2);
    expect(listener.frames.length).toBeGreaterThan(0);
  });

  it("a steady stream without marks is cut although no gap is long", () => {
    const { rig, stream } = start({ stallMs: 200 });
    // 90 characters: short of the longest first piece.
    stream(
      Array.from({ length: 30 }, () => "ab "),
      40,
    );
    expect(rig.requests.length).toBeGreaterThanOrEqual(1);
  });

  it("wait where enough audio is in hand, and are cut before it runs dry", () => {
    const { rig, listener, stream, answering } = start({ speculateMs: 10_000 }, { msPerChar: 200 });
    // 23 characters: 4.6 s of speech.
    stream(["This takes long to say. ", "And then it ", "goes on wi"], 30);
    expect(texts(rig)).toEqual(["This takes long to say. "]);
    answering.run(2500);
    expect(texts(rig)).toEqual(["This takes long to say. "]);
    answering.run(2100);
    expect(texts(rig)).toEqual(["This takes long to say. ", "And then it goes on "]);
    const before = listener.frames.length;
    answering.run(500);
    expect(listener.frames.length).toBeGreaterThan(before);
    expect(rig.counters.underruns).toBe(0);
  });

  it("text that is held back for cleaning is spoken too when nothing follows", () => {
    const { rig, stream } = start();
    stream(["Please look ", "at *the ", "list of "], 30, { clean: ["markdown"] });
    rig.clock.advance(5000);
    expect(texts(rig).join("")).toMatch(/^Please look at \*?the list of ?$/);
  });

  it("text that is all held back is spoken too", () => {
    const { rig, stream } = start();
    stream(["New ", "York "], 30, { replacements: [{ from: "New York City", to: "NYC" }] });
    rig.clock.advance(5000);
    expect(texts(rig)).toEqual(["New York "]);
  });
});

const MARKDOWN = { clean: ["markdown"] };
const CODE = { clean: ["code"] };
const URLS = { clean: ["urls"] };
const RULES = {
  replacements: [
    { from: "New York", to: "N Y" },
    { from: "New York City", to: "the city" },
    { from: "SQL", to: "sequel" },
    { from: "AC/DC", to: "ay see dee see" },
  ],
};

describe("tokens that dry up within what cleaning and rules take as one", () => {
  it.each<[string, string[], object, string[]]>([
    ["a link", ["See [the li", "nk](https://x.y/z) now."], MARKDOWN, ["See ", "the link now."]],
    [
      "a link behind a sentence",
      ["See it. [the link](https://x", ".y/z) now."],
      MARKDOWN,
      ["See it. ", "the link now."],
    ],
    ["bold words", ["This is **bo", "ld** text."], MARKDOWN, ["This is ", "bold text."]],
    ["a fence that opens", ["Look.\n\n``", "`js\nfoo()\n```\n\nDone."], CODE, ["Look.\n\n", "Done."]],
    ["a fence's first line", ["Look.\n\n```j", "s\nfoo()\n```\n\nDone."], CODE, ["Look.\n\n", "Done."]],
    ["a fence that closes", ["Look.\n\n```js\nfoo()\n``", "`\n\nDone."], CODE, ["Look.\n\n", "Done."]],
    ["an address", ["See https://exam", "ple.com/a now."], URLS, ["See ", "example dot com now."]],
    ["an address at a dot", ["See https://example.", "com/a now."], URLS, ["See ", "example dot com now."]],
    ["a word that begins as a rule", ["We like SQL", "ite today."], RULES, ["We like ", "SQLite today."]],
    ["a rule's words", ["We live in New Yo", "rk now."], RULES, ["We live in ", "N Y now."]],
    ["a match that gets longer", ["In New York ", "City now."], RULES, ["In ", "the city now."]],
    ["a match that may go on", ["We live in New York", " now."], RULES, ["We live in ", "N Y now."]],
    [
      "an address whose end may begin a rule's words",
      ["See www.a.com ", "today."],
      { ...URLS, replacements: [{ from: "com now", to: "x" }] },
      ["See ", "a dot com today."],
    ],
    ["a match with a mark in it", ["We hear AC/", "DC now."], RULES, ["We hear ", "ay see dee see now."]],
  ])("are spoken up to it, and it is said right: %s", (_name, tokens, options, expected) => {
    for (const gapMs of [300, 600, 1000]) {
      const { rig, send, stream, answering } = start();
      stream(tokens, gapMs, options);
      send({ type: "end" });
      answering.run(5000);
      const said = texts(rig);
      expect(said.join("").replace(/\s+/g, " ")).toBe(expected.join("").replace(/\s+/g, " "));
      if (gapMs > 300) expect(said.map((text) => text.trim())).toEqual(expected.map((text) => text.trim()));
    }
  });

  it.each<[string, string, object]>([
    ["an address", "https://exam", URLS],
    ["a link", "[the link of", MARKDOWN],
    ["a fence", "```js", CODE],
    ["code", "```js\nfoo() is it.\n``", CODE],
    ["a word that begins as a rule", "SQL", RULES],
  ])("and it is all there is: nothing is said, however long it takes: %s", (_name, token, options) => {
    const { rig, stream } = start();
    stream([token], 30_000, options);
    expect(texts(rig)).toEqual([]);
  });

  it.each<[string, string[], object, string]>([
    ["a fence", ["``", "`js\nfoo()\n```\n\nDone."], CODE, "Done."],
    ["a fence that closes", ["```\nfoo()\n``", "`\nDone."], CODE, "Done."],
    ["a link", ["[the li", "nk](https://x.y/z) now."], MARKDOWN, "the link now."],
    ["an address", ["https://exam", "ple.com/a now."], URLS, "example dot com now."],
    ["a rule", ["New Yo", "rk now."], RULES, "N Y now."],
  ])("for long, and nothing is lost of what follows: %s", (_name, tokens, options, expected) => {
    const { rig, send, stream, answering } = start();
    stream(tokens, 10_000, options);
    send({ type: "end" });
    answering.run(5000);
    expect(texts(rig).join("").trim()).toBe(expected);
  });

  it.each<[string, string, object, string]>([
    ["a rule's words", "New York ", RULES, "N Y "],
    ["an address at the end", "See https://x.com/a.", URLS, "See x dot com."],
    ["emoji", "Well done 🎉 ", { clean: ["emoji"] }, "Well done "],
    ["a list's item", "- Milk ", MARKDOWN, "Milk "],
  ])("are spoken after a longer wait where they read as whole: %s", (_name, token, options, expected) => {
    const { rig, stream, answering } = start();
    stream([token], 1900, options);
    expect(texts(rig).join("")).not.toBe(expected);
    answering.run(200);
    expect(texts(rig).join("")).toBe(expected);
  });

  it.each<[string, string, object]>([
    ["a full stop", "We will see you there.", URLS],
    ["a colon", "Here is the list:", URLS],
    ["an exclamation mark", "That is great!", MARKDOWN],
  ])("are not cut before a sentence's last word: %s", (_name, token, options) => {
    const { rig, stream } = start();
    stream([token], 600, options);
    expect(texts(rig)).toEqual([token]);
  });

  it("while their speaker was asked to pause are settled: it cannot send what would decide", () => {
    const { rig, stream, listener } = start({ creditChars: 100 });
    stream([`[${"word ".repeat(40)}`], 5000, MARKDOWN);
    expect(listener.eventsOf("paused")).toHaveLength(1);
    expect(texts(rig).join("")).toMatch(/^\[word /);
  });
});

describe("the watch", () => {
  it.each([
    ["idle", (_: ReturnType<typeof start>) => undefined],
    ["interrupted", ({ send }: ReturnType<typeof start>) => send({ type: "interrupt" })],
    ["cancelled", ({ send }: ReturnType<typeof start>) => send({ type: "cancel" })],
    [
      "ended",
      ({ send, answering }: ReturnType<typeof start>) => {
        send({ type: "end" });
        answering.run(3000);
      },
    ],
  ])("leaves no timer when %s", (_name, settle) => {
    const session = start({ resumeMs: 0, textIdleMs: 2000 });
    session.stream(["I am go"], 0);
    settle(session);
    session.answering.run(5000);
    expect(session.rig.clock.pending).toBe(0);
  });

  it("leaves no timer of its own when the session closes", () => {
    const { rig, session, participant, stream } = start();
    stream(["I am go"], 0);
    expect(rig.clock.pending).toBe(1);
    session.leave(participant);
    rig.clock.advance(1000);
    expect(session.isClosed).toBe(true);
    expect(rig.clock.pending).toBe(0);
  });

  it("does bounded work for an open text that never goes on", () => {
    const { rig, stream } = start();
    const timers = vi.spyOn(rig.clock, "at");
    stream(["Nonsens"], 0);
    rig.clock.advance(600_000);
    expect(timers.mock.calls.length).toBeLessThan(20);
    expect(rig.requests).toHaveLength(0);
  });

  it("does not run where nobody listens", () => {
    const rig = createRig({ textIdleMs: 1e9 });
    const speaker = rig.join("role=speaker");
    speaker.send({ type: "text", text: "I am go", voice_id: VOICE });
    rig.clock.advance(10_000);
    expect(rig.clock.pending).toBe(0);
    expect(rig.counters.stallCuts).toBe(0);
    rig.join("role=listener&format=ulaw_8000");
    rig.clock.advance(10_000);
    expect(texts(rig)).toEqual(["I am "]);
  });
});
