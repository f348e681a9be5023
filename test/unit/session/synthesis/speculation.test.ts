import { describe, expect, it } from "vitest";
import { Speculation } from "../../../../src/session/synthesis/speculation.ts";
import { createRig } from "../../../helpers/session-rig.ts";
import { Answering, answer, requestAt, speechAt, textOf, texts, VOICE } from "../scripted-speech.ts";

const SENTENCE = "This sentence has exactly fifty characters in it. ";

function start(settings: Parameters<typeof createRig>[0] = {}, query = "format=ulaw_8000") {
  const rig = createRig({ maxTextChars: 100_000, aheadMs: 60_000, creditChars: 1e6, ...settings });
  return { rig, ...rig.join(query) };
}

/** A text in tokens: segments of one sentence, then of more. */
function saySentences(send: (message: object) => void, count: number, id = "u"): string {
  for (let index = 0; index < count; index += 1)
    send({ type: "text", text: SENTENCE, voice_id: VOICE, utterance_id: id });
  send({ type: "end", utterance_id: id });
  return SENTENCE.repeat(count);
}

describe("the budget for what is unheard", () => {
  it.each([
    ["ms", { speculateMs: 1500, speculateChars: 1e6 }],
    ["characters", { speculateMs: 1e6, speculateChars: 60 }],
    ["both", { speculateMs: 1500, speculateChars: 60 }],
  ])("holds at each request, and speech never runs dry: %s", (_name, settings) => {
    const { rig, send, listener } = start(settings);
    const answering = new Answering(rig, { msPerChar: 40, delayMs: 100 });
    const whole = saySentences(send, 12);
    let known = rig.requests.length;
    for (let ms = 0; ms < 40_000; ms += 10) {
      const heardMs = Math.max(0, rig.counters.framesSent * 20 - 200);
      answering.run(10, 10);
      if (rig.requests.length === known) continue;
      known = rig.requests.length;
      const asked = texts(rig).slice(0, -1).join("").length;
      expect(asked * 40 - heardMs).toBeLessThanOrEqual(settings.speculateMs + 100);
      expect(asked - heardMs / 40).toBeLessThanOrEqual(settings.speculateChars + 5);
    }
    expect(texts(rig).join("")).toBe(whole);
    expect(rig.requests.length).toBeGreaterThan(3);
    expect(rig.counters.underruns).toBe(0);
    expect(listener.eventsOf("utterance.done")).toMatchObject([
      { outcome: "done", end_ms: whole.length * 40 },
    ]);
  });

  it("says how much is in hand before the next is needed, and nothing of the first", () => {
    const { rig, send } = start();
    saySentences(send, 2, "a");
    answer(rig, 0, { msPerChar: 40 });
    rig.clock.advance(500);
    answer(rig, 1, { msPerChar: 40 });
    const [first, second] = rig.requests.map(({ request }) => request.aheadMs);
    expect(first).toBeUndefined();
    expect(second).toBeGreaterThan(0);
    expect(second).toBeLessThanOrEqual(2000);
  });

  it("says that the middle of an utterance is needed at once where nothing is in hand", () => {
    const { rig, send } = start();
    send({ type: "text", text: SENTENCE, voice_id: VOICE, utterance_id: "a" });
    rig.clock.advance(500);
    answer(rig, 0, { msPerChar: 40 });
    rig.clock.advance(2500);
    saySentences(send, 1, "a");
    expect(rig.requests.map(({ request }) => request.aheadMs)).toEqual([undefined, 0]);
  });

  it("0 and 0: the next is asked for only when all is heard", () => {
    const { rig, send, listener } = start({ speculateMs: 0, speculateChars: 0 });
    saySentences(send, 3);
    answer(rig, 0, { msPerChar: 40 });
    rig.clock.advance(1990);
    expect(rig.requests).toHaveLength(1);
    rig.clock.advance(60);
    expect(rig.requests).toHaveLength(2);
    answer(rig, 1, { msPerChar: 40 });
    rig.clock.advance(10_000);
    expect(listener.frames.length * 20).toBe(texts(rig).join("").length * 40);
  });

  it("an interruption finds no more unheard than the budget and one segment", () => {
    const { rig, send, listener } = start({ speculateMs: 1000, speculateChars: 1e6 });
    const answering = new Answering(rig, { msPerChar: 40, delayMs: 50 });
    saySentences(send, 12);
    answering.run(5000);
    send({ type: "interrupt" });
    const asked = texts(rig).join("").length;
    const heard = listener.eventsOf("interrupted")[0]?.heard.end ?? 0;
    const longest = Math.max(...texts(rig).map((text) => text.length));
    expect(heard).toBeGreaterThan(80);
    expect(asked - heard).toBeLessThanOrEqual(1000 / 40 + longest + 10);
    const before = rig.requests.length;
    answering.run(5000);
    expect(rig.requests.length).toBe(before);
  });

  it("what an interruption threw away does not count against what is said next", () => {
    const { rig, send } = start(
      { speculateMs: 60_000, speculateChars: 150 },
      "format=ulaw_8000&lead_ms=10000",
    );
    const answering = new Answering(rig, { msPerChar: 40 });
    saySentences(send, 4);
    answering.run(1000);
    send({ type: "interrupt" });
    const cut = rig.requests.length;
    saySentences(send, 6, "next");
    answering.run(200);
    // 50 characters, then 100: both within the budget at once.
    expect(rig.requests.length - cut).toBeGreaterThanOrEqual(2);
  });

  it("a burst listener hears as fast as it comes: nothing waits", () => {
    const { rig, send, listener } = start(
      { speculateMs: 0, speculateChars: 0 },
      "format=ulaw_8000&pace=burst",
    );
    const whole = saySentences(send, 8);
    for (let index = 0; index < rig.requests.length; index += 1) answer(rig, index, { msPerChar: 40 });
    expect(texts(rig).join("")).toBe(whole);
    expect(listener.frames.length).toBe((whole.length * 40) / 20);
  });

  it("goes on over the end of an utterance to the next one", () => {
    const { rig, send } = start({ speculateMs: 4000 });
    send({ type: "speak", text: SENTENCE, voice_id: VOICE });
    send({ type: "speak", text: "Next.", voice_id: VOICE });
    answer(rig, 0, { msPerChar: 40 });
    expect(texts(rig)).toEqual([SENTENCE, "Next."]);
  });
});

