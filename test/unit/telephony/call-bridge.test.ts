/** What a session's other connections learn of its calls: who, what was dialled, what is said; and hanging up. */
import { describe, expect, it } from "vitest";
import { decodeUlaw } from "../../../src/audio/codecs/g711.ts";
import { createCallRig } from "./call-rig.ts";

/** 20 ms of mu-law, each byte the same, so that no two pieces are alike. */
const piece = (value: number): Uint8Array => new Uint8Array(160).fill(value);

describe("a call and the others", () => {
  it("is emitted to who asked for it, with its keys, at once and in order", () => {
    const rig = createCallRig();
    const asked = rig.join("role=speaker&events=call,dtmf");
    const other = rig.join("role=listener&format=none&events=words");
    const phone = rig.dial();
    phone.start();
    phone.say({ on: "dtmf", digit: "7", durationMs: 120 });
    phone.say({ on: "dtmf", digit: "#" });
    phone.say({ on: "stopped", reason: "hung up" });
    const reported = asked.listener.events.filter((event) => event.type === "call" || event.type === "dtmf");
    expect(reported).toMatchObject([
      { type: "call", state: "started", call_id: "call-1" },
      { type: "dtmf", call_id: "call-1", digit: "7", duration_ms: 120 },
      { type: "dtmf", call_id: "call-1", digit: "#" },
      { type: "call", state: "ended", call_id: "call-1", reason: "hung up" },
    ]);
    expect(other.listener.events.some((event) => event.type === "call" || event.type === "dtmf")).toBe(false);
  });

  it("is emitted to who joins while it goes on", () => {
    const rig = createCallRig();
    const phone = rig.dial();
    phone.start();
    const late = rig.join("role=speaker&events=call");
    expect(late.listener.eventsOf("call")).toMatchObject([{ state: "started", listener_id: "l1" }]);
    phone.call.closed();
    const later = rig.join("role=speaker&events=call");
    expect(later.listener.eventsOf("call")).toEqual([]);
  });

  it("keys are emitted while speech runs ahead of them: they do not wait for its events", () => {
    const rig = createCallRig();
    const speaker = rig.join("role=speaker&events=words,dtmf");
    const phone = rig.dial();
    phone.start();
    speaker.send({ type: "speak", text: "one two three", voice_id: "v" });
    rig.requests[0]?.head();
    rig.requests[0]?.chunk(new Uint8Array(8000));
    rig.clock.advance(200);
    phone.say({ on: "dtmf", digit: "1" });
    expect(speaker.listener.events.at(-1)).toMatchObject({ type: "dtmf", digit: "1" });
  });

  it("hears its voice byte for byte in the format that it came in, in frames of 20 ms", () => {
    const rig = createCallRig();
    const speaker = rig.join("role=speaker&caller=ulaw_8000");
    const phone = rig.dial();
    phone.start();
    const voice = Uint8Array.from({ length: 800 }, (_, index) => index % 251);
    // However the carrier cuts it.
    phone.say(voice.slice(0, 100));
    phone.say(voice.slice(100, 700));
    phone.say(voice.slice(700));
    expect(speaker.listener.frames.map((frame) => frame.length)).toEqual([160, 160, 160, 160, 160]);
    expect(Buffer.concat(speaker.listener.frames)).toEqual(Buffer.from(voice));
  });

  it("hears it in another format and rate", () => {
    const rig = createCallRig();
    // A second of 400 Hz: what comes out crosses zero as often.
    const tone = Int16Array.from({ length: 8000 }, (_, at) =>
      Math.round(8000 * Math.sin((2 * Math.PI * 400 * at) / 8000)),
    );
    const phone = rig.dial();
    phone.start({ callerFormat: "pcm_8000" });
    const speaker = rig.join("role=speaker&caller=pcm_16000");
    const bytes = new Uint8Array(tone.buffer);
    for (let at = 0; at < bytes.length; at += 320) phone.say(bytes.slice(at, at + 320));
    const { frames } = speaker.listener;
    expect(new Set(frames.map((frame) => frame.length))).toEqual(new Set([640]));
    expect(frames.length).toBeGreaterThanOrEqual(48);
    const heard = new Int16Array(Uint8Array.from(Buffer.concat(frames)).buffer);
    expect(crossings(heard) / (heard.length / 16_000)).toBeCloseTo(800, -1);
  });

  it("several hear it, each in its own format, and go when they leave", () => {
    const rig = createCallRig();
    const plain = rig.join("role=speaker&caller=ulaw_8000");
    const phone = rig.dial();
    phone.start();
    phone.say(piece(1));
    const late = rig.join("role=speaker&caller=pcm_8000");
    phone.say(piece(2));
    expect([plain.listener.frames.length, late.listener.frames.length]).toEqual([2, 1]);
    expect(Buffer.from(late.listener.frames[0] ?? [])).toEqual(Buffer.from(decodeUlaw(piece(2)).buffer));
    rig.sessions.get("s").leave(late.participant);
    phone.say(piece(3));
    expect([plain.listener.frames.length, late.listener.frames.length]).toEqual([3, 1]);
  });

  it("the first of two calls is heard, and the second when it is alone", () => {
    const rig = createCallRig();
    const speaker = rig.join("role=speaker&caller=ulaw_8000");
    const [first, second] = [rig.dial(), rig.dial()];
    first.start();
    second.start({ callId: "call-2", callerFormat: "pcm_8000" });
    second.say(piece(2));
    first.say(piece(1));
    expect(speaker.listener.frames).toEqual([piece(1)]);
    first.call.closed();
    second.say(new Uint8Array(320));
    expect(speaker.listener.frames).toEqual([piece(1), new Uint8Array(160).fill(0xff)]);
  });

  it("what a speaker is too slow for is left out, the oldest first, and reported as a gap", () => {
    const rig = createCallRig();
    const speaker = rig.join("role=speaker&caller=ulaw_8000");
    const phone = rig.dial();
    phone.start();
    speaker.listener.buffered = 9000;
    const kept = Math.floor((64 * 1024) / 160);
    const total = kept + 25;
    for (let index = 0; index < total; index += 1) phone.say(piece(index % 251));
    expect(speaker.listener.frames).toEqual([]);
    speaker.listener.buffered = 0;
    rig.sessions.get("s").drained(speaker.participant);
    expect(speaker.listener.eventsOf("gap")).toMatchObject([{ frames: 25, ms: 500 }]);
    expect(speaker.listener.frames).toHaveLength(kept);
    expect(speaker.listener.frames[0]).toEqual(piece(25));
    const order = speaker.listener.sent.map((sent) =>
      sent.frame === undefined ? sent.event?.type : "frame",
    );
    expect(order.indexOf("gap")).toBe(order.indexOf("frame") - 1);
    expect(rig.calls.stats.of("twilio").callerDropped).toBe(25);
  });

  it("a caller that is not sent, or in a format unknown, is not heard and nothing breaks", () => {
    const rig = createCallRig();
    const speaker = rig.join("role=speaker&caller=ulaw_8000");
    const phone = rig.dial();
    phone.start({ callerFormat: null });
    phone.say(piece(1));
    expect([speaker.listener.frames, phone.line.ended]).toEqual([[], null]);
  });

  it.each(["role=both&caller=ulaw_8000", "role=speaker&format=pcm_8000&caller=ulaw_8000"])(
    "%s is refused: binary messages would be two things",
    (query) => {
      const rig = createCallRig();
      expect(() => rig.join(query)).toThrow(
        expect.objectContaining({ code: "invalid_field", field: "caller" }),
      );
    },
  );

  it("who hears the caller can't be given audio of its own later", () => {
    const rig = createCallRig();
    const speaker = rig.join("role=speaker&caller=ulaw_8000");
    expect(() => speaker.send({ type: "configure", format: "pcm_8000" })).toThrow(
      expect.objectContaining({ code: "invalid_field", field: "caller" }),
    );
    speaker.send({ type: "configure", events: ["dtmf"] });
    expect(speaker.participant.settings.caller).toBe("ulaw_8000");
  });
});

