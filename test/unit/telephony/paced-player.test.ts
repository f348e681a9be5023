import { describe, expect, it } from "vitest";
import { Pacer } from "../../../src/delivery/pacer.ts";
import { type PacedFrame, PacedPlayer } from "../../../src/telephony/paced-player.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { HeldClock } from "./held-clock.ts";

const SILENCE = Uint8Array.of(255);

function playing() {
  const clock = new HeldClock();
  const pacer = new Pacer(clock);
  const sent: { readonly atMs: number; readonly frame: PacedFrame }[] = [];
  const reported: string[] = [];
  const player = new PacedPlayer({
    frameMs: 20,
    silence: SILENCE,
    register: (paced) => pacer.register(paced, "first"),
    nowMs: () => clock.nowMs(),
    send: (frame) => sent.push({ atMs: clock.nowMs(), frame }),
    onSkipped: (frames) => reported.push(`skipped ${frames}`),
    onPlayed: (name) => reported.push(`${name} at ${clock.nowMs()}`),
  });
  const bytes = () => sent.map(({ frame }) => frame.bytes[0]);
  const starts = () => sent.map(({ frame }) => frame.isTalkspurtStart);
  return { clock, player, sent, reported, bytes, starts };
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

  it("reports a mark when the frame before it is over", () => {
    const { clock, player, reported } = playing();
    player.start();
    player.push([frame(1), frame(2)]);
    player.mark("a");
    player.push([frame(3)]);
    player.mark("b");
    clock.advance(200);
    expect(reported).toEqual(["a at 1060", "b at 1080"]);
  });

  it("plays nothing that was cleared, and reports none of its marks", () => {
    const { clock, player, reported, bytes } = playing();
    player.start();
    player.push([frame(1), frame(2), frame(3)]);
    player.mark("a");
    clock.advance(20);
    player.clear();
    clock.advance(20);
    player.push([frame(9)]);
    clock.advance(40);
    expect(bytes()).toEqual([1, 255, 9, 255]);
    expect(reported).toEqual([]);
  });

  it("makes up for three late beats half a frame apart and skips the rest, so that nothing bursts", () => {
    const { clock, player, sent, reported, bytes, starts } = playing();
    player.start();
    player.push(Array.from({ length: 20 }, (_, at) => frame(at)));
    clock.advance(20);
    expect(bytes()).toEqual([0]);
    // The process was held up: the beats at 1040 ... 1240 are due at once.
    clock.holdUntil(1247);
    expect(reported).toEqual(["skipped 8"]);
    clock.advance(113);
    expect(bytes()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(sent.slice(1).map(({ atMs }) => atMs)).toEqual([
      1247, 1260, 1272, 1284, 1296, 1308, 1320, 1340, 1360,
    ]);
    expect(starts().slice(1)).toEqual([true, ...Array.from({ length: 8 }, () => false)]);
  });

  it("goes on with the grid after a wake that is late by less than a frame, and leaves nothing out", () => {
    const { clock, player, sent, reported } = playing();
    player.start();
    clock.holdUntil(1035);
    clock.advance(45);
    // The one after it is put off, so that no two are closer than half a frame.
    expect(sent.map(({ atMs }) => atMs)).toEqual([1035, 1048, 1060, 1080]);
    expect(reported).toEqual([]);
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
    player.push(Array.from({ length: 1005 }, (_, at) => frame(at % 200)));
    for (let beat = 0; beat < 1001; beat += 1) clock.advance(20);
    expect(bytes().slice(0, 2)).toEqual([5, 6]);
    expect(bytes().slice(-2)).toEqual([1004 % 200, 0xff]);
  });

  it("is silent for good once it is stopped, also by a mark's own doing", () => {
    const clock = new FakeClock();
    const pacer = new Pacer(clock);
    let beats = 0;
    const player: PacedPlayer = new PacedPlayer({
      frameMs: 20,
      silence: SILENCE,
      register: (paced) => pacer.register(paced, "first"),
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
