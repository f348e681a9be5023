import { expect, it } from "vitest";
import { FrameLateness, GroupLateness } from "../../../bench/kit/lateness.ts";

const GRID = { leadMs: 300, batchMs: 100, isAnchored: true };
/** In one go; frame k is played at k x 20 ms. */
const FRAMES = 5;

/** Frames from `from` on, each `shiftMs` behind the earliest that it may leave. */
function send(listener: FrameLateness, from: number, shiftMs: number): void {
  for (let k = from; k < from + FRAMES; k += 1) listener.note(20 * k - GRID.leadMs + shiftMs);
}

it("a pause of the speech makes frames late until the grid is set again, and later ones are judged by the new grid", () => {
  const group = new GroupLateness();
  const listener = new FrameLateness(group, GRID);
  listener.anchor(0);
  send(listener, 0, 0);
  expect(group.summary()).toMatchObject({ frames: FRAMES, maxMs: 0 });
  send(listener, FRAMES, 500);
  expect(group.summary().maxMs).toBeCloseTo(400, 6);
  group.learn();
  send(listener, 2 * FRAMES, 500);
  group.rebase();
  group.restart();
  send(listener, 3 * FRAMES, 500);
  expect(group.summary()).toMatchObject({ frames: FRAMES, maxMs: 0 });
  send(listener, 4 * FRAMES, 650);
  expect(group.summary().maxMs).toBeCloseTo(50, 6);
});
