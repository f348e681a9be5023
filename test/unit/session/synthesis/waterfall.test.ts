import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../../src/errors.ts";
import type { UtteranceDoneEvent, Waterfall } from "../../../../src/protocol/events.ts";
import { newStages, waterfallOf } from "../../../../src/session/synthesis/segment-stages.ts";
import { countingUlaw, createRig } from "../../../helpers/session-rig.ts";
import { watchedLog } from "../../../helpers/watched-log.ts";
import { Answering, requestAt, SPLICES, textOf, texts, toneOf, VOICE } from "../scripted-speech.ts";

const STAGES = [
  "text_ms",
  "queued_ms",
  "connected_ms",
  "headers_ms",
  "first_byte_ms",
  "first_sound_ms",
  "first_frame_ms",
] as const;

function expectWhole(waterfall: Waterfall): void {
  const micros = STAGES.map((stage) => waterfall[stage] * 1000);
  for (const us of micros) {
    expect(us).toBeGreaterThanOrEqual(0);
    expect(Math.abs(us - Math.round(us))).toBeLessThan(1e-6);
  }
  const sum = micros.reduce((total, us) => total + Math.round(us), 0);
  expect(sum).toBe(Math.round(waterfall.total_ms * 1000));
}

function start(settings: Parameters<typeof createRig>[0] = {}) {
  const rig = createRig({ stallMs: 1e6, textIdleMs: 1e9, ...settings });
  const { send, listener } = rig.join("format=ulaw_8000");
  const done = (): UtteranceDoneEvent => {
    const [event] = listener.eventsOf("utterance.done");
    if (event === undefined) throw new Error("Nothing is done");
    return event;
  };
  return { rig, send, listener, done };
}

