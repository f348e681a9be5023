import { expect, test } from "vitest";
import { LiveDisplay } from "../../../src/cli/output/live-display.ts";
import { PlayoutClock } from "../../../src/cli/output/playout.ts";
import { Script, type Span } from "../../../src/cli/output/script.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

function setUp() {
  const clock = new FakeClock();
  const script = new Script();
  const playout = new PlayoutClock(clock);
  const drawn: string[] = [];
  const progress: number[] = [];
  let finished: string | undefined;
  const display = new LiveDisplay({
    clock,
    script,
    playout,
    view: {
      draw: (text: string, span: Span) => drawn.push(text.slice(span.start, span.end)),
      finish: (text: string, end: number) => {
        finished ??= text.slice(0, end);
      },
    },
    onProgress: (ms) => progress.push(ms),
  });
  script.append("one two", { utteranceId: "u", start: 0 });
  script.time("u", { text: "one", start: 0, end: 3, start_ms: 0, end_ms: 200 });
  script.time("u", { text: "two", start: 4, end: 7, start_ms: 200, end_ms: 400 });
  return { clock, script, playout, drawn, progress, display, finished: () => finished };
}

test("LiveDisplay draws each word once, when the playout has reached it", () => {
  const { clock, playout, drawn, progress, display } = setUp();
  display.start();
  clock.advance(500);
  // No audio has come: the clock stands at the first word.
  expect(drawn).toEqual(["one"]);
  expect(progress).toEqual([]);
  playout.frame(400, 400);
  clock.advance(180);
  expect(drawn).toEqual(["one"]);
  clock.advance(100);
  expect(drawn).toEqual(["one", "two"]);
  clock.advance(200);
  expect(drawn).toEqual(["one", "two", ""]);
  expect(progress.length).toBeGreaterThan(0);
  expect(Math.max(...progress)).toBeLessThanOrEqual(400);
  display.stop();
});

test("LiveDisplay played() resolves when the audio has been played, not when it has arrived", async () => {
  const { clock, playout, display } = setUp();
  display.start();
  playout.frame(400, 400);
  let isPlayed = false;
  const played = display.played(10_000).then(() => {
    isPlayed = true;
  });
  clock.advance(390);
  await Promise.resolve();
  expect(isPlayed).toBe(false);
  clock.advance(60);
  await played;
  display.stop();
});

test("LiveDisplay stop() ends at what was spoken and lets nobody wait", async () => {
  const { clock, playout, display, finished, drawn } = setUp();
  display.start();
  playout.frame(400, 400);
  const played = display.played(400);
  clock.advance(100);
  display.stop();
  await played;
  expect(finished()).toBe("one");
  const count = drawn.length;
  clock.advance(1000);
  expect(drawn).toHaveLength(count);
});
