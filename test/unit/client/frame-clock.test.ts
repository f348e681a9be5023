import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FrameClock } from "../../../src/client/frame-clock.ts";
import type { AudioDescription } from "../../../src/protocol/events.ts";

function audio(start_ms: number, frame_ms: number): AudioDescription {
  return {
    codec: "pcm_s16le",
    sample_rate: 8000,
    channels: 1,
    frame_ms,
    frame_samples: frame_ms * 8,
    frame_bytes: frame_ms * 16,
    start_ms,
  };
}

describe("FrameClock", () => {
  it("next() counts frames from start_ms, one frame_ms each", () => {
    const clock = new FrameClock();
    clock.restart(audio(1000, 20));
    expect([clock.next(), clock.next(), clock.next()]).toEqual([
      { index: 0, atMs: 1000 },
      { index: 1, atMs: 1020 },
      { index: 2, atMs: 1040 },
    ]);
  });

  it("skip() leaves a gap's frames out and keeps counting what came", () => {
    const clock = new FrameClock();
    clock.restart(audio(0, 20));
    clock.next();
    clock.skip({ frames: 3 });
    expect(clock.next()).toEqual({ index: 1, atMs: 80 });
  });

  it("moveTo() places the next frame where a cut says", () => {
    const clock = new FrameClock();
    clock.restart(audio(0, 20));
    clock.next();
    clock.moveTo(340);
    expect(clock.next()?.atMs).toBe(340);
    expect(clock.next()?.atMs).toBe(360);
  });

  it("restart() begins at the new description's start with its frame length", () => {
    const clock = new FrameClock();
    clock.restart(audio(0, 20));
    clock.next();
    clock.skip({ frames: 5 });
    clock.restart(audio(500, 40));
    expect(clock.next()).toEqual({ index: 1, atMs: 500 });
    expect(clock.next()).toEqual({ index: 2, atMs: 540 });
  });

  it("rejoin() leaves out the frames that came before, and counts on", () => {
    const clock = new FrameClock();
    clock.restart(audio(0, 20));
    for (let n = 0; n < 5; n += 1) clock.next();
    expect(clock.endMs).toBe(100);
    expect(clock.rejoin(audio(60, 20))).toBe(0);
    expect(clock.endMs).toBe(100);
    expect([clock.next(), clock.next()]).toEqual([null, null]);
    expect(clock.next()).toEqual({ index: 5, atMs: 100 });
    expect(clock.endMs).toBe(120);
  });

  it("rejoin() gives the gap where the first frame stands beyond what has come", () => {
    const clock = new FrameClock();
    clock.restart(audio(0, 20));
    clock.next();
    expect(clock.rejoin(audio(500, 20))).toBe(480);
    expect(clock.hasSkipped).toBe(true);
    expect(clock.next()).toEqual({ index: 1, atMs: 500 });
  });

  it("moveTo() after rejoin() takes the frames of the new place, however early it is", () => {
    const clock = new FrameClock();
    clock.restart(audio(0, 20));
    for (let n = 0; n < 10; n += 1) clock.next();
    clock.rejoin(audio(200, 20));
    clock.moveTo(120);
    expect(clock.next()).toEqual({ index: 10, atMs: 120 });
  });

  it("forget() takes every frame of another timeline", () => {
    const clock = new FrameClock();
    clock.restart(audio(5000, 20));
    clock.next();
    clock.forget();
    expect(clock.rejoin(audio(0, 20))).toBe(0);
    expect(clock.next()).toEqual({ index: 1, atMs: 0 });
  });

  it("hands out each frame once and in order, wherever a socket breaks and from wherever the next one goes on", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ frames: fc.nat(20), back: fc.nat(30) }), { minLength: 1, maxLength: 10 }),
        (sockets) => {
          const clock = new FrameClock();
          clock.restart(audio(0, 20));
          const got: number[] = [];
          let at = 0;
          for (const { frames, back } of sockets) {
            for (let n = 0; n < frames; n += 1, at += 20) {
              const position = clock.next();
              if (position !== null) got.push(position.atMs);
            }
            at = Math.max(0, at - back * 20);
            clock.rejoin(audio(at, 20));
          }
          expect(got).toEqual(got.map((_, index) => index * 20));
        },
      ),
    );
  });

  it("does not drift: every run of frames and gaps lands on start + (frames + skipped) * frame_ms exactly", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(10, 20, 40, 60),
        fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 50 })), { maxLength: 300 }),
        (frameMs, steps) => {
          const clock = new FrameClock();
          clock.restart(audio(120, frameMs));
          let passed = 0;
          for (const frames of steps) {
            if (frames > 0) clock.skip({ frames });
            else clock.next();
            passed += frames > 0 ? frames : 1;
          }
          expect(clock.next()?.atMs).toBe(120 + passed * frameMs);
        },
      ),
    );
  });
});
