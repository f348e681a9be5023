/** Stalls, repeats and losses that a review found: each test says what the user saw, and fails without its fix. */
import { describe, expect, it } from "vitest";
import type { Alignment } from "../../../src/timing/alignment.ts";
import type { MemoryListener } from "../../helpers/memory-listener.ts";
import { countingUlaw, createRig, evenAlignment, type FakeRequest } from "../../helpers/session-rig.ts";

const VOICE = "v";
type Rig = ReturnType<typeof createRig>;

const outcomes = (listener: MemoryListener): string[] =>
  listener.eventsOf("utterance.done").map((event) => `${event.utterance_id}/${event.outcome}`);

function requestOf(rig: Rig, index: number): FakeRequest {
  const request = rig.requests[index];
  if (request === undefined) throw new Error(`No request ${index}`);
  return request;
}

function answer(rig: Rig, index: number, given: { ms: number; alignment?: Alignment }): void {
  const request = requestOf(rig, index);
  request.head();
  request.chunk(countingUlaw(given.ms), given.alignment === undefined ? {} : { alignment: given.alignment });
  request.handlers.end();
}

/** The clock in steps of 1 ms, so that every wake falls where it would. */
function run(rig: Rig, ms: number): void {
  for (let passed = 0; passed < ms; passed += 1) rig.clock.advance(1);
}

/** Answers every request as it comes until `rounds` have passed. */
function answerAll(rig: Rig, rounds: number, answered = 0): void {
  let next = answered;
  for (let round = 0; round < rounds; round += 1) {
    for (; next < rig.requests.length; next += 1)
      if (!requestOf(rig, next).isAborted) answer(rig, next, { ms: 100 });
    run(rig, 500);
  }
}

/** One character a chunk of 50 ms. */
function answerByLetters(rig: Rig, text: string): void {
  const request = requestOf(rig, 0);
  request.head();
  [...text].forEach((letter, index) => {
    request.chunk(countingUlaw(50, index * 50), { alignment: evenAlignment(letter, 50, index * 50) });
  });
  request.handlers.end();
}

describe("nothing stalls", () => {
  it.each([101, 120, 130, 200, 1e9])(
    "timing that says %i ms of 100 ms of audio does not withhold the end",
    (lateMs) => {
      const rig = createRig();
      const { send, listener } = rig.join("format=ulaw_8000");
      send({ type: "speak", text: "Hi a", voice_id: VOICE, utterance_id: "a" });
      const request = requestOf(rig, 0);
      request.head();
      request.chunk(countingUlaw(80), { alignment: evenAlignment("Hi ", 25) });
      request.chunk(countingUlaw(20), { alignment: evenAlignment("a", 10, lateMs) });
      request.handlers.end();
      run(rig, 1000);
      expect(outcomes(listener)).toEqual(["a/done"]);
    },
  );

  it.each([0.14, 1e6, Number.NaN])(
    "a voice segment at %d s of 100 ms of audio does not withhold the end",
    (startSeconds) => {
      const rig = createRig();
      const { send, listener } = rig.join("format=ulaw_8000");
      send({ type: "dialogue", inputs: [{ text: "Hi", voice_id: VOICE }], utterance_id: "a" });
      const request = requestOf(rig, 0);
      request.head();
      const segment = {
        voice_id: VOICE,
        character_start_index: 0,
        character_end_index: 2,
        dialogue_input_index: 0,
      };
      request.chunk(countingUlaw(100), {
        alignment: evenAlignment("Hi", 50),
        voiceSegments: [{ ...segment, start_time_seconds: startSeconds, end_time_seconds: 0.2 }],
      });
      request.handlers.end();
      run(rig, 1000);
      expect(outcomes(listener)).toEqual(["a/done"]);
    },
  );

  it("a session of events only, without any lead, speaks", () => {
    const rig = createRig();
    const { send, listener } = rig.join("format=none&lead_ms=0");
    send({ type: "speak", text: "Hello there", voice_id: VOICE, utterance_id: "a" });
    answer(rig, 0, { ms: 200 });
    run(rig, 1000);
    expect(outcomes(listener)).toEqual(["a/done"]);
  });

  it("every text that a leaving speaker left open is ended, not only its last", () => {
    const rig = createRig();
    const client = rig.join("format=ulaw_8000");
    const speaker = rig.join("role=speaker");
    speaker.send({ type: "text", text: "One. ", voice_id: VOICE, utterance_id: "a" });
    speaker.send({ type: "text", text: "Two. ", voice_id: VOICE, utterance_id: "b" });
    speaker.session.leave(speaker.participant);
    answerAll(rig, 4);
    expect(outcomes(client.listener)).toEqual(["a/done", "b/done"]);
  });

  it("an open text that is said again after an interruption still takes its end", () => {
    const rig = createRig();
    const { send, listener } = rig.join("format=ulaw_8000&lead_ms=1000");
    send({ type: "speak", text: "First one", voice_id: VOICE, utterance_id: "a" });
    send({ type: "text", text: "Second sentence is here. And ", voice_id: VOICE, utterance_id: "b" });
    send({ type: "flush" });
    answer(rig, 0, { ms: 400 });
    answer(rig, 1, { ms: 300 });
    run(rig, 100);
    send({ type: "interrupt", utterance_id: "a" });
    send({ type: "end" });
    answerAll(rig, 5, 2);
    expect(outcomes(listener)).toEqual(["a/interrupted", "b/done"]);
  });

  it("an interruption is answered where others were made audio far ahead", () => {
    const rig = createRig();
    const { send, listener } = rig.join("format=ulaw_8000&lead_ms=200");
    rig.join("format=none&pace=burst");
    send({ type: "speak", text: "First one", voice_id: VOICE, utterance_id: "a" });
    send({ type: "speak", text: "Second one", voice_id: VOICE, utterance_id: "b" });
    answer(rig, 0, { ms: 800 });
    answer(rig, 1, { ms: 800 });
    run(rig, 100);
    send({ type: "interrupt" });
    run(rig, 100);
    expect(outcomes(listener)).toEqual(["a/interrupted", "b/interrupted"]);
  });

  it("an acknowledgement of what was not sent to that connection is refused", () => {
    const rig = createRig();
    const { send } = rig.join("format=ulaw_8000&lead_ms=200");
    rig.join("format=none&pace=burst");
    send({ type: "speak", text: "First one", voice_id: VOICE });
    answer(rig, 0, { ms: 1500 });
    run(rig, 100);
    expect(() => send({ type: "played", at_ms: 1000 })).toThrow(
      expect.objectContaining({ code: "invalid_field", field: "at_ms" }),
    );
  });
});

