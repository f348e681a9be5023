import { describe, expect, it } from "vitest";
import { createLiveContainer } from "../../../src/audio/containers/live-container.ts";
import type { Event } from "../../../src/protocol/events.ts";
import { AudioListener } from "../../../src/server/players/audio-listener.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { FakeResponse } from "../../helpers/fake-response.ts";
import { logged } from "../../helpers/logged.ts";
import { OPEN_TERMS } from "../../helpers/open-door.ts";

const frame = (byte: number) => new Uint8Array(160).fill(byte);
const event = (value: object) => logged({ seq: 1, at_ms: 0, ...value } as Event);

async function rig(name: "ulaw" | "ogg" | "wav" | "mp3" = "ulaw", isFilled = false) {
  const res = new FakeResponse();
  const clock = new FakeClock();
  const seen = { frames: 0, drained: 0, closed: 0 };
  const format =
    name === "ogg" ? "opus_48000" : name === "wav" ? "pcm_8000" : name === "mp3" ? "pcm_24000" : "ulaw_8000";
  const listener = new AudioListener({
    res: res.res,
    container: await createLiveContainer({ name, format, frameMs: 20 }),
    clock,
    idleSeconds: 30,
    isFilled,
    onFrames: (frames) => {
      seen.frames += frames;
    },
    onDrained: () => {
      seen.drained += 1;
    },
    onClosed: () => {
      seen.closed += 1;
    },
    terms: OPEN_TERMS,
  });
  return { res, clock, seen, listener };
}

