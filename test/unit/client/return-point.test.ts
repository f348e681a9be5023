import { describe, expect, it } from "vitest";
import { ReturnPoint } from "../../../src/client/return-point.ts";
import type { Event, HelloEvent } from "../../../src/protocol/events.ts";

function hello(epoch: string, seq: number): HelloEvent {
  return { type: "hello", epoch, seq, at_ms: 0, resumed: true, resume_token: `t-${epoch}` } as HelloEvent;
}

function event(type: Event["type"], seq: number): Event {
  return { type, seq, at_ms: 0 } as Event;
}

describe("ResumePoint", () => {
  it("value() is the token, the latest shared event, and the end of the audio where there is audio", () => {
    const point = new ReturnPoint(hello("e", 7));
    expect(point.value(120)).toEqual({ resume: "t-e", seq: 7, at_ms: 120 });
    point.take(event("words", 9));
    expect(point.value(1 / 3)).toEqual({ resume: "t-e", seq: 9, at_ms: 0.333 });
    expect(point.value(null)).toEqual({ resume: "t-e", seq: 9, at_ms: null });
  });

  it("value() goes by what came to everybody: answers repeat a number that runs ahead of this connection", () => {
    const point = new ReturnPoint(hello("e", 40));
    point.take(event("utterance.started", 40));
    point.take(event("words", 31));
    for (const type of ["pong", "utterance.queued", "error", "paused", "gap"] as const)
      expect(point.take(event(type, 40))).toBe(true);
    expect(point.value(null)).toEqual({ resume: "t-e", seq: 31, at_ms: null });
  });

  it("take() drops what came on an earlier socket, and no answer to a command", () => {
    const point = new ReturnPoint(hello("e", 0));
    for (const seq of [1, 2, 3]) expect(point.take(event("words", seq))).toBe(true);
    expect(point.rejoin(hello("e", 5))).toBe(true);
    expect([2, 3, 4].map((seq) => point.take(event("words", seq)))).toEqual([false, false, true]);
    expect(point.take(event("pong", 3))).toBe(true);
    expect([2, 3].map((seq) => point.take(event("error", seq)))).toEqual([false, true]);
    expect([4, 5, 6].map((seq) => point.isReplayed(event("words", seq)))).toEqual([true, true, false]);
  });

  it("take() counts a warning about an utterance, which everybody gets, and no other warning", () => {
    const point = new ReturnPoint(hello("e", 0));
    const recovered = (seq: number) => ({ ...event("warning", seq), utterance_id: "u", start: 3 }) as Event;
    point.take(event("words", 1));
    expect(point.take(recovered(2))).toBe(true);
    expect(point.take(event("warning", 9))).toBe(true);
    expect(point.value(null)).toEqual({ resume: "t-e", seq: 2, at_ms: null });
    point.rejoin(hello("e", 5));
    expect([1, 2, 3].map((seq) => point.take(recovered(seq)))).toEqual([false, false, true]);
    expect(point.take(event("warning", 1))).toBe(true);
  });

  it("rejoin() on another epoch begins again", () => {
    const point = new ReturnPoint(hello("e", 0));
    point.take(event("words", 50));
    expect(point.rejoin(hello("f", 0))).toBe(false);
    expect(point.value(null)).toEqual({ resume: "t-f", seq: 0, at_ms: null });
    expect(point.take(event("words", 1))).toBe(true);
  });
});
