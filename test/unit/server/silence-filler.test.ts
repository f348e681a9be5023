import { describe, expect, it } from "vitest";
import { SilenceFiller } from "../../../src/server/players/silence-filler.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

function rig(leadMs = 300) {
  const clock = new FakeClock();
  const state = { isBlocked: false, sent: 0 };
  const filler = new SilenceFiller({
    clock,
    frameMs: 20,
    leadMs,
    isBlocked: () => state.isBlocked,
    send: (frames) => {
      state.sent += frames;
    },
  });
  return { clock, state, filler };
}

describe("SilenceFiller", () => {
  it.each([
    [300, 100],
    [60, 60],
    [0, 0],
  ])("with a lead of %i ms keeps the audio between the clock and %i ms ahead of it", (leadMs, aheadMs) => {
    const { clock, state, filler } = rig(leadMs);
    const startMs = clock.nowMs();
    filler.start();
    for (let step = 0; step < 500; step += 1) {
      clock.advance(10);
      const leftMs = state.sent * 20 - (clock.nowMs() - startMs);
      expect(leftMs).toBeLessThanOrEqual(aheadMs);
      // A tick and a frame late at most.
      expect(leftMs).toBeGreaterThan(aheadMs - 60);
    }
  });

  it("is quiet while frames of the session last, and goes on when they are played", () => {
    const { clock, state, filler } = rig();
    filler.start();
    const opening = state.sent;
    filler.note(100);
    clock.advance(1900);
    expect(state.sent).toBe(opening);
    clock.advance(1000);
    expect(state.sent * 20).toBeGreaterThan(800);
  });

  it("does not make up for time in which the client read nothing", () => {
    const { clock, state, filler } = rig();
    filler.start();
    const opening = state.sent;
    state.isBlocked = true;
    clock.advance(60_000);
    expect(state.sent).toBe(opening);
    state.isBlocked = false;
    clock.advance(40);
    expect(state.sent - opening).toBeLessThanOrEqual(10);
  });

  it("stops with its timer", () => {
    const { clock, state, filler } = rig();
    filler.start();
    filler.stop();
    filler.stop();
    expect(clock.pending).toBe(0);
    clock.advance(1000);
    expect(state.sent).toBe(5);
  });
});
