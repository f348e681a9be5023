import { describe, expect, it } from "vitest";
import { createRig } from "../../../helpers/session-rig.ts";
import { Answering, answer, requestAt, texts, VOICE, wordsOf } from "../scripted-speech.ts";

const ALL = ["markdown", "emoji", "urls", "code"];

function start(
  query = "format=ulaw_8000&events=characters,words,cues",
  settings: Parameters<typeof createRig>[0] = {},
) {
  const rig = createRig({ stallMs: 1e6, textIdleMs: 1e9, ...settings });
  return { rig, ...rig.join(query), answering: new Answering(rig, { msPerChar: 20 }) };
}

describe("what the upstream is asked to say", () => {
  it.each([
    ["Markdown", "# Title\n\nSome **bold** and *fine* text.", { clean: ["markdown"] }, /[#*]/],
    ["emoji", "Well done 🎉👏🏽 you", { clean: ["emoji"] }, /[\u{1f389}\u{1f44f}]/u],
    ["an address", "See https://example.com/a?b=c for more", { clean: ["urls"] }, /https|\?b=c/],
    ["code", "Call `doIt()` or\n```js\nlet x = 1;\n```\nnow", { clean: ["code"] }, /let x|```/],
    ["a link", "Read [the manual](https://example.com) now", { clean: ["markdown"] }, /\]\(|https/],
    ["a rule", "VW and vw", { replacements: [{ from: "VW", to: "voicewire", ignore_case: true }] }, /VW|vw/],
  ])("has no %s", (_name, text, options, gone) => {
    const whole = start();
    whole.send({ type: "speak", text, voice_id: VOICE, ...options });
    const said = texts(whole.rig).join("");
    expect(said).not.toMatch(gone);
    expect(said).toMatch(/[A-Za-z]{2}/);
    const tokens = start();
    for (const token of text.match(/.{1,3}/gsu) ?? [])
      tokens.send({ type: "text", text: token, voice_id: VOICE, utterance_id: "t", ...options });
    tokens.send({ type: "end" });
    tokens.answering.run(5000);
    expect(texts(tokens.rig).join("")).toBe(said);
  });

  it("has everything without cleaning", () => {
    const { rig, send } = start();
    send({ type: "speak", text: "**VW** 🎉 `x` https://example.com", voice_id: VOICE });
    expect(texts(rig)).toEqual(["**VW** 🎉 `x` https://example.com"]);
  });

  it("keeps tags of the speech itself", () => {
    const { rig, send } = start();
    const text = 'Wait <break time="1s"/> **now** [laughs]';
    send({ type: "speak", text, voice_id: VOICE, clean: ALL, model_id: "eleven_v3" });
    expect(texts(rig)).toEqual(['Wait <break time="1s"/> now [laughs]']);
  });
});

describe("times and offsets of a text that was cleaned", () => {
  const text = "So **very** good 🎉 is VW, yes";
  const options = { clean: ALL, replacements: [{ from: "VW", to: "voicewire" }] };

  it.each([
    ["utf16", (offset: number) => offset],
    ["cp", (offset: number) => [...text.slice(0, offset)].length],
  ])("are the client's own: %s", (offsets, unit) => {
    const { rig, send, listener, answering } = start(
      `format=ulaw_8000&events=characters,words&offsets=${offsets}`,
    );
    send({ type: "speak", text, voice_id: VOICE, ...options });
    answering.run(3000);
    expect(texts(rig)[0]).toContain("voicewire");
    const words = ["So", "very", "good", "is", "VW", "yes"];
    expect(wordsOf(listener).map((word) => [word.text, word.start, word.end])).toEqual(
      words.map((word) => [word, unit(text.indexOf(word)), unit(text.indexOf(word) + word.length)]),
    );
    const characters = listener.eventsOf("characters");
    expect(characters.map((event) => event.characters.join("")).join("")).toBe(text);
    expect(characters[0]?.start).toBe(0);
    expect(characters.at(-1)?.end).toBe(unit(text.length));
    characters.forEach((event, index) => {
      expect(event.start).toBe(characters[index - 1]?.end ?? 0);
    });
    const said = texts(rig)[0] ?? "";
    const vw = wordsOf(listener)[4];
    expect(vw?.start_ms).toBe(said.indexOf("voicewire") * 20);
    expect(vw?.end_ms).toBe((said.indexOf("voicewire") + 9) * 20);
    expect(listener.eventsOf("utterance.done")).toMatchObject([
      { outcome: "done", characters_spoken: text.length, segments: [{ start: 0, end: unit(text.length) }] },
    ]);
  });

  it("over segments no character is emitted twice", () => {
    const { send, listener, answering } = start();
    const sent = `${"Some **bold words** are here. ".repeat(10)}VW ends. **`;
    for (const token of sent.match(/.{1,7}/gsu) ?? [])
      send({
        type: "text",
        text: token,
        voice_id: VOICE,
        utterance_id: "t",
        clean: ["markdown"],
        replacements: [{ from: "VW", to: "One. Two. Three" }],
      });
    send({ type: "end" });
    answering.run(30_000);
    const characters = listener.eventsOf("characters");
    characters.forEach((event, index) => {
      expect(event.start).toBe(characters[index - 1]?.end ?? 0);
      expect(event.characters.join("")).toBe(sent.slice(event.start, event.end));
    });
    expect(wordsOf(listener).map((word) => word.text)).toEqual(sent.match(/[A-Za-z]+/g));
    const { segments = [] } = listener.eventsOf("utterance.done")[0] ?? {};
    expect(segments.length).toBeGreaterThan(2);
  });

  it.each<[string, string, { from: string; to: string }]>([
    ["a sentence's end", "The VW runs and runs. It is old.", { from: "VW", to: "One. Two. Three" }],
    [
      "a clause",
      `${"word ".repeat(14)}VW ${"word ".repeat(14)}`,
      { from: "VW", to: "so, then, now, and more" },
    ],
    [
      "a word, where a piece gets too long",
      `${"word ".repeat(18)}VW ${"word ".repeat(20)}`,
      {
        from: "VW",
        to: "the people's car of old",
      },
    ],
    ["a paragraph", "The VW runs. It is old.", { from: "VW", to: "One.\n\nTwo" }],
  ])("no piece begins or ends inside what is said for another: %s", (_name, sent, rule) => {
    for (const isWhole of [false, true]) {
      const { rig, send, listener, answering } = start();
      const text = isWhole ? sent.padStart(800 + 10, "word ") : sent;
      const options = { voice_id: VOICE, utterance_id: "u", replacements: [rule] };
      if (isWhole) send({ type: "speak", text, ...options });
      else {
        send({ type: "text", text, ...options });
        send({ type: "end" });
      }
      answering.run(60_000, 20);
      const { segments = [] } = listener.eventsOf("utterance.done")[0] ?? {};
      expect(segments.map(({ start }) => start)).toEqual([0, ...segments.slice(0, -1).map(({ end }) => end)]);
      expect(segments.length).toBeGreaterThan(1);
      expect(texts(rig).filter((piece) => piece.includes(rule.to))).toHaveLength(1);
    }
  });

  it("a receipt is in the client's text", () => {
    const { send, listener, answering } = start();
    send({ type: "speak", text, voice_id: VOICE, utterance_id: "u", ...options });
    // "So very good": 12 characters of 20 ms.
    answering.run(250);
    send({ type: "interrupt" });
    const [cut] = listener.eventsOf("interrupted");
    expect(`${cut?.heard.text}${cut?.unheard_text}`).toBe(text);
    expect(cut?.heard.text).toMatch(/^So \*\*very\*\* good?/);
    expect(cut?.heard.end).toBe(cut?.heard.text.length);
  });

  it("what was heard in part is not in the receipt", () => {
    const { rig, send, listener, answering } = start();
    send({ type: "speak", text: "My VW runs", voice_id: VOICE, ...options });
    // "My voi" of "My voicewire runs".
    answering.run(120);
    send({ type: "interrupt" });
    expect(texts(rig)).toEqual(["My voicewire runs"]);
    expect(listener.eventsOf("interrupted")[0]?.heard.text.trim()).toBe("My");
  });

  it("it goes on with the client's offsets when it is resumed", () => {
    const { send, listener, answering } = start();
    send({ type: "speak", text, voice_id: VOICE, utterance_id: "u", ...options });
    answering.run(250);
    send({ type: "interrupt" });
    const before = listener.eventsOf("words").length;
    send({ type: "resume" });
    answering.run(3000);
    const [resumed] = listener.eventsOf("utterance.resumed");
    const words = listener
      .eventsOf("words")
      .slice(before)
      .flatMap((event) => event.words);
    expect(words[0]?.start).toBe(resumed?.start);
    for (const word of words) expect(text.slice(word.start, word.end)).toBe(word.text);
    expect(words.map((word) => word.text).slice(-3)).toEqual(["is", "VW", "yes"]);
  });
});

describe("whose options count", () => {
  const sent = "**VW**";
  const rules = [{ from: "VW", to: "voicewire" }];

  it.each<[string, object, object, object, string]>([
    ["the gateway's", { clean: ["markdown"], replacements: rules }, {}, {}, "voicewire"],
    [
      "the connection's",
      { clean: [], replacements: [] },
      { clean: ["markdown"], replacements: rules },
      {},
      "voicewire",
    ],
    [
      "the command's",
      { clean: ["markdown"], replacements: [] },
      {},
      { clean: [], replacements: rules },
      "**voicewire**",
    ],
    ["each by itself", { clean: ["markdown"], replacements: [] }, { replacements: rules }, {}, "voicewire"],
    [
      "none where a command says so",
      { clean: ["markdown"], replacements: rules },
      {},
      { clean: [], replacements: [] },
      "**VW**",
    ],
  ])("%s", (_name, gateway, connection, command, expected) => {
    const session = start("format=ulaw_8000", { textDefaults: gateway as never });
    if (Object.keys(connection).length > 0) session.send({ type: "configure", ...connection });
    session.send({ type: "speak", text: sent, voice_id: VOICE, ...command });
    session.send({ type: "text", text: sent, voice_id: VOICE, ...command });
    session.send({ type: "end" });
    session.answering.run(2000);
    expect(texts(session.rig)).toEqual([expected, expected]);
  });

  it("a configure of text options alone keeps the listener where it is", () => {
    const { send, listener, answering } = start("format=ulaw_8000");
    send({ type: "speak", text: "A longer thing to say here", voice_id: VOICE });
    answering.run(200);
    send({ type: "configure", clean: ["markdown"] });
    answering.run(2000);
    expect(listener.eventsOf("configured")).toHaveLength(1);
    expect(listener.frames).toHaveLength(26);
    expect(listener.eventsOf("gap")).toEqual([]);
  });

  it("another connection's options stay its own", () => {
    const { rig, send, answering } = start("format=ulaw_8000");
    const other = rig.join("format=none");
    send({ type: "configure", clean: ["markdown"] });
    other.send({ type: "speak", text: "**a**", voice_id: VOICE });
    answering.run(1000);
    expect(texts(rig)).toEqual(["**a**"]);
  });
});

describe("a text that has nothing left", () => {
  it.each([
    ["emoji", "🎉🎉", { clean: ["emoji"] }],
    ["code", "```\nlet x\n```", { clean: ["code"] }],
    ["a rule to nothing", "um", { replacements: [{ from: "um", to: "" }] }],
  ])("ends done with nothing said: %s", (_name, text, options) => {
    for (const isTokens of [false, true]) {
      const { rig, send, listener, answering } = start();
      if (isTokens) {
        send({ type: "text", text, voice_id: VOICE, utterance_id: "e", ...options });
        send({ type: "end" });
      } else send({ type: "speak", text, voice_id: VOICE, utterance_id: "e", ...options });
      send({ type: "speak", text: "Next.", voice_id: VOICE });
      answering.run(2000);
      expect(texts(rig)).toEqual(["Next."]);
      expect(listener.eventsOf("utterance.done")).toMatchObject([
        {
          utterance_id: "e",
          outcome: "done",
          start_ms: 0,
          end_ms: 0,
          characters_spoken: 0,
          latency: null,
          segments: [],
        },
        { outcome: "done" },
      ]);
    }
  });

  it("waits its turn behind others", () => {
    const { rig, send, listener } = start();
    send({ type: "speak", text: "First.", voice_id: VOICE, utterance_id: "a" });
    send({ type: "speak", text: "🎉", voice_id: VOICE, utterance_id: "b", clean: ["emoji"] });
    expect(listener.eventsOf("utterance.done")).toEqual([]);
    answer(rig, 0);
    rig.clock.advance(2000);
    expect(requestAt(rig, 0).isAborted).toBe(false);
    expect(listener.eventsOf("utterance.done").map((event) => event.utterance_id)).toEqual(["a", "b"]);
  });
});

describe("directions to the voice", () => {
  const text = "[softly] Oh well, [laughs] that is [1] fine.";
  const spokenWords = ["Oh", "well", "that", "is", "1", "fine"];

  it.each([
    ["eleven_flash_v2_5", "Oh well, that is [1] fine."],
    [undefined, "Oh well, that is [1] fine."],
    ["eleven_v3", text],
    ["eleven_v4_turbo", text],
  ])("model %s is asked for %j, and nobody gets them as words", (model_id, said) => {
    const whole = start();
    const options = { voice_id: VOICE, ...(model_id === undefined ? {} : { model_id }) };
    whole.send({ type: "speak", text, ...options });
    const tokens = start();
    for (const token of text.match(/.{1,3}/gsu) ?? [])
      tokens.send({ type: "text", text: token, utterance_id: "t", ...options });
    tokens.send({ type: "end" });
    for (const { rig, answering, listener } of [whole, tokens]) {
      answering.run(5000);
      expect(texts(rig).join("")).toBe(said);
      expect(wordsOf(listener).map((word) => [word.text, word.start])).toEqual(
        spokenWords.map((word) => [word, text.indexOf(word)]),
      );
      const characters = listener.eventsOf("characters").flatMap((event) => event.characters);
      expect(characters.join("")).toBe(text);
      const lines = listener.eventsOf("cue").flatMap((cue) => cue.lines);
      expect(lines.map((line) => line.text).join(" ")).toBe("Oh well, that is [1] fine.");
      expect(lines.flatMap((line) => line.words.map((word) => word.text))).toEqual(spokenWords);
    }
  });

  it("directions are those of the model that the gateway asks for where nobody names one", () => {
    const { rig, send } = start(undefined, { model: "eleven_v3" });
    send({ type: "speak", text, voice_id: VOICE });
    expect(texts(rig)).toEqual([text]);
  });

  it("directions of a dialogue are its own", () => {
    const { rig, send, answering, listener } = start();
    send({ type: "dialogue", inputs: [{ text, voice_id: VOICE }] });
    expect(texts(rig)).toEqual([text]);
    answering.run(5000);
    expect(wordsOf(listener).map((word) => word.text)).toEqual(spokenWords);
  });

  it("that come while what is before them is being heard leave its times and offsets as they are", () => {
    const { rig, send, listener } = start();
    const answering = new Answering(rig, { msPerChar: 50, chunkMs: 100 });
    const [first, rest] = ["Oh well, that is fine. ", "[laughs] So be it."];
    send({ type: "text", text: first, voice_id: VOICE, utterance_id: "t" });
    send({ type: "flush" });
    answering.run(300);
    send({ type: "text", text: rest });
    send({ type: "end" });
    answering.run(5000);
    expect(texts(rig)).toEqual([first, "So be it."]);
    const whole = first + rest;
    expect(wordsOf(listener).map((word) => [word.text, whole.slice(word.start, word.end)])).toEqual(
      ["Oh", "well", "that", "is", "fine", "So", "be", "it"].map((word) => [word, word]),
    );
    let at = 0;
    for (const event of listener.eventsOf("characters")) {
      expect([event.start, event.characters.join("")]).toEqual([at, whole.slice(at, event.end)]);
      at = event.end;
    }
    expect(at).toBe(whole.length);
  });

  it("alone are done with nothing said", () => {
    const { rig, send, answering, listener } = start();
    send({ type: "speak", text: "[laughs]", voice_id: VOICE });
    answering.run(500);
    expect(texts(rig)).toEqual([]);
    expect(listener.eventsOf("utterance.done")).toMatchObject([{ outcome: "done", characters_billed: null }]);
  });
});
