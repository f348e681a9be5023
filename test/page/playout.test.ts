import { describe, expect, it } from "vitest";
import type { AudioOut } from "../../src/page/sound/audio-out.ts";
import { Playout } from "../../src/page/sound/playout.ts";

/** An out whose clock is turned by hand and that remembers what it was to play. */
class HandOut implements AudioOut {
  timeS = 100;
  latencyS = 0;
  scheduled: { startS: number; samples: Float32Array }[] = [];
  silences = 0;
  nowS = () => this.timeS;
  playedS = () => this.timeS - this.latencyS;
  level = () => 0;
  close = () => undefined;
  schedule(samples: Float32Array<ArrayBuffer>, startS: number): void {
    this.scheduled.push({ samples, startS });
  }
  silence(): void {
    this.silences += 1;
  }
}

function block(): Float32Array<ArrayBuffer> {
  return new Float32Array(960).fill(0.5);
}

describe("Playout", () => {
  it("push() puts blocks end to end on exact samples", () => {
    const out = new HandOut();
    const playout = new Playout(out);
    for (let index = 0; index < 500; index += 1) playout.push(block(), index * 20);
    const first = Math.round((out.scheduled[0]?.startS ?? 0) * 48_000);
    for (const [index, { startS }] of out.scheduled.entries()) {
      expect(startS * 48_000).toBeCloseTo(first + index * 960, 5);
    }
  });

  it("push() gathers a little audio before it starts, and more after it ran dry", () => {
    const out = new HandOut();
    const playout = new Playout(out);
    playout.push(block(), 0);
    const firstWaitS = (out.scheduled[0]?.startS ?? 0) - out.timeS;
    expect(firstWaitS).toBeGreaterThanOrEqual(0.06);
    expect(firstWaitS).toBeLessThan(0.061);
    out.timeS += 1;
    playout.push(block(), 20);
    expect(playout.underruns).toBe(1);
    expect((out.scheduled[1]?.startS ?? 0) - out.timeS).toBeGreaterThan(0.1);
    expect(out.scheduled[1]?.samples[0]).toBe(0);
    expect(out.scheduled[1]?.samples[959]).toBe(0.5);
  });

  it("expectStart() makes the pause before an utterance no underrun", () => {
    const out = new HandOut();
    const playout = new Playout(out);
    playout.push(block(), 0);
    out.timeS += 10;
    playout.expectStart();
    playout.push(block(), 20);
    expect(playout.underruns).toBe(0);
  });

  it("positionMs is what is heard, behind what is played by the device's latency", () => {
    const out = new HandOut();
    out.latencyS = 0.04;
    const playout = new Playout(out);
    for (let index = 0; index < 10; index += 1) playout.push(block(), 1000 + index * 20);
    out.timeS = (out.scheduled[0]?.startS ?? 0) + 0.1;
    expect(playout.positionMs).toBeCloseTo(1060, 5);
    expect(playout.aheadMs).toBeCloseTo(140, 5);
  });

  it("silence() stops the sound, keeps the position and starts again with what comes next", () => {
    const out = new HandOut();
    const playout = new Playout(out);
    for (let index = 0; index < 20; index += 1) playout.push(block(), index * 20);
    out.timeS = (out.scheduled[0]?.startS ?? 0) + 0.1;
    playout.silence();
    expect(out.silences).toBe(1);
    expect(playout.aheadMs).toBe(0);
    out.timeS += 3;
    expect(playout.positionMs).toBeCloseTo(100, 5);
    playout.push(block(), 400);
    out.timeS += 0.07;
    expect(playout.positionMs).toBeCloseTo(410, 0);
    expect(playout.underruns).toBe(0);
  });

  it("use() goes on at the same position on another clock", () => {
    const out = new HandOut();
    const playout = new Playout(out);
    playout.push(block(), 700);
    out.timeS = (out.scheduled[0]?.startS ?? 0) + 0.01;
    const other = new HandOut();
    other.timeS = 5;
    playout.use(other);
    expect(playout.positionMs).toBeCloseTo(710, 5);
    playout.push(block(), 720);
    other.timeS = 5.07;
    expect(playout.positionMs).toBeCloseTo(730, 0);
  });

  it("push() drops what is further ahead than the bound and counts it", () => {
    const out = new HandOut();
    const playout = new Playout(out);
    const second = () => new Float32Array(48_000);
    for (let index = 0; index < 200; index += 1) playout.push(second(), index * 1000);
    expect(playout.droppedBlocks).toBeGreaterThan(0);
    expect(out.scheduled.length).toBeLessThanOrEqual(182);
  });
});
