import { describe, expect, it } from "vitest";
import { type PacedFrame, PacedPlayer } from "../../../src/calls/paced-player.ts";
import { Pacer } from "../../../src/fanout/pacer.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

const SILENCE = Uint8Array.of(255);

function playing() {
  const clock = new FakeClock();
  const pacer = new Pacer(clock);
  const sent: { readonly atMs: number; readonly frames: readonly PacedFrame[] }[] = [];
  const told: string[] = [];
  const player = new PacedPlayer({
    frameMs: 20,
    silence: SILENCE,
    register: (paced) => pacer.register(paced),
    nowMs: () => clock.nowMs(),
    send: (frames) => sent.push({ atMs: clock.nowMs(), frames }),
    onSkipped: (frames) => told.push(`skipped ${frames}`),
    onPlayed: (name) => told.push(`${name} at ${clock.nowMs()}`),
  });
  const bytes = () => sent.flatMap(({ frames }) => frames.map((frame) => frame.bytes[0]));
  const starts = () => sent.flatMap(({ frames }) => frames.map((frame) => frame.isTalkspurtStart));
  return { clock, player, sent, told, bytes, starts };
}

const frame = (value: number): Uint8Array => Uint8Array.of(value);

describe("PacedPlayer", () => {
  it("sends one frame each beat of the grid, and silence where there is none", () => {
    const { clock, player, sent, bytes, starts } = playing();
    clock.advance(7);
    player.start();
    player.push([frame(1), frame(2)]);
    clock.advance(100);
    expect(sent.map(({ atMs }) => atMs)).toEqual([1020, 1040, 1060, 1080, 1100]);
    expect(bytes()).toEqual([1, 2, 255, 255, 255]);
    expect(starts()).toEqual([true, false, false, false, false]);
  });

  it("says where speech begins after silence, and only there", () => {
    const { clock, player, starts } = playing();
    player.start();
    clock.advance(40);
    player.push([frame(1), frame(2)]);
    clock.advance(60);
    player.push([frame(3)]);
    clock.advance(20);
    expect(starts()).toEqual([false, false, true, false, false, true]);
  });

  it("tells of a mark when the frame before it is over", () => {
    const { clock, player, told } = playing();
    player.start();
    player.push([frame(1), frame(2)]);
    player.mark("a");
    player.push([frame(3)]);
    player.mark("b");
    clock.advance(200);
    expect(told).toEqual(["a at 1060", "b at 1080"]);
  });

  it("plays nothing that was cleared, and tells of none of its marks", () => {
    const { clock, player, told, bytes } = playing();
    player.start();
    player.push([frame(1), frame(2), frame(3)]);
    player.mark("a");
    clock.advance(20);
    player.clear();
    clock.advance(20);
    player.push([frame(9)]);
    clock.advance(40);
    expect(bytes()).toEqual([1, 255, 9, 255]);
    expect(told).toEqual([]);
  });

  it("makes up for three late beats and skips the rest, so that nothing bursts", () => {
    const { clock, player, sent, told, bytes, starts } = playing();
    player.start();
    player.push(Array.from({ length: 20 }, (_, at) => frame(at)));
    clock.advance(20);
    expect(bytes()).toEqual([0]);
    // The process was held up: beats at 1040 ... 1240 are due at once.
    player.tick(1240);
    player.send();
    expect(told).toEqual(["skipped 8"]);
    expect(sent.at(-1)?.frames.map((due) => due.bytes[0])).toEqual([1, 2, 3]);
    expect(starts().slice(1)).toEqual([true, false, false]);
  });

  it("copies what it keeps", () => {
    const { clock, player, bytes } = playing();
    player.start();
    const lent = frame(1);
    player.push([lent]);
    lent.fill(7);
    clock.advance(20);
    expect(bytes()).toEqual([1]);
  });

  it("holds so much at most, and drops the oldest", () => {
    const { clock, player, bytes } = playing();
    player.start();
    const dropped = player.push(Array.from({ length: 1005 }, (_, at) => frame(at % 200)));
    expect([dropped, player.waitingCount]).toEqual([5, 1000]);
    clock.advance(20);
    expect(bytes()).toEqual([5]);
  });

  it("is silent for good once it is stopped, also by a mark's own doing", () => {
    const clock = new FakeClock();
    const pacer = new Pacer(clock);
    let beats = 0;
    const player: PacedPlayer = new PacedPlayer({
      frameMs: 20,
      silence: SILENCE,
      register: (paced) => pacer.register(paced),
      nowMs: () => clock.nowMs(),
      send: () => (beats += 1),
      onSkipped: () => undefined,
      onPlayed: () => player.stop(),
    });
    player.start();
    player.push([frame(1)]);
    player.mark("end");
    player.push([frame(2)]);
    clock.advance(200);
    expect(beats).toBe(1);
    expect(clock.pending).toBe(0);
  });
});