describe("Speculation", () => {
  it("counts what was asked for until it is heard, in part where it is being heard", () => {
    const speculation = new Speculation();
    const [first, second] = [speculation.ask(100), speculation.ask(50)];
    expect(speculation.unheardChars(0)).toBe(150);
    first.startTicks = 0;
    expect(speculation.unheardChars(500)).toBe(150);
    first.endTicks = 1000;
    expect(speculation.unheardChars(250)).toBe(125);
    expect(speculation.unheardChars(1000)).toBe(50);
    speculation.withdraw(second);
    expect(speculation.unheardChars(1000)).toBe(0);
  });
});

describe("what the upstream gets of the text around a segment", () => {
  const three = (command: object = {}) => {
    const session = start();
    session.send({ type: "text", text: "One is here. ", voice_id: VOICE, ...command });
    session.send({ type: "text", text: `${SENTENCE}${SENTENCE}` });
    session.send({ type: "text", text: SENTENCE.repeat(5) });
    session.send({ type: "end" });
    for (let index = 0; index < session.rig.requests.length; index += 1) {
      answer(session.rig, index, { msPerChar: 2 });
      session.rig.clock.advance(2000);
    }
    return session.rig;
  };

  it("the first has nothing before it, later ones the ids of those right before them", () => {
    const rig = three();
    expect(rig.requests.length).toBeGreaterThanOrEqual(3);
    expect(speechAt(rig, 0).previousText).toBeUndefined();
    expect(speechAt(rig, 0).previousRequestIds).toBeUndefined();
    expect(speechAt(rig, 1)).toMatchObject({ previousRequestIds: ["r0"] });
    expect(speechAt(rig, 2)).toMatchObject({ previousRequestIds: ["r0", "r1"] });
    expect(speechAt(rig, 1).previousText).toBeUndefined();
    expect(speechAt(rig, 1).nextText).toMatch(/^This sentence/);
  });

  it("a segment that is asked for ahead has the ids of those that are not heard yet", () => {
    const { rig, send } = start({ speculateMs: 1e6, speculateChars: 1e6 });
    saySentences(send, 12);
    for (let index = 0; index < rig.requests.length; index += 1) {
      answer(rig, index, { msPerChar: 20 });
      rig.clock.advance(1200);
    }
    rig.requests.forEach((_, index) => {
      if (index === 0) return;
      const ids = [index - 3, index - 2, index - 1].filter((id) => id >= 0).map((id) => `r${id}`);
      expect(speechAt(rig, index).previousRequestIds).toEqual(ids);
    });
    expect(rig.requests.length).toBeGreaterThan(3);
  });

  it("zero retention gets the text before instead of ids", () => {
    const rig = three({ enable_logging: false });
    expect(speechAt(rig, 1)).toMatchObject({ previousText: "One is here.", enableLogging: false });
    expect(speechAt(rig, 1).previousRequestIds).toBeUndefined();
  });

  it.each([
    ["the command's model", {}, { model_id: "eleven_v3" }],
    ["the gateway's own model", { model: "eleven_v3" }, {}],
  ])("nothing where %s refuses it", (_name, settings, command) => {
    const { rig, send } = start(settings);
    send({ type: "text", text: `One is here. ${SENTENCE.repeat(3)}`, voice_id: VOICE, ...command });
    send({ type: "end" });
    new Answering(rig).run(8000);
    expect(rig.requests.length).toBeGreaterThan(1);
    rig.requests.forEach((_, index) => {
      const { previousText, nextText, previousRequestIds } = speechAt(rig, index);
      expect([previousText, nextText, previousRequestIds]).toEqual([undefined, undefined, undefined]);
    });
  });

  it("an utterance does not know of the one before, nor of its own former saying", () => {
    const { rig, send, listener } = start({}, "format=ulaw_8000&lead_ms=3000");
    const answering = new Answering(rig, { msPerChar: 10 });
    send({ type: "speak", text: SENTENCE, voice_id: VOICE, utterance_id: "a" });
    send({ type: "text", text: "One is here. ", voice_id: VOICE, utterance_id: "b" });
    send({ type: "text", text: `${SENTENCE}${SENTENCE}`, utterance_id: "b" });
    answering.run(100);
    expect(rig.requests.length).toBeGreaterThan(2);
    expect(listener.eventsOf("utterance.started").map((event) => event.utterance_id)).toEqual(["a", "b"]);
    // b was made ahead; a is cut, so that b is said again.
    const cut = rig.requests.length;
    send({ type: "interrupt", utterance_id: "a" });
    answering.run(1000);
    const again = speechAt(rig, cut);
    expect(textOf(requestAt(rig, cut))).toBe("One is here. ");
    expect([again.previousText, again.previousRequestIds]).toEqual([undefined, undefined]);
  });

  it("a dialogue sends nothing of it", () => {
    const { rig, send } = start();
    send({ type: "speak", text: "Before.", voice_id: VOICE });
    answer(rig, 0);
    send({
      type: "dialogue",
      inputs: [
        { text: "Hi.", voice_id: "a" },
        { text: "Ho.", voice_id: "b" },
      ],
    });
    expect(Object.keys(requestAt(rig, 1).request).sort()).toEqual([
      "aheadMs",
      "inputs",
      "kind",
      "outputFormat",
      "subject",
      "utterance",
      "wantsTiming",
    ]);
  });
});
