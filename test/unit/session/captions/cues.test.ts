import { describe, expect, it } from "vitest";
import type { CueEvent } from "../../../../src/protocol/events.ts";
import type { MemoryListener } from "../../../helpers/memory-listener.ts";
import { countingUlaw, createRig, evenAlignment } from "../../../helpers/session-rig.ts";
import { Answering, type Manner, requestAt, SPLICES, toneOf, VOICE, wordsOf } from "../scripted-speech.ts";

const QUERY = "format=ulaw_8000&events=cues,words";

function start(settings: Parameters<typeof createRig>[0] = {}, query = QUERY, manner: Manner = {}) {
  const rig = createRig({ stallMs: 1e6, textIdleMs: 1e9, ...settings });
  return { rig, ...rig.join(query), answering: new Answering(rig, { msPerChar: 40, ...manner }) };
}

function wordsOfCues(listener: MemoryListener) {
  return listener.eventsOf("cue").flatMap((cue) => cue.lines.flatMap((line) => line.words));
}

function shown(cues: readonly CueEvent[]): string[] {
  return cues.map((cue) => cue.lines.map((line) => line.text).join("|"));
}

const TEXT =
  "The first sentence has a few words in it. Then comes a second, longer one, which goes on and on until the line is full. End";

describe("cues", () => {
  it("have every word with its times and offsets, in order, and never overlap", () => {
    const { send, listener, answering } = start();
    send({ type: "speak", text: TEXT, voice_id: VOICE, utterance_id: "u" });
    answering.run(8000);
    const cues = listener.eventsOf("cue");
    expect(cues.length).toBeGreaterThan(1);
    expect(wordsOfCues(listener)).toEqual(wordsOf(listener));
    cues.forEach((cue, index) => {
      expect(cue.utterance_id).toBe("u");
      expect(cue.lines.length).toBeLessThanOrEqual(2);
      for (const line of cue.lines) expect(line.text.length).toBeLessThanOrEqual(42);
      expect(TEXT.slice(cue.start, cue.end)).toContain(cue.lines[0]?.words[0]?.text);
      expect(cue.start_ms).toBeLessThan(cue.end_ms);
      expect(cue.start_ms).toBeGreaterThanOrEqual(cues[index - 1]?.end_ms ?? 0);
      expect(cue.start_ms).toBeLessThanOrEqual(cue.lines[0]?.words[0]?.start_ms ?? 0);
    });
    expect(shown(cues).join(" ").replaceAll("|", " ")).toBe(TEXT);
  });

  it("show a long run of blanks between two words as one, also around a tag", () => {
    const { send, listener, answering } = start({ maxTextChars: 10_000 }, QUERY, { msPerChar: 1 });
    const blanks = " ".repeat(4980);
    send({ type: "speak", text: `a${blanks}<i> b${blanks}</i>!`, voice_id: VOICE });
    answering.run(15_000);
    expect(shown(listener.eventsOf("cue")).join(" ")).toBe("a b!");
  });

  it("come with events=cues only", () => {
    const { rig, send, listener, answering } = start({}, "format=ulaw_8000&events=words");
    const other = rig.join("format=none&events=cues");
    send({ type: "speak", text: "Hello there.", voice_id: VOICE });
    answering.run(3000);
    expect(listener.eventsOf("cue")).toEqual([]);
    expect(shown(other.listener.eventsOf("cue"))).toEqual(["Hello there."]);
    expect(other.listener.eventsOf("words")).toEqual([]);
  });

  it("report code points where offsets=cp", () => {
    const { send, listener, answering } = start({}, `${QUERY}&offsets=cp`);
    send({ type: "speak", text: "😀😀 Hello", voice_id: VOICE });
    answering.run(3000);
    expect(wordsOfCues(listener).at(-1)).toMatchObject({ text: "Hello", start: 3, end: 8 });
    expect(listener.eventsOf("cue").at(-1)).toMatchObject({ end: 8 });
  });

  it("come before they are heard, when all has come", () => {
    const { send, listener, answering } = start({ aheadMs: 10_000 });
    send({ type: "speak", text: "A short one. Another, somewhat longer one.", voice_id: VOICE });
    answering.run(5000);
    let frames = 0;
    for (const item of listener.sent) {
      if (item.frame !== undefined) frames += 1;
      // Frames are sent 200 ms ahead, and one.
      if (item.event?.type === "cue") expect(item.event.start_ms).toBeGreaterThanOrEqual(frames * 20 - 220);
    }
    expect(listener.eventsOf("cue").length).toBeGreaterThan(0);
  });

  it("have nothing of a text that has not come", () => {
    const { send, listener, answering } = start();
    send({ type: "text", text: "Hello there. ", voice_id: VOICE });
    send({ type: "flush" });
    answering.run(3000);
    expect(shown(listener.eventsOf("cue")).join(" ")).not.toMatch(/again/);
    send({ type: "text", text: "And again." });
    send({ type: "end" });
    answering.run(3000);
    expect(shown(listener.eventsOf("cue")).join(" ")).toBe("Hello there. And again.");
  });

  it("none is lost when the text ends after all of it was spoken", () => {
    const { send, listener, answering } = start();
    send({ type: "text", text: "Hello there.", voice_id: VOICE });
    send({ type: "flush" });
    answering.run(3000);
    send({ type: "end" });
    answering.run(1000);
    expect(shown(listener.eventsOf("cue"))).toEqual(["Hello there."]);
    const last = listener.events.filter((event) => event.type === "cue" || event.type === "utterance.done");
    expect(last.map((event) => event.type)).toEqual(["cue", "utterance.done"]);
  });

  it("cues of what is spoken are not held back while the client thinks of more", () => {
    const { send, listener, answering } = start();
    send({ type: "text", text: "Hello there.", voice_id: VOICE });
    send({ type: "flush" });
    answering.run(1000);
    expect(shown(listener.eventsOf("cue"))).toEqual(["Hello there."]);
  });

  it("follow the words over segments, and have each word once", () => {
    const { send, listener, answering } = start({ ...SPLICES }, QUERY, { leadMs: 200, tailMs: 200 });
    for (const token of TEXT.match(/\S+\s*/g) ?? []) send({ type: "text", text: token, voice_id: VOICE });
    send({ type: "end" });
    answering.run(10_000);
    expect(wordsOfCues(listener)).toEqual(wordsOf(listener));
    const cues = listener.eventsOf("cue");
    cues.forEach((cue, index) => {
      expect(cue.start_ms).toBeGreaterThanOrEqual(cues[index - 1]?.end_ms ?? 0);
    });
  });

  it("cues of utterances that follow one another do not overlap", () => {
    const { send, listener, answering } = start();
    for (const text of ["Yes.", "No.", "Maybe so."]) send({ type: "speak", text, voice_id: VOICE });
    answering.run(5000);
    const cues = listener.eventsOf("cue");
    expect(shown(cues)).toEqual(["Yes.", "No.", "Maybe so."]);
    expect(wordsOfCues(listener)).toEqual(wordsOf(listener));
    cues.forEach((cue, index) => {
      expect(cue.start_ms).toBe(cue.lines[0]?.words[0]?.start_ms);
      expect(cue.start_ms).toBeGreaterThanOrEqual(cues[index - 1]?.end_ms ?? 0);
    });
  });

  it.each([
    ["around words", "So **very** good, is *it* not?", ["So very good, is it not?"]],
    ["a heading", "# Title\n\nText", ["Title. Text"]],
    ["a link", "See [the manual](https://x.example) now", ["See the manual now"]],
  ])("show no Markdown signs %s", (_name, text, expected) => {
    const { send, listener, answering } = start();
    send({ type: "speak", text, voice_id: VOICE, clean: ["markdown", "urls"] });
    answering.run(4000);
    const lines = shown(listener.eventsOf("cue")).join(" ").replaceAll("|", " ").replaceAll(/\s+/g, " ");
    expect([lines]).toEqual(expected);
    for (const word of wordsOfCues(listener)) {
      expect(text.slice(word.start, word.end).replaceAll("*", "")).toBe(word.text.replaceAll("*", ""));
    }
  });

  it.each([
    ["a full stop behind emphasis, at the end", "This is **bold**.", ["This is bold."]],
    ["marks behind emphasis, in the middle", "It is **bold**. *Why*? No.", ["It is bold. Why? No."]],
    [
      "a mark behind a link",
      "Read the [guide](https://x.example/a), then stop.",
      ["Read the guide, then stop."],
    ],
    ["brackets and quotes", 'So (**very**) "*good*", *he* said.', ['So (very) "good", he said.']],
    ["emphasis that holds its mark", "**Note:** it is *late!* Go.", ["Note: it is late! Go."]],
    ["part of a word", "**a**b and **c**, 2*3*4.", ["ab and c, 2*3*4."]],
    [
      "headings and lists, with the stops that are said",
      "# Title\n\n- one\n- two\n\nEnd.",
      ["Title. one. two. End."],
    ],
    ["a table, with the commas that are said", "| a | b |\n|---|---|\n| c | d |\n", ["a, b. c, d."]],
    ["emoji", "Hi 😀! There 😀 you go 😀.", ["Hi! There you go."]],
    ["code", "Set `x` to `1`.", ["Set x to 1."]],
    ["Chinese", "这是**粗体**。看[指南](https://x.example),好。", ["这是粗体。看指南,好。"]],
    ["Japanese", "これは**太字**です、*次*も。", ["これは太字です、次も。"]],
    ["Arabic", "هذا **عريض**، نعم **هنا**؟", ["هذا عريض، نعم هنا؟"]],
    ["Hindi", "यह **मोटा** है। *हाँ*।", ["यह मोटा है। हाँ।"]],
    [
      "French, with its own spaces",
      "Est-ce **bien** ? Oui : « **non** » !",
      ["Est-ce bien ? Oui : « non » !"],
    ],
  ])("of cleaned text read as if it had been written so: %s", (_name, text, expected) => {
    const { send, listener, answering } = start();
    send({ type: "speak", text, voice_id: VOICE, clean: ["markdown", "urls", "emoji", "code"] });
    answering.run(8000);
    expect([shown(listener.eventsOf("cue")).join(" ").replaceAll("|", " ")]).toEqual(expected);
    const places = wordsOfCues(listener).map(({ start, end }) => [start, end]);
    expect(places).toEqual(wordsOf(listener).map(({ start, end }) => [start, end]));
  });

  it("come the same however the text comes", () => {
    const text = "# A title\n\nThis is **bold**. Read the [guide](https://x.example/a), *then* stop. **End**";
    const shownOf = (pieces: readonly string[]): string => {
      const { send, listener, answering } = start();
      for (const piece of pieces) {
        send({ type: "text", text: piece, voice_id: VOICE, clean: ["markdown"] });
        answering.run(20);
      }
      send({ type: "end" });
      answering.run(8000);
      return shown(listener.eventsOf("cue")).join(" ").replaceAll("|", " ");
    };
    expect(shownOf([text])).toBe("A title. This is bold. Read the guide, then stop. End");
    expect(shownOf([...text])).toBe("A title. This is bold. Read the guide, then stop. End");
  });

  it.each([
    ["dropped for a model that would read it", "eleven_multilingual_v2"],
    ["kept for a model that acts on it", "eleven_v3"],
  ])("leave no space where an audio tag stood: %s", (_name, model_id) => {
    const { send, listener, answering } = start();
    const text = "Oh [laughs], you [sighs] did [gasps]. Well [laughs] [softly]!";
    send({ type: "speak", text, voice_id: VOICE, model_id });
    answering.run(8000);
    expect(shown(listener.eventsOf("cue")).join(" ").replaceAll("|", " ")).toBe("Oh, you did. Well!");
  });

  it("show a word without what a rule takes out of it", () => {
    const { send, listener, answering } = start();
    send({
      type: "speak",
      text: "An un~believ~able thing.",
      voice_id: VOICE,
      replacements: [{ from: "~", to: "", whole_word: false }],
    });
    answering.run(4000);
    expect(shown(listener.eventsOf("cue"))).toEqual(["An unbelievable thing."]);
    expect(wordsOfCues(listener)[1]).toMatchObject({ text: "unbelievable", start: 3, end: 17 });
  });

  it("come with the speech of an utterance behind a pause, though the last one would still be shown", () => {
    const { send, listener, answering } = start();
    for (const text of ["Yes.", "No."]) {
      send({ type: "speak", text, voice_id: VOICE });
      answering.run(5000);
    }
    const cues = listener.eventsOf("cue");
    const [done] = listener.eventsOf("utterance.done");
    expect(shown(cues)).toEqual(["Yes.", "No."]);
    expect(cues[0]?.end_ms).toBeGreaterThan(done?.end_ms ?? 0);
    expect(cues[1]?.start_ms).toBe(done?.end_ms);
    expect(cues[1]?.start_ms).toBe(cues[1]?.lines[0]?.words[0]?.start_ms);
  });

  it("show what the client wrote where it is spoken in other words", () => {
    const { send, listener, answering } = start();
    send({
      type: "speak",
      text: "My VW runs.",
      voice_id: VOICE,
      replacements: [{ from: "VW", to: "people's car" }],
    });
    answering.run(4000);
    expect(shown(listener.eventsOf("cue"))).toEqual(["My VW runs."]);
  });

  it("show nothing of what an interruption cut off", () => {
    const { send, listener, answering } = start();
    send({ type: "speak", text: TEXT, voice_id: VOICE });
    answering.run(800);
    send({ type: "interrupt" });
    answering.run(5000);
    expect(shown(listener.eventsOf("cue")).join(" ")).not.toMatch(/End/);
  });
});

