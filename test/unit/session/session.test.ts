import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../src/errors.ts";
import { countingUlaw, createRig, evenAlignment } from "../../helpers/session-rig.ts";

const VOICE = "voice-1";

/** A session that speaks 1 s of mu-law with "Hello world", all of it at hand at once. */
function speaking(query = "format=ulaw_8000", ms = 1000) {
  const rig = createRig();
  const { listener, send, session, participant } = rig.join(query);
  send({ type: "speak", text: "Hello world", voice_id: VOICE, utterance_id: "u" });
  const request = rig.requests[0];
  if (request === undefined) throw new Error("No request was opened");
  request.head();
  request.chunk(countingUlaw(ms), { alignment: evenAlignment("Hello world", ms / 11) });
  request.handlers.end();
  return { ...rig, listener, send, session, participant, request };
}

describe("Session", () => {
  it("passes mu-law through bit-exact in exact frames and pads only the last, saying so", () => {
    const { listener, clock } = speaking("format=ulaw_8000", 1010);
    clock.advance(2000);
    expect(listener.frames.every((frame) => frame.byteLength === 160)).toBe(true);
    const audio = Buffer.concat(listener.frames);
    expect(audio.subarray(0, 8080).equals(countingUlaw(1010))).toBe(true);
    expect(audio.subarray(8080).equals(Buffer.alloc(80, 0xff))).toBe(true);
    expect(listener.eventsOf("utterance.done")).toMatchObject([
      { outcome: "done", start_ms: 0, end_ms: 1010, pad_ms: 10, characters_billed: 10, timing: "exact" },
    ]);
  });

  it("sends a lead at once and then in real time, never earlier than the lead", () => {
    const { listener, clock } = speaking();
    expect(listener.frames.length).toBe(11);
    for (let elapsedMs = 10; elapsedMs < 1000; elapsedMs += 10) {
      clock.advance(10);
      const sentMs = listener.frames.length * 20;
      expect(sentMs).toBeLessThanOrEqual(elapsedMs + 200 + 20);
      expect(sentMs).toBeGreaterThanOrEqual(Math.min(1000, elapsedMs + 200 - 66 - 20));
    }
    expect(listener.frames.length).toBe(50);
  });

  it("emits characters and words before the frame that contains them, on one clock", () => {
    const { listener, clock } = speaking();
    clock.advance(2000);
    const [words] = listener.eventsOf("words");
    expect(words?.words[0]).toMatchObject({ text: "Hello", start: 0, end: 5, start_ms: 0 });
    const all = listener.eventsOf("words").flatMap((event) => event.words);
    expect(all.map((word) => word.text)).toEqual(["Hello", "world"]);
    expect(all[1]?.start_ms).toBeCloseTo(6 * (1000 / 11), 0);
    expect(listener.eventsOf("characters")[0]).toMatchObject({ start: 0, end: 11, timing: "exact" });
    const firstFrame = listener.sent.findIndex((item) => item.frame !== undefined);
    expect(listener.sent.slice(0, firstFrame).map((item) => item.event?.type)).toEqual([
      "hello",
      "utterance.queued",
      "utterance.started",
      "characters",
      "words",
    ]);
  });

  it("numbers events without repeats, in order, at times that never go back", () => {
    const { listener, clock, send, requests } = speaking();
    send({ type: "speak", text: "Again", voice_id: VOICE });
    requests[1]?.head();
    requests[1]?.chunk(countingUlaw(500), { alignment: evenAlignment("Again", 100) });
    requests[1]?.handlers.end();
    clock.advance(3000);
    const shared = listener.events.filter((event) => !["hello", "utterance.queued"].includes(event.type));
    const seqs = shared.map((event) => event.seq);
    expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
    expect(listener.eventsOf("utterance.started").map((event) => event.start_ms)).toEqual([0, 1000]);
    expect(listener.eventsOf("utterance.done").map((event) => event.outcome)).toEqual(["done", "done"]);
  });

  it("emits utterance.done, and the utterance's marks, when it has been played and not when it was sent", () => {
    const { listener, clock, send } = speaking();
    send({ type: "mark", name: "end of speech" });
    clock.advance(900);
    expect(listener.frames.length).toBe(50);
    expect(listener.eventsOf("utterance.done")).toEqual([]);
    clock.advance(110);
    expect(listener.eventsOf("utterance.done")).toHaveLength(1);
    expect(listener.eventsOf("mark")).toMatchObject([{ name: "end of speech", at_ms: 1000 }]);
  });

  it("echoes a mark at once when nothing is speaking", () => {
    const { listener, send } = (({ join }) => join("format=none"))(createRig());
    send({ type: "mark", name: "now" });
    expect(listener.eventsOf("mark")).toMatchObject([{ name: "now" }]);
  });

  it("serves two codecs from one request, each exact", () => {
    const { join, requests, clock } = createRig();
    const phone = join("format=ulaw_8000");
    const recorder = join("format=pcm_16000");
    phone.send({ type: "speak", text: "Hi", voice_id: VOICE });
    expect(requests.map((open) => open.request.outputFormat)).toEqual(["pcm_16000"]);
    requests[0]?.head();
    requests[0]?.chunk(new Uint8Array(16_000 * 2));
    requests[0]?.handlers.end();
    clock.advance(2000);
    expect(phone.listener.frames).toHaveLength(50);
    expect(phone.listener.frames[0]).toEqual(new Uint8Array(160).fill(0xff));
    expect(recorder.listener.frames).toHaveLength(50);
    expect(recorder.listener.frames[0]?.byteLength).toBe(640);
  });

  it("starts a late listener at the playhead, in time with the others", () => {
    const { join, listener, clock } = speaking();
    clock.advance(500);
    const late = join("role=listener&format=ulaw_8000");
    const hello = late.listener.eventsOf("hello")[0];
    expect(hello?.audio?.start_ms).toBe(500);
    clock.advance(1000);
    expect(Buffer.concat(late.listener.frames).equals(Buffer.concat(listener.frames).subarray(500 * 8))).toBe(
      true,
    );
    expect(late.listener.eventsOf("utterance.started")).toHaveLength(1);
    expect(late.listener.eventsOf("utterance.done")).toHaveLength(1);
  });

  it("makes the upstream wait when the audio ahead is at its bound, and lets it go on", () => {
    const { join, requests, clock } = createRig({ aheadMs: 1000 });
    const { send } = join("format=ulaw_8000");
    send({ type: "speak", text: "Long", voice_id: VOICE });
    const [request] = requests;
    request?.head();
    for (let index = 0; index < 30; index += 1) request?.chunk(countingUlaw(100, index * 100));
    expect(request?.isPaused).toBe(true);
    clock.advance(2600);
    expect(request?.isPaused).toBe(false);
  });

  it("a lossless listener that stops reading stops everything up to the upstream and loses nothing", () => {
    const { join, requests, clock } = createRig({ aheadMs: 1000, keepMs: 500 });
    const { send, listener, session, participant } = join("format=ulaw_8000&policy=lossless");
    send({ type: "speak", text: "Long", voice_id: VOICE });
    const [request] = requests;
    request?.head();
    request?.chunk(countingUlaw(500));
    listener.isFull = true;
    for (let index = 5; index < 100; index += 1) request?.chunk(countingUlaw(100, index * 100));
    clock.advance(20_000);
    expect(request?.isPaused).toBe(true);
    expect(listener.frames.length).toBeLessThan(150);
    listener.isFull = false;
    session.drained(participant);
    request?.handlers.end();
    clock.advance(20_000);
    expect(Buffer.concat(listener.frames).equals(countingUlaw(10_000))).toBe(true);
    expect(listener.eventsOf("gap")).toEqual([]);
  });

  it("a live listener that stops reading gets a gap and every event, and the others notice nothing", () => {
    const { join, listener: healthy, session, send, requests, clock, counters } = speaking();
    const slow = join("role=listener&format=ulaw_8000");
    slow.listener.isFull = true;
    clock.advance(400);
    send({ type: "speak", text: "Later", voice_id: VOICE });
    requests[1]?.head();
    requests[1]?.chunk(countingUlaw(1000, 1000), { alignment: evenAlignment("Later", 200) });
    requests[1]?.handlers.end();
    clock.advance(900);
    slow.listener.isFull = false;
    slow.session.drained(slow.participant);
    clock.advance(3000);
    expect(Buffer.concat(healthy.frames).equals(countingUlaw(2000))).toBe(true);
    const gaps = slow.listener.eventsOf("gap");
    expect(gaps).toHaveLength(1);
    expect((gaps[0]?.frames ?? 0) + slow.listener.frames.length).toBe(100);
    expect(gaps[0]?.ms).toBe((gaps[0]?.frames ?? 0) * 20);
    const emitted = (events: { type: string; seq: number }[]) =>
      events
        .filter((event) => event.type.startsWith("utterance.") || event.type === "words")
        .map((e) => e.seq);
    expect(emitted(slow.listener.events).filter((seq) => seq > 0)).toEqual(
      expect.arrayContaining(emitted(healthy.eventsOf("utterance.done"))),
    );
    expect(
      slow.listener.eventsOf("words").flatMap((event) => event.words.map((word) => word.text)),
    ).toContain("Later");
    expect(
      slow.listener.eventsOf("words").flatMap((event) => event.words.map((word) => word.text)),
    ).toContain("Later");
    expect(counters.framesDropped).toBe(gaps[0]?.frames);
    expect(session.isClosed).toBe(false);
  });

  it("burst sends everything as soon as it comes", () => {
    const { listener } = speaking("format=ulaw_8000&pace=burst");
    expect(Buffer.concat(listener.frames).equals(Buffer.concat([countingUlaw(1000)]))).toBe(true);
    expect(listener.eventsOf("utterance.done")).toHaveLength(1);
  });

  it("speaks token streams segment by segment with offsets into the whole text", () => {
    const { join, requests, clock } = createRig();
    const { send, listener } = join("format=ulaw_8000");
    for (const token of ["One is", " here. ", "Two fol", "lows. "])
      send({ type: "text", text: token, voice_id: VOICE });
    send({ type: "end" });
    const say = (index: number) => {
      const open = requests[index];
      if (open === undefined || open.request.kind !== "speech") throw new Error(`No request ${index}`);
      open.head();
      open.chunk(countingUlaw(open.request.text.length * 40), {
        alignment: evenAlignment(open.request.text, 40),
      });
      open.handlers.end();
      return open.request.text;
    };
    const texts: string[] = [];
    for (let index = 0; index < 10 && requests[index] !== undefined; index += 1) texts.push(say(index));
    clock.advance(5000);
    expect(texts.join("")).toBe("One is here. Two follows. ");
    const words = listener.eventsOf("words").flatMap((event) => event.words);
    expect(words.map((word) => "One is here. Two follows. ".slice(word.start, word.end))).toEqual(
      words.map((word) => word.text),
    );
    expect(words.map((word) => word.text)).toEqual(["One", "is", "here", "Two", "follows"]);
    expect(listener.eventsOf("utterance.done")).toHaveLength(1);
  });
});

