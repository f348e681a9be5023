/** Bodies that are passed on: what the server library hears while nobody reads them. */
import type { HttpResponse } from "uWebSockets.js";
import { describe, expect, it } from "vitest";
import { UPLOAD_BYTES, UploadBody } from "../../../src/server/proxy/proxy-body.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

/** The server library cuts a socket that was paused for so long, ms. */
const LIBRARY_TIMEOUT_MS = 10_000;

function upload({ waitMs = 0 } = {}) {
  const clock = new FakeClock();
  let onData: (chunk: ArrayBuffer, isLast: boolean) => void = () => undefined;
  let isPaused = false;
  let heardAtMs = clock.nowMs();
  const res: Pick<HttpResponse, "onData" | "pause" | "resume"> = {
    onData: (handler) => {
      onData = (chunk, isLast) => handler(chunk, isLast);
      return res as HttpResponse;
    },
    pause: () => {
      isPaused = true;
      return res as HttpResponse;
    },
    resume: () => {
      isPaused = false;
      heardAtMs = clock.nowMs();
      return res as HttpResponse;
    },
  };
  let waitsMs = waitMs;
  const body = new UploadBody(res as HttpResponse, {
    clock,
    onPiece: () => undefined,
    pass: () => waitsMs,
    onSlowed: () => undefined,
  });
  return {
    clock,
    body,
    send: (bytes: number, isLast = false) => onData(new ArrayBuffer(bytes), isLast),
    slow: (ms: number) => {
      waitsMs = ms;
    },
    state: () => ({ isPaused, isInTime: clock.nowMs() - heardAtMs < LIBRARY_TIMEOUT_MS }),
  };
}

/** In small steps, as timers run in real time. */
function pass(clock: FakeClock, seconds: number): void {
  for (let second = 0; second < seconds; second += 1) clock.advance(1000);
}

describe("an upload that the upstream does not read", () => {
  it("is not cut by the server library, and goes on when it is read", () => {
    const { clock, body, send, state } = upload();
    send(2 * UPLOAD_BYTES);
    for (let times = 0; times < 5; times += 1) {
      pass(clock, 9);
      expect(state()).toEqual({ isPaused: true, isInTime: true });
    }
    body.read();
    expect(state().isPaused).toBe(false);
    pass(clock, 9);
    expect(state().isPaused).toBe(false);
  });

  it("stays paused where it was slowed down besides", () => {
    const { clock, body, send, slow, state } = upload();
    slow(30_000);
    send(2 * UPLOAD_BYTES);
    pass(clock, 20);
    body.read();
    expect(state()).toEqual({ isPaused: true, isInTime: true });
    pass(clock, 11);
    expect(state().isPaused).toBe(false);
  });

  it("is left alone when it is over", () => {
    const { clock, body, send, state } = upload();
    send(2 * UPLOAD_BYTES);
    body.end();
    pass(clock, 20);
    expect(state()).toEqual({ isPaused: true, isInTime: false });
  });
});