describe("nothing is said or emitted twice, nothing is lost", () => {
  it.each([200, 202, 220, 260, 300])(
    "an utterance of %i ms is not repeated when the one behind it is interrupted",
    (ms) => {
      const rig = createRig();
      const { send, listener } = rig.join("format=ulaw_8000&lead_ms=1000");
      send({ type: "speak", text: "First one", voice_id: VOICE, utterance_id: "a" });
      send({ type: "speak", text: "Second one", voice_id: VOICE, utterance_id: "b" });
      answer(rig, 0, { ms });
      answer(rig, 1, { ms: 300 });
      run(rig, 50);
      send({ type: "interrupt", utterance_id: "b" });
      run(rig, 1000);
      expect(rig.requests).toHaveLength(2);
      expect(outcomes(listener)).toEqual(["a/done", "b/interrupted"]);
    },
  );

  it("a newcomer to an idle session and a configure there get nothing of the past", () => {
    const rig = createRig();
    const first = rig.join("format=ulaw_8000");
    first.send({ type: "speak", text: "First one", voice_id: VOICE, utterance_id: "a" });
    answer(rig, 0, { ms: 200 });
    run(rig, 1000);
    first.send({ type: "mark", name: "m" });
    const second = rig.join("format=ulaw_8000");
    first.send({ type: "configure", format: "alaw_8000" });
    run(rig, 100);
    expect(second.listener.events.map((event) => event.type)).toEqual(["hello"]);
    expect(first.listener.eventsOf("utterance.done")).toHaveLength(1);
    expect(first.listener.eventsOf("mark")).toHaveLength(1);
  });

  it("a configure in the middle of speech repeats no event", () => {
    const rig = createRig();
    const { send, listener } = rig.join("format=ulaw_8000&lead_ms=1000");
    send({ type: "speak", text: "Hello my good friend", voice_id: VOICE });
    answerByLetters(rig, "Hello my good friend");
    run(rig, 100);
    send({ type: "configure", lead_ms: 900 });
    run(rig, 2000);
    const emitted = listener.events.filter((event) =>
      ["characters", "words", "utterance.started"].includes(event.type),
    );
    expect(new Set(emitted.map((event) => event.seq)).size).toBe(emitted.length);
  });

  it("a configure of a listener that is behind loses it no event", () => {
    const rig = createRig();
    const { send, listener, session, participant } = rig.join("format=ulaw_8000&lead_ms=200");
    send({ type: "speak", text: "Hello my good friend", voice_id: VOICE });
    answerByLetters(rig, "Hello my good friend");
    run(rig, 50);
    listener.isFull = true;
    run(rig, 500);
    send({ type: "configure", lead_ms: 190 });
    listener.isFull = false;
    session.drained(participant);
    run(rig, 2000);
    const heard = listener.eventsOf("characters").flatMap((event) => [...event.characters]);
    expect(heard.join("")).toBe("Hello my good friend");
  });
});