describe("Session.queue.interrupt()", () => {
  it("stops the upstream and the frames, and answers with what was heard", () => {
    const { listener, clock, send, requests, join } = speaking("format=ulaw_8000", 3000);
    clock.advance(1300);
    const sentBefore = listener.frames.length;
    send({ type: "interrupt" });
    clock.advance(5000);
    expect(listener.frames.length).toBe(sentBefore);
    const [interrupted] = listener.eventsOf("interrupted");
    expect(interrupted?.heard).toMatchObject({ text: "", end: 0, source: "estimate" });
    expect(interrupted?.heard.ms).toBeCloseTo(1300, 0);
    expect(interrupted?.unheard_text).toBe("Hello world");
    expect(interrupted?.next_ms).toBe(sentBefore * 20);
    expect(listener.eventsOf("utterance.done")).toMatchObject([
      { outcome: "interrupted", characters_spoken: 0 },
    ]);
    expect(requests).toHaveLength(1);
    expect(join("role=listener&format=ulaw_8000").listener.eventsOf("hello")[0]?.audio?.start_ms).toBe(
      sentBefore * 20,
    );
  });

  it("aborts a request that is still open, and the queue behind it", () => {
    const { join, requests } = createRig();
    const { send, listener } = join("format=ulaw_8000");
    send({ type: "speak", text: "One", voice_id: VOICE, utterance_id: "a" });
    send({ type: "speak", text: "Two", voice_id: VOICE, utterance_id: "b" });
    requests[0]?.head();
    requests[0]?.chunk(countingUlaw(400));
    send({ type: "interrupt" });
    expect(requests[0]?.isAborted).toBe(true);
    expect(listener.eventsOf("utterance.done").map((event) => [event.utterance_id, event.outcome])).toEqual([
      ["a", "interrupted"],
      ["b", "interrupted"],
    ]);
  });

  it("cuts only the named utterance; the ones behind it are said whole, from their beginning", () => {
    const { listener, clock, send, requests } = speaking("format=ulaw_8000", 1000);
    send({ type: "speak", text: "Next", voice_id: VOICE, utterance_id: "next" });
    requests[1]?.head();
    requests[1]?.chunk(countingUlaw(600, 5000));
    requests[1]?.handlers.end();
    clock.advance(900);
    send({ type: "interrupt", utterance_id: "u" });
    expect(requests).toHaveLength(3);
    const before = listener.frames.length;
    requests[2]?.head();
    requests[2]?.chunk(countingUlaw(600, 5000));
    requests[2]?.handlers.end();
    clock.advance(3000);
    expect(Buffer.concat(listener.frames.slice(before)).equals(countingUlaw(600, 5000))).toBe(true);
    expect(listener.eventsOf("utterance.done").map((event) => [event.utterance_id, event.outcome])).toEqual([
      ["u", "interrupted"],
      ["next", "done"],
    ]);
  });

  it("keep_ms lets that much more be heard", () => {
    const { listener, clock, send } = speaking("format=ulaw_8000", 3000);
    clock.advance(1000);
    send({ type: "interrupt", keep_ms: 500 });
    expect(listener.eventsOf("interrupted")).toEqual([]);
    clock.advance(600);
    expect(listener.eventsOf("interrupted")[0]?.heard.ms).toBeCloseTo(1500, 0);
  });

  it("prefers what a listener acknowledged to the estimate", () => {
    const { listener, clock, send } = speaking("format=ulaw_8000", 3000);
    clock.advance(1000);
    send({ type: "played", at_ms: 700 });
    clock.advance(100);
    send({ type: "interrupt" });
    const heard = listener.eventsOf("interrupted")[0]?.heard;
    expect(heard?.source).toBe("ack");
    expect(heard?.ms).toBeCloseTo(800, 0);
  });

  it("an interruption of nothing, and of an unknown id, is refused by name", () => {
    const { send } = (({ join }) => join("format=none"))(createRig());
    expect(() => send({ type: "interrupt" })).toThrow(
      expect.objectContaining({ code: "nothing_to_interrupt" }),
    );
    expect(() => send({ type: "interrupt", utterance_id: "x" })).toThrow(
      expect.objectContaining({ code: "unknown_utterance", field: "utterance_id" }),
    );
  });
});