describe("normalized events", () => {
  const normalized = (text: string, fromMs = 0) => evenAlignment(text, 20, fromMs);

  it("have the upstream's own characters, on the timeline", () => {
    const rig = createRig({ ...SPLICES });
    const { send, listener } = rig.join("format=ulaw_8000&events=normalized,characters");
    const without = rig.join("format=ulaw_8000&events=characters");
    send({ type: "speak", text: "Pay 12 now", voice_id: VOICE });
    const { audio } = toneOf("ulaw_8000", "Pay twelve now", { leadMs: 200, tailMs: 100 });
    requestAt(rig, 0).handlers.head({});
    requestAt(rig, 0).handlers.chunk({
      audio,
      alignment: evenAlignment("Pay 12 now", 28, 200),
      normalizedAlignment: normalized("Pay twelve now", 200),
      voiceSegments: [],
    });
    requestAt(rig, 0).handlers.end();
    rig.clock.advance(2000);
    const [event] = listener.eventsOf("normalized");
    expect(event?.characters.join("")).toBe("Pay twelve now");
    expect(event?.start_ms[0]).toBe(20);
    expect(event?.end_ms.at(-1)).toBe(300);
    expect(listener.eventsOf("normalized")).toHaveLength(1);
    expect(
      listener
        .eventsOf("characters")
        .map((emitted) => emitted.characters.join(""))
        .join(""),
    ).toBe("Pay 12 now");
    expect(without.listener.eventsOf("normalized")).toEqual([]);
  });

  it("never run backwards over chunks, and a text without words has none", () => {
    const rig = createRig();
    const { send, listener } = rig.join("format=ulaw_8000&events=normalized");
    send({ type: "speak", text: "Hello", voice_id: VOICE });
    requestAt(rig, 0).handlers.head({});
    for (const [text, fromMs] of [
      ["Hel", 0],
      ["lo", 30],
      ["", 0],
    ] as const) {
      requestAt(rig, 0).handlers.chunk({
        audio: countingUlaw(50),
        alignment: null,
        normalizedAlignment: normalized(text, fromMs),
        voiceSegments: [],
      });
    }
    requestAt(rig, 0).handlers.end();
    rig.clock.advance(2000);
    const events = listener.eventsOf("normalized");
    expect(events.flatMap((event) => event.characters).join("")).toBe("Hello");
    const times = events.flatMap((event) =>
      event.start_ms.flatMap((ms, index) => [ms, event.end_ms[index] ?? 0]),
    );
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(Math.max(...times)).toBeLessThanOrEqual(150);
  });
});
