import { describe, expect, it } from "vitest";
import { createRig } from "../../../helpers/session-rig.ts";
import { Answering, texts, VOICE } from "../scripted-speech.ts";

const SENTENCE = "This is a sentence of some length. ";
/** Speaks slowly, so that text waits. */
const SLOW = { msPerChar: 100 };

function start(settings: Parameters<typeof createRig>[0] = {}, query = "format=ulaw_8000") {
  const rig = createRig({ creditChars: 200, textIdleMs: 1e9, ...settings });
  const joined = rig.join(query);
  const other = rig.join("role=both&format=none");
  return { rig, ...joined, other, answering: new Answering(rig, SLOW) };
}

/** Sends until it is asked to pause; returns what was sent. */
function sendUntilPaused(session: ReturnType<typeof start>, options: object = {}, token = SENTENCE): string {
  let sent = "";
  for (let count = 0; count < 25 && session.listener.eventsOf("paused").length === 0; count += 1) {
    session.send({ type: "text", text: token, voice_id: VOICE, utterance_id: "u", ...options });
    sent += token;
  }
  return sent;
}

describe("credit for text", () => {
  it("says paused once when more waits than the limit, resumed once at a quarter, to the speaker only", () => {
    const session = start();
    const { rig, listener, send, other, answering } = session;
    let sent = sendUntilPaused(session);
    for (let count = 0; count < 3; count += 1) {
      send({ type: "text", text: SENTENCE });
      sent += SENTENCE;
    }
    const [paused] = listener.eventsOf("paused");
    expect(paused).toMatchObject({ utterance_id: "u", limit_chars: 200 });
    expect(paused?.pending_chars).toBeGreaterThan(200);
    expect(paused?.pending_chars).toBeLessThanOrEqual(200 + SENTENCE.length);
    expect(listener.eventsOf("resumed")).toEqual([]);
    answering.run(60_000, 20);
    expect(listener.eventsOf("paused")).toHaveLength(1);
    expect(listener.eventsOf("resumed")).toHaveLength(1);
    expect(listener.eventsOf("resumed")[0]).toMatchObject({ utterance_id: "u", limit_chars: 200 });
    expect(listener.eventsOf("resumed")[0]?.pending_chars).toBeLessThanOrEqual(50);
    expect(other.listener.eventsOf("paused")).toEqual([]);
    expect(other.listener.eventsOf("resumed")).toEqual([]);
    send({ type: "end" });
    answering.run(60_000, 20);
    expect(texts(rig).join("")).toBe(sent);
    expect(listener.eventsOf("utterance.done")).toMatchObject([{ outcome: "done" }]);
  });

  it("pauses again when it fills up again", () => {
    const session = start();
    sendUntilPaused(session);
    session.answering.run(60_000, 20);
    for (let count = 0; count < 8; count += 1) session.send({ type: "text", text: SENTENCE });
    expect(session.listener.eventsOf("paused")).toHaveLength(2);
  });

  it("says nothing where the text fits", () => {
    const { send, listener, answering } = start();
    for (let count = 0; count < 3; count += 1) send({ type: "text", text: SENTENCE, voice_id: VOICE });
    send({ type: "end" });
    answering.run(30_000, 20);
    expect(listener.eventsOf("paused")).toEqual([]);
    expect(listener.eventsOf("resumed")).toEqual([]);
  });

  it("what the speaker sent is said to the end when it leaves while paused", () => {
    const rig = createRig({ creditChars: 200, textIdleMs: 1e9 });
    const speaker = rig.join("role=speaker");
    const client = rig.join("role=listener&format=ulaw_8000");
    const answering = new Answering(rig, SLOW);
    for (let count = 0; count < 8; count += 1)
      speaker.send({ type: "text", text: SENTENCE, voice_id: VOICE, utterance_id: "u" });
    expect(speaker.listener.eventsOf("paused")).toHaveLength(1);
    const before = speaker.listener.events.length;
    speaker.session.leave(speaker.participant);
    answering.run(60_000, 20);
    expect(texts(rig).join("")).toBe(SENTENCE.repeat(8));
    expect(client.listener.eventsOf("utterance.done")).toMatchObject([{ outcome: "done" }]);
    expect(speaker.listener.events.length).toBe(before);
    expect(client.listener.eventsOf("resumed")).toEqual([]);
  });

  it("counts on the utterance that the text is for", () => {
    const rig = createRig({ creditChars: 200, textIdleMs: 1e9 });
    const { send, listener } = rig.join("format=ulaw_8000");
    for (let count = 0; count < 4; count += 1)
      for (const id of ["a", "b"]) send({ type: "text", text: SENTENCE, voice_id: VOICE, utterance_id: id });
    expect(listener.eventsOf("paused")).toEqual([]);
    for (let count = 0; count < 4; count += 1) send({ type: "text", text: SENTENCE, utterance_id: "b" });
    expect(listener.eventsOf("paused").map((event) => event.utterance_id)).toEqual(["b"]);
  });

  it.each([
    ["code that is taken out", "```js\n", "const value = 1;\n", { clean: ["code"] }],
    ["words replaced by nothing", "Go. ", "um ", { replacements: [{ from: "um", to: "" }] }],
  ])("a speaker that keeps to it always goes on: %s", (_name, first, token, options) => {
    const session = start();
    const { send, listener, answering } = session;
    send({ type: "text", text: first, voice_id: VOICE, utterance_id: "u", ...options });
    sendUntilPaused(session, {}, token);
    answering.run(20_000, 20);
    expect(listener.eventsOf("resumed")).toHaveLength(listener.eventsOf("paused").length);
  });

  it("goes on at once where what waited is taken out by what comes", () => {
    const { send, listener } = start({ creditChars: 60, stallMs: 1e6 });
    const from = "a phrase that nobody wants to hear in this place or in any other";
    const options = { replacements: [{ from, to: "" }] };
    send({ type: "text", text: from.slice(0, 62), voice_id: VOICE, ...options });
    expect(listener.eventsOf("paused")).toHaveLength(1);
    send({ type: "text", text: from.slice(62) });
    send({ type: "text", text: "\n" });
    expect(listener.eventsOf("resumed")).toMatchObject([{ limit_chars: 60 }]);
  });

  it("goes on where what was held back is short when it is settled by a stall", () => {
    const { rig, send, listener, answering } = start({ creditChars: 60 });
    const text = `https://localhost/${"a".repeat(60)}`;
    send({ type: "text", text, voice_id: VOICE, clean: ["urls"] });
    expect(listener.eventsOf("paused")).toHaveLength(1);
    answering.run(3000);
    expect(texts(rig)).toEqual([]);
    expect(listener.eventsOf("resumed")).toHaveLength(1);
  });

  it("an utterance that is interrupted while paused leaves nothing waiting", () => {
    const session = start();
    sendUntilPaused(session);
    session.answering.run(500);
    session.send({ type: "interrupt" });
    expect(session.listener.eventsOf("utterance.done")).toMatchObject([{ outcome: "interrupted" }]);
    session.send({ type: "text", text: "Short.", voice_id: VOICE, utterance_id: "next" });
    session.send({ type: "end", utterance_id: "next" });
    session.answering.run(5000);
    expect(session.listener.eventsOf("paused")).toHaveLength(1);
    expect(session.listener.eventsOf("utterance.done").map((event) => event.outcome)).toEqual([
      "interrupted",
      "done",
    ]);
  });
});