describe("Session failures", () => {
  it("an upstream error before any audio fails that utterance alone", () => {
    const { join, requests, clock } = createRig();
    const { send, listener } = join("format=ulaw_8000");
    send({ type: "speak", text: "One", voice_id: "nobody", utterance_id: "a" });
    send({ type: "speak", text: "Two", voice_id: VOICE, utterance_id: "b" });
    requests[0]?.handlers.error(new GatewayError("unknown_voice", "No voice nobody", { field: "voice_id" }));
    requests[1]?.head();
    requests[1]?.chunk(countingUlaw(200));
    requests[1]?.handlers.end();
    clock.advance(1000);
    expect(listener.eventsOf("error")).toMatchObject([
      { code: "unknown_voice", field: "voice_id", utterance_id: "a", retryable: false },
    ]);
    expect(listener.eventsOf("utterance.done").map((event) => [event.utterance_id, event.outcome])).toEqual([
      ["a", "failed"],
      ["b", "done"],
    ]);
    expect(Buffer.concat(listener.frames).equals(countingUlaw(200))).toBe(true);
  });

  it("a retryable error before any audio is tried again and nobody notices", () => {
    const { join, requests, clock } = createRig();
    const { send, listener } = join("format=ulaw_8000");
    send({ type: "speak", text: "One", voice_id: VOICE });
    requests[0]?.handlers.error(new GatewayError("upstream_unreachable", "Connection refused"));
    clock.advance(150);
    expect(requests).toHaveLength(2);
    requests[1]?.head();
    requests[1]?.chunk(countingUlaw(200));
    requests[1]?.handlers.end();
    clock.advance(1000);
    expect(listener.eventsOf("error")).toEqual([]);
    expect(listener.frames).toHaveLength(10);
  });

  it("an upstream that ends early mid-speech plays what came and fails with its code", () => {
    const { join, requests, clock } = createRig();
    const { send, listener } = join("format=ulaw_8000");
    send({ type: "speak", text: "One", voice_id: VOICE });
    requests[0]?.head();
    requests[0]?.chunk(countingUlaw(210));
    requests[0]?.handlers.error(new GatewayError("upstream_truncated", "Upstream ended early"));
    clock.advance(2000);
    expect(listener.frames).toHaveLength(11);
    expect(listener.eventsOf("utterance.done")).toMatchObject([
      { outcome: "failed", end_ms: 210, error: { code: "upstream_truncated", retryable: true } },
    ]);
  });

  it("half a sample at the end is dropped: all the others were heard", () => {
    const { join, requests, clock } = createRig();
    const { send, listener } = join("format=pcm_8000");
    send({ type: "speak", text: "One", voice_id: VOICE });
    requests[0]?.head();
    requests[0]?.chunk(new Uint8Array(321).fill(1));
    requests[0]?.handlers.end();
    clock.advance(1000);
    expect(listener.eventsOf("error")).toEqual([]);
    expect(listener.eventsOf("utterance.done")).toMatchObject([{ outcome: "done", end_ms: 20 }]);
    expect(Buffer.concat(listener.frames)).toEqual(Buffer.alloc(320, 1));
  });
});