describe("AudioListener", () => {
  it("holds what comes before it is opened: nothing is written, then the head and all of it in order", async () => {
    const { res, listener, seen } = await rig();
    listener.notify({ seq: 0, at_ms: 0, type: "hello", audio: { start_ms: 1240 } } as Event);
    expect(listener.deliver([frame(1), event({ type: "utterance.started" }), frame(2)])).toBe("buffered");
    expect(listener.bufferedBytes()).toBe(320);
    expect([res.status, res.written.length]).toEqual(["", 0]);
    listener.open({ "content-type": "audio/basic" });
    expect(res.status).toBe("200 OK");
    expect(res.headers).toEqual({
      "content-type": "audio/basic",
      "content-security-policy": "sandbox; default-src 'none'",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "voicewire-start-ms": "1240",
      vary: "Origin",
    });
    expect(res.body.equals(Buffer.concat([Buffer.alloc(160, 1), Buffer.alloc(160, 2)]))).toBe(true);
    expect(listener.deliver([frame(3)])).toBe("sent");
    expect(listener.bufferedBytes()).toBe(0);
    expect(seen).toEqual({ frames: 3, drained: 1, closed: 0 });
  });

  it("keeps a copy of what it holds: a frame's memory is used again", async () => {
    const { res, listener } = await rig();
    // A Buffer's `slice` is a view.
    for (const bytes of [new Uint8Array(160), Buffer.alloc(160)]) {
      listener.deliver([bytes.fill(7)]);
      bytes.fill(9);
    }
    listener.open({});
    expect([res.body.length, res.body.every((byte) => byte === 7)]).toEqual([320, true]);
  });

  it("opens a body that has no beginning with a frame of silence, so that its head is sent", async () => {
    const raw = await rig();
    raw.listener.open({});
    expect(raw.res.body.equals(Buffer.alloc(160, 0xff))).toBe(true);
    const wav = await rig("wav");
    wav.listener.open({});
    expect(wav.res.body).toHaveLength(44);
  });

  it.each([
    ["wav", "720"],
    ["ogg", "720"],
    // The opening frame stands before the first of the session.
    ["ulaw", "700"],
    // 3,456 samples of silence, and 1,105 that decoders are late: tested in live-container.test.ts.
    ["mp3", "529.958"],
  ] as const)(
    "says where the body of %s begins on the timeline, opening silence counted",
    async (name, startMs) => {
      const { res, listener } = await rig(name);
      listener.notify({ seq: 0, at_ms: 0, type: "hello", audio: { start_ms: 720 } } as Event);
      listener.open({});
      expect(res.headers["voicewire-start-ms"]).toBe(startMs);
    },
  );

  it("puts no silence behind frames that an MP3 encoder still holds: the head goes with the next ones", async () => {
    const pcm = new Uint8Array(960);
    const { res, listener } = await rig("mp3");
    listener.deliver([pcm]);
    listener.open({});
    expect(res.body).toHaveLength(0);
    expect(res.headers["voicewire-start-ms"]).toBe("-46.042");
    listener.deliver([pcm, pcm, pcm, pcm]);
    expect(res.body.length).toBeGreaterThan(0);
  });

  it("writes nothing more to a blocked client, says how much waits, and goes on in order when it reads", async () => {
    const { res, listener, seen } = await rig();
    listener.open({});
    res.room = 100;
    expect(listener.deliver([frame(1)])).toBe("buffered");
    expect(listener.deliver([frame(2)])).toBe("buffered");
    expect(listener.deliver([frame(3)])).toBe("buffered");
    expect(listener.bufferedBytes()).toBe(480);
    expect(res.body).toHaveLength(320);
    const drainedBefore = seen.drained;
    res.drain(100);
    expect([listener.isBlocked, listener.bufferedBytes(), seen.drained]).toEqual([true, 320, drainedBefore]);
    res.drain(1000);
    expect([listener.isBlocked, listener.bufferedBytes(), seen.drained]).toEqual([
      false,
      0,
      drainedBefore + 1,
    ]);
    expect([...res.body.filter((_, at) => at % 160 === 0)]).toEqual([0xff, 1, 2, 3]);
  });

  it("hands on all that waited once the client reads, however many pieces it is", async () => {
    const { res, listener } = await rig();
    listener.open({ "content-type": "audio/basic" });
    res.room = 0;
    for (const byte of [1, 2, 3, 4]) listener.deliver([frame(byte)]);
    expect(listener.bufferedBytes()).toBe(640);
    res.drain();
    expect(listener.bufferedBytes()).toBe(0);
    expect(listener.deliver([frame(5)])).toBe("sent");
    expect([...res.body.subarray(-800)].filter((_, i) => i % 160 === 0)).toEqual([1, 2, 3, 4, 5]);
  });

  it("keeps a blocked response alive and gives it up after idle-seconds, its timer with it", async () => {
    const { res, listener, clock, seen } = await rig();
    listener.open({});
    res.room = 0;
    listener.deliver([frame(1)]);
    clock.advance(29_000);
    expect([res.state, res.resumes]).toEqual(["open", 7]);
    clock.advance(1000);
    expect([res.state, seen.closed, clock.pending]).toEqual(["closed", 1, 0]);
    expect(listener.deliver([frame(2)])).toBe("sent");
    expect(listener.bufferedBytes()).toBe(0);
  });

  it("gets the end of a last word out of an MP3 encoder, but not while another utterance goes on", async () => {
    const pcm = new Uint8Array(960);
    const done = event({ type: "utterance.done", outcome: "done" });
    const { res, listener, clock } = await rig("mp3");
    listener.open({});
    listener.deliver([pcm, done, pcm]);
    clock.advance(1000);
    listener.deliver([done]);
    clock.advance(200);
    const before = res.body.length;
    listener.deliver([pcm]);
    clock.advance(1000);
    // A frame of 20 ms is less than the encoder's own.
    expect(res.body.length - before).toBeLessThan(400);
    const unsettled = res.body.length;
    listener.deliver([done]);
    clock.advance(250);
    expect(res.body.length - unsettled).toBeGreaterThan(800);
    const filled = await rig("mp3", true);
    filled.listener.open({});
    filled.listener.deliver([done]);
    expect(filled.clock.pending).toBe(0);
  });

  it("puts packets without content in the place of frames that were dropped from Ogg", async () => {
    const { res, listener, seen } = await rig("ogg");
    listener.open({});
    const before = res.body.length;
    listener.notify({ seq: 0, at_ms: 0, type: "gap", frames: 10, ms: 200 } as Event);
    // One page: header, ten segments of one byte.
    expect(res.body.length - before).toBe(27 + 10 + 10);
    expect(res.body.readBigInt64LE(before + 6)).toBe(9600n);
    listener.notify({ seq: 0, at_ms: 0, type: "gap", frames: 0, events: 3 } as Event);
    expect(res.body.length - before).toBe(47);
    expect(seen.frames).toBe(10);
  });

  it("an ordinary end finishes the file, another one cuts it, and either is reported once", async () => {
    for (const [code, state] of [
      [1000, "ended"],
      [1001, "ended"],
      [4408, "closed"],
    ] as const) {
      const { res, listener, seen } = await rig("ogg");
      listener.open({});
      listener.end(code);
      listener.end(code);
      listener.markAborted();
      expect([res.state, seen.closed]).toEqual([state, 1]);
      // The flags of the last page: end of stream.
      if (state === "ended") expect(res.written.at(-1)?.[5]).toBe(4);
    }
  });

  it("ends without a word where it was never opened, and touches nothing after an abort", async () => {
    const early = await rig();
    early.listener.end(1001);
    expect([early.res.state, early.res.status, early.listener.isClosed]).toEqual(["open", "", true]);
    const aborted = await rig();
    aborted.listener.open({});
    const before = aborted.res.body.length;
    aborted.listener.markAborted();
    aborted.listener.deliver([frame(1)]);
    aborted.listener.sendSilence(3);
    aborted.listener.notify({ type: "gap", seq: 0, at_ms: 0, frames: 1, ms: 20 });
    aborted.listener.end(1001);
    aborted.res.drain(100);
    expect([aborted.res.body.length, aborted.res.state, aborted.seen.closed]).toEqual([before, "open", 1]);
  });
});