describe("hangup", () => {
  it("ends the call that it names, in the carrier's words", () => {
    const rig = createCallRig();
    const speaker = rig.join("role=speaker&events=call");
    const [first, second] = [rig.dial(), rig.dial()];
    first.start();
    second.start({ callId: "call-2" });
    speaker.send({ type: "hangup", call_id: "call-2" });
    expect([first.line.ended, second.line.ended]).toEqual([null, { code: 1000, reason: "hangup" }]);
    expect(second.line.sent).toEqual(["bye"]);
    expect(speaker.listener.eventsOf("call").at(-1)).toMatchObject({
      state: "ended",
      call_id: "call-2",
      reason: "hangup",
    });
  });

  it("without a name ends them all; then there is nothing to hang up", () => {
    const rig = createCallRig();
    const speaker = rig.join("role=speaker");
    const unknown = expect.objectContaining({ code: "unknown_call" });
    expect(() => speaker.send({ type: "hangup" })).toThrow(unknown);
    const phones = [rig.dial(), rig.dial()];
    for (const phone of phones) phone.start();
    expect(() => speaker.send({ type: "hangup", call_id: "other" })).toThrow(unknown);
    speaker.send({ type: "hangup" });
    expect(phones.map((phone) => phone.line.ended?.code)).toEqual([1000, 1000]);
    expect(() => speaker.send({ type: "hangup" })).toThrow(unknown);
    expect(rig.sessions.get("s").calls).toBeNull();
  });

  it("is not for a listener to say", () => {
    const rig = createCallRig();
    const phone = rig.dial();
    phone.start();
    const listener = rig.join("role=listener&format=none");
    expect(() => listener.send({ type: "hangup" })).toThrow(
      expect.objectContaining({ code: "not_a_speaker" }),
    );
    expect(phone.line.ended).toBeNull();
  });
});

function crossings(samples: Int16Array): number {
  let count = 0;
  for (let at = 1; at < samples.length; at += 1) {
    if ((samples[at - 1] ?? 0) < 0 !== (samples[at] ?? 0) < 0) count += 1;
  }
  return count;
}