describe("Session membership", () => {
  it("lives on when the speaker leaves: its listeners hear it out", () => {
    const { join, listener, session, participant, clock } = speaking();
    const client = join("role=listener&format=ulaw_8000");
    clock.advance(200);
    session.leave(participant);
    const frames = listener.frames.length;
    clock.advance(2000);
    expect(listener.frames.length).toBe(frames);
    expect(Buffer.concat(client.listener.frames).equals(countingUlaw(1000))).toBe(true);
  });

  it("text that a leaving speaker left open is spoken", () => {
    const { join, requests } = createRig();
    const speaker = join("role=speaker");
    join("role=listener&format=ulaw_8000");
    speaker.send({ type: "text", text: "Unfinished", voice_id: VOICE });
    expect(requests).toHaveLength(0);
    speaker.session.leave(speaker.participant, { isFinal: true });
    expect(requests.map((open) => open.request)).toMatchObject([{ text: "Unfinished" }]);
  });

  it("aborts the upstream after the grace period without anybody, not before", () => {
    const { join, requests, clock, sessions } = createRig({ graceMs: 1000 });
    const { send, session, participant } = join("format=ulaw_8000");
    send({ type: "speak", text: "One", voice_id: VOICE });
    requests[0]?.head();
    session.leave(participant);
    clock.advance(900);
    expect(requests[0]?.isAborted).toBe(false);
    clock.advance(200);
    expect(requests[0]?.isAborted).toBe(true);
    expect(sessions.count).toBe(0);
  });

  it("a listener may not speak", () => {
    const { join } = createRig();
    join("format=none");
    const client = join("role=listener&format=none");
    expect(() => client.send({ type: "speak", text: "Hi" })).toThrow(
      expect.objectContaining({ code: "not_a_speaker" }),
    );
  });

  it("refuses colliding ids, late text, full queues, full sessions and full gateways by name", () => {
    const { join } = createRig();
    const first = join("format=none");
    const second = join("format=none");
    first.send({ type: "speak", text: "a", voice_id: VOICE, utterance_id: "same" });
    expect(() => second.send({ type: "speak", text: "b", utterance_id: "same" })).toThrow(
      expect.objectContaining({ code: "utterance_id_taken", field: "utterance_id" }),
    );
    first.send({ type: "text", text: "c", voice_id: VOICE, utterance_id: "t" });
    first.send({ type: "end", utterance_id: "t" });
    expect(() => first.send({ type: "text", text: "d", utterance_id: "t" })).toThrow(
      expect.objectContaining({ code: "text_after_end" }),
    );
    first.send({ type: "speak", text: "e", voice_id: VOICE });
    first.send({ type: "speak", text: "f", voice_id: VOICE });
    first.send({ type: "speak", text: "h", voice_id: VOICE });
    expect(() => first.send({ type: "speak", text: "g" })).toThrow(
      expect.objectContaining({ code: "queue_full" }),
    );
    join("format=none");
    expect(() => join("format=none")).toThrow(expect.objectContaining({ code: "listener_limit" }));
    join("format=none", "other");
    expect(() => join("format=none", "third")).toThrow(expect.objectContaining({ code: "session_limit" }));
  });

  it("takes text up to its limit and refuses a character more, lone surrogates and control characters", () => {
    const { join } = createRig();
    const { send } = join("format=none");
    send({ type: "speak", text: "x".repeat(1000), voice_id: VOICE });
    expect(() => send({ type: "speak", text: "x".repeat(1001) })).toThrow(
      expect.objectContaining({ code: "text_too_long", field: "text" }),
    );
    for (const text of ["a\ud800b", "a\u0000b", "\u001b[1m"]) {
      expect(() => send({ type: "speak", text })).toThrow(expect.objectContaining({ code: "invalid_text" }));
    }
  });

  it("configure changes a listener's codec where it stands", () => {
    const { listener, send, clock } = speaking("format=ulaw_8000", 3000);
    clock.advance(1000);
    const before = listener.frames.length;
    send({ type: "configure", format: "alaw_8000" });
    const [configured] = listener.eventsOf("configured");
    expect(configured?.audio?.codec).toBe("alaw");
    const startMs = configured?.audio?.start_ms ?? -1;
    expect(startMs).toBeGreaterThanOrEqual(1000);
    clock.advance(4000);
    expect((listener.frames.length - before) * 20).toBe(Math.ceil((3000 - startMs) / 20) * 20);
  });
});