describe("the waterfall", () => {
  it("the waterfall of a whole text has each stage where it was spent", () => {
    const { rig, send, done } = start();
    send({ type: "speak", text: "Hello", voice_id: VOICE });
    const request = requestAt(rig, 0);
    const { audio } = toneOf("ulaw_8000", "Hello", { msPerChar: 100, leadMs: 100 });
    rig.clock.advance(11);
    request.handlers.requestSent?.();
    rig.clock.advance(22.5);
    request.head();
    rig.clock.advance(33);
    request.chunk(audio.subarray(0, 400));
    rig.clock.advance(44);
    request.chunk(audio.subarray(400));
    request.handlers.end();
    rig.clock.advance(2000);
    const { latency, segments } = done();
    if (latency === null) throw new Error("No latency");
    expect(latency).toMatchObject({
      text_ms: 0,
      queued_ms: 0,
      connected_ms: 11,
      headers_ms: 22.5,
      first_byte_ms: 33,
      leading_silence_ms: 100,
    });
    expectWhole(latency);
    expect(segments).toEqual([{ ...latency, start: 0, end: 5 }]);
  });

  it("distinguishes a sound that comes with later bytes from the first byte", () => {
    const { rig, send, done } = start({ ...SPLICES });
    send({ type: "speak", text: "Hello", voice_id: VOICE });
    const request = requestAt(rig, 0);
    const { audio } = toneOf("ulaw_8000", "Hello", { msPerChar: 100, leadMs: 100 });
    request.head();
    request.chunk(audio.subarray(0, 400));
    rig.clock.advance(44);
    request.chunk(audio.subarray(400));
    request.handlers.end();
    rig.clock.advance(2000);
    expect(done().latency).toMatchObject({
      first_byte_ms: 0,
      first_sound_ms: 44,
      first_frame_ms: 0,
      total_ms: 44,
    });
  });

  it("is null where no frame was sent", () => {
    const { rig, send, listener } = start();
    rig.sessions.open("t");
    send({ type: "speak", text: "Hello", voice_id: VOICE });
    requestAt(rig, 0).handlers.error(new GatewayError("upstream_invalid", "No"));
    expect(listener.eventsOf("utterance.done")).toMatchObject([
      { outcome: "failed", latency: null, segments: [] },
    ]);
  });

  it("counts the waits between tries, and sums up all the same", () => {
    const { rig, send, done } = start();
    send({ type: "speak", text: "Hello", voice_id: VOICE });
    rig.clock.advance(10);
    requestAt(rig, 0).head();
    rig.clock.advance(10);
    requestAt(rig, 0).handlers.error(new GatewayError("upstream_failed", "Not now"));
    rig.clock.advance(100);
    expect(rig.requests).toHaveLength(2);
    rig.clock.advance(30);
    requestAt(rig, 1).handlers.requestSent?.();
    rig.clock.advance(5);
    requestAt(rig, 1).head();
    requestAt(rig, 1).chunk(countingUlaw(500));
    requestAt(rig, 1).handlers.end();
    rig.clock.advance(2000);
    const { latency } = done();
    if (latency === null) throw new Error("No latency");
    expectWhole(latency);
    expect(latency).toMatchObject({ connected_ms: 150, headers_ms: 5, total_ms: 155 });
  });

  it("the waterfall of a token stream is reported for each segment, from its own first character", () => {
    const { rig, send, done } = start();
    const answering = new Answering(rig, { msPerChar: 60, delayMs: 70 });
    const tokens = [
      "One is ",
      "here. ",
      "Two follows ",
      "and goes on for quite a while, as it should. ",
      "Three ",
      "ends.",
    ];
    for (const text of tokens) {
      send({ type: "text", text, voice_id: VOICE });
      answering.run(50);
    }
    send({ type: "end" });
    answering.run(10_000);
    const { latency, segments } = done();
    expect(segments.length).toBe(rig.requests.length);
    expect(segments.length).toBeGreaterThan(1);
    for (const segment of segments) expectWhole(segment);
    expect({ ...latency }).toEqual({ ...segments[0], start: undefined, end: undefined });
    expect(segments[0]?.text_ms).toBe(100);
    const whole = tokens.join("");
    expect(segments.map((segment) => whole.slice(segment.start, segment.end))).toEqual(texts(rig));
    // What waits behind the first is emitted as waiting.
    const last = segments.at(-1);
    expect((last?.queued_ms ?? 0) + (last?.first_frame_ms ?? 0)).toBeGreaterThan(200);
  });

  it("the waterfall of an interrupted utterance has only what was heard begun", () => {
    const { rig, send, done } = start();
    const answering = new Answering(rig, { msPerChar: 50 });
    send({ type: "text", text: "One is here. ", voice_id: VOICE });
    send({ type: "text", text: "Two follows it and goes on for quite a while, as it should be. " });
    send({ type: "end" });
    answering.run(200);
    send({ type: "interrupt" });
    expect(rig.requests.length).toBe(2);
    expect(done().segments.map((segment) => segment.end)).toEqual([textOf(requestAt(rig, 0)).length]);
  });

  it("the waterfall of an utterance that is said again is that of what was heard", () => {
    const { rig, listener, send } = start();
    const answering = new Answering(rig, { msPerChar: 20 });
    send({ type: "speak", text: "First one here, and a bit more.", voice_id: VOICE, utterance_id: "a" });
    send({ type: "speak", text: "Second.", voice_id: VOICE, utterance_id: "b" });
    answering.run(500);
    send({ type: "interrupt", utterance_id: "a" });
    answering.run(3000);
    const event = listener.eventsOf("utterance.done").find((emitted) => emitted.utterance_id === "b");
    expect(event?.segments).toHaveLength(1);
    if (event?.latency) expectWhole(event.latency);
    expect(event?.latency?.total_ms).toBeLessThan(1000);
  });

  it("is counted once a segment in the histograms", async () => {
    const { rig, send } = start();
    const answering = new Answering(rig, { msPerChar: 20, delayMs: 40 });
    send({ type: "speak", text: "One.", voice_id: VOICE });
    send({ type: "speak", text: "Two.", voice_id: VOICE });
    answering.run(3000);
    const text = await rig.counters.stages.render();
    for (const stage of [
      "text",
      "queued",
      "connected",
      "headers",
      "first_byte",
      "first_sound",
      "first_frame",
      "total",
    ])
      expect(text).toContain(`voicewire_stage_seconds_count{stage="${stage}"} 2`);
    expect(text).toMatch(/voicewire_stage_seconds_bucket\{le="0.01",stage="total"\} 0/);
  });

  it("the waterfall of an utterance that was cut and went on is counted once a segment, however often it is cut", async () => {
    const { rig, send, listener } = start();
    const answering = new Answering(rig, { msPerChar: 50, delayMs: 1000 });
    send({ type: "text", text: "One is here. ", voice_id: VOICE });
    send({ type: "text", text: "Two follows it and goes on for quite a while, as it should be. " });
    send({ type: "text", text: "Three comes last, and is longer than the ones before it by some way." });
    send({ type: "end" });
    answering.run(1500);
    send({ type: "interrupt" });
    send({ type: "resume" });
    // It waits to go on, and nothing more of it has been heard.
    send({ type: "interrupt" });
    send({ type: "resume" });
    answering.run(15_000);
    const emitted = listener.eventsOf("utterance.done").map(({ segments }) => segments.length);
    expect(emitted).toHaveLength(3);
    expect(emitted[0]).toBeGreaterThan(0);
    const all = emitted.at(-1) ?? 0;
    expect(all).toBeGreaterThan(emitted[0] ?? 0);
    expect(await rig.counters.stages.render()).toContain(
      `voicewire_stage_seconds_count{stage="total"} ${all}\n`,
    );
  });

  it("the waterfall of every segment is in the log, under its session and without its text", () => {
    const lines: { readonly fields: object; readonly message: string }[] = [];
    const debug = (fields: object, message: string) => lines.push({ fields, message });
    const rig = createRig({}, undefined, { ...watchedLog, debug });
    const { send, listener } = rig.join("format=ulaw_8000", "demo");
    send({ type: "text", text: "One is here. ", voice_id: VOICE, utterance_id: "u" });
    send({ type: "text", text: "Two follows it and goes on for quite a while, as it should be. " });
    send({ type: "end" });
    new Answering(rig, { msPerChar: 20 }).run(5000);
    const [done] = listener.eventsOf("utterance.done");
    expect(done?.segments.length).toBeGreaterThan(1);
    const { latency, segments } = done ?? {};
    expect(lines).toEqual([
      {
        fields: { session: "demo", utterance: "u", outcome: "done", latency, segments },
        message: "Utterance over",
      },
    ]);
    expect(JSON.stringify(lines)).not.toContain("follows");
  });

  it("a waterfall of times in fractions sums to the microsecond, and never has a stage below zero", () => {
    const stages = newStages({ start: 0, end: 1 }, { arrivedMs: 0.1, segmentedMs: 0.3 });
    Object.assign(stages, {
      openedMs: 1 / 3,
      sentMs: 2 / 3,
      headersMs: 0.61,
      firstByteMs: 7.7777777,
      firstSoundMs: 9.1,
      firstFrameMs: 8.123_456_7,
    });
    const waterfall = waterfallOf(stages);
    if (waterfall === null) throw new Error("No waterfall");
    expectWhole(waterfall);
    expect(Math.abs(waterfall.total_ms - (8.123_456_7 - 0.1))).toBeLessThan(0.005);
  });
});
