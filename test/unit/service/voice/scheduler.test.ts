/** Whose turn it is: scripted jobs on a clock that their steps turn. */
import { beforeAll, describe, expect, it } from "vitest";
import { FIRST_PATIENCE_MS } from "../../../../src/service/voice/deadline.ts";
import { Engine } from "../../../../src/service/voice/engine/engine.ts";
import { Scheduler } from "../../../../src/service/voice/scheduler.ts";
import { FakeClock } from "../../../helpers/fake-clock.ts";
import { JOB_DEFAULTS } from "../../../helpers/voice-job.ts";

interface Step {
  readonly tookMs: number;
  /** That leaves with it. */
  readonly audioMs: number;
}

/** A sentence: the engine speaks it whole, the first chunk leaves meanwhile, the others are encoded afterwards. */
const SENTENCE: readonly Step[] = [
  { tookMs: 10, audioMs: 200 },
  { tookMs: 1, audioMs: 400 },
  { tookMs: 1, audioMs: 900 },
];

let engine: Engine;
beforeAll(async () => {
  engine = await Engine.load();
});

function startThread() {
  const clock = new FakeClock();
  const beganMs = clock.nowMs();
  const scripts: { readonly id: number; readonly steps: readonly Step[] }[] = [];
  const turns: { readonly id: number; readonly atMs: number; readonly audioMs: number }[] = [];
  const ended = new Map<number, string>();
  /** How late the thread was, by what the first chunk of each job says. */
  const behindMs = new Map<number, number | undefined>();
  let onEnded: (id: number) => void = () => undefined;
  const scheduler = new Scheduler({
    engine,
    clock,
    reply: (id, message) => {
      if (message.type === "chunk" && !behindMs.has(id)) behindMs.set(id, message.chunk.behindMs);
      if (message.type !== "ended") return;
      ended.set(id, message.outcome);
      onEnded(id);
    },
    createJob: ({ emit }) => {
      const script = scripts.shift();
      if (script === undefined) throw new RangeError("No script is left");
      const left = [...script.steps];
      let emittedMs = 0;
      return {
        isWaiting: false,
        synthesizedMs: 0,
        get emittedMs() {
          return emittedMs;
        },
        receive: () => undefined,
        close: () => undefined,
        step: () => {
          const step = left.shift();
          if (step === undefined) return false;
          clock.stall(step.tookMs);
          emittedMs += step.audioMs;
          emit({ audio: new Uint8Array(0), timing: null });
          turns.push({ id: script.id, atMs: clock.nowMs() - beganMs, audioMs: step.audioMs });
          return left.length > 0;
        },
      };
    },
  });
  const cancelled = () => new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  return {
    scheduler,
    clock,
    turns,
    ended,
    behindMs,
    /** Ids in the order of their turns. */
    get order() {
      return turns.map(({ id }) => id);
    },
    open(id: number, steps: readonly Step[], aheadMs?: number): void {
      scripts.push({ id, steps });
      scheduler.open(id, { ...JOB_DEFAULTS, format: "pcm_16000", aheadMs }, cancelled());
    },
    onEnded(action: (id: number) => void): void {
      onEnded = action;
    },
    /** Until all jobs are over. */
    async run(jobs: number): Promise<void> {
      while (ended.size < jobs) await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

/** The longest that a player had nothing to play which began with the job's first audio, ms. */
function longestGapMs(turns: ReturnType<typeof startThread>["turns"], id: number): number {
  let [dueMs, longestMs] = [Number.POSITIVE_INFINITY, 0];
  for (const { atMs, audioMs } of turns.filter((turn) => turn.id === id)) {
    longestMs = Math.max(longestMs, atMs - dueMs);
    dueMs = (dueMs === Number.POSITIVE_INFINITY ? atMs : Math.max(dueMs, atMs)) + audioMs;
  }
  return longestMs;
}

describe("Scheduler", () => {
  it("says with a job's first chunk how late the job is that is worst off", async () => {
    const thread = startThread();
    thread.open(1, [{ tookMs: 40, audioMs: 1000 }], 50);
    thread.open(2, [{ tookMs: 30, audioMs: 1000 }], 60);
    thread.open(3, [{ tookMs: 10, audioMs: 1000 }], 100);
    await thread.run(3);
    // At 40 ms nobody is late yet; at 70 ms the second one is by 10, at 80 ms the third one is not.
    expect([...thread.behindMs]).toEqual([
      [1, 0],
      [2, 10],
      [3, 0],
    ]);
  });

  it("lets no stream run dry while fifty begin", async () => {
    const thread = startThread();
    const ids = Array.from({ length: 50 }, (_, index) => index + 1);
    for (const id of ids) thread.open(id, SENTENCE);
    await thread.run(ids.length);
    expect(ids.map((id) => longestGapMs(thread.turns, id))).toEqual(ids.map(() => 0));
  });

  it("gives the first turns in the order of arrival", async () => {
    const thread = startThread();
    for (const id of [1, 2, 3]) thread.open(id, [{ tookMs: 10, audioMs: 1000 }]);
    await thread.run(3);
    expect(thread.order).toEqual([1, 2, 3]);
  });

  it("says what is heard first before what is asked for ahead of time", async () => {
    const thread = startThread();
    thread.open(1, SENTENCE, 3000);
    thread.open(2, SENTENCE);
    thread.open(3, SENTENCE, 100);
    await thread.run(3);
    expect([...new Set(thread.order)]).toEqual([3, 2, 1]);
  });

  it("lets a job that is far ahead of its player wait for a new one", async () => {
    const thread = startThread();
    const long = Array.from({ length: 20 }, (): Step => ({ tookMs: 1, audioMs: 1000 }));
    thread.open(1, long);
    while (thread.turns.length < 5) await new Promise((resolve) => setImmediate(resolve));
    thread.open(2, [{ tookMs: 1, audioMs: 1000 }]);
    await thread.run(2);
    // Its turn may have been due already, and its encoder is made meanwhile.
    expect(thread.order.lastIndexOf(2)).toBeLessThan(thread.order.length - 5);
  });

  it("makes new ones wait where those that speak need all turns, and not for ever", async () => {
    const thread = startThread();
    // Just as fast as it is played.
    const slow = Array.from({ length: 30 }, (): Step => ({ tookMs: 100, audioMs: 100 }));
    thread.open(1, slow);
    while (thread.turns.length < 2) await new Promise((resolve) => setImmediate(resolve));
    const openedMs = thread.turns.at(-1)?.atMs ?? 0;
    thread.open(2, [{ tookMs: 10, audioMs: 1000 }]);
    await thread.run(2);
    const firstMs = thread.turns.find(({ id }) => id === 2)?.atMs ?? 0;
    expect(firstMs - openedMs).toBeGreaterThan(FIRST_PATIENCE_MS / 2);
    expect(firstMs - openedMs).toBeLessThan(FIRST_PATIENCE_MS + 200);
  });

  it("comes to what was asked for ahead of time, however many begin meanwhile", async () => {
    const thread = startThread();
    let next = 1;
    const begin = () => {
      next += 1;
      thread.open(next, [{ tookMs: 50, audioMs: 1000 }]);
    };
    thread.open(1, [{ tookMs: 50, audioMs: 1000 }], 2000);
    thread.onEnded(() => {
      if (!thread.ended.has(1)) begin();
    });
    begin();
    begin();
    await thread.run(1);
    while (!thread.ended.has(1)) await new Promise((resolve) => setImmediate(resolve));
    const atMs = thread.turns.find(({ id }) => id === 1)?.atMs ?? 0;
    expect(atMs).toBeGreaterThan(1000);
    expect(atMs).toBeLessThanOrEqual(2000);
  });

  it("gives a cancelled job no further turn, and the others theirs", async () => {
    const thread = startThread();
    for (const id of [1, 2, 3]) thread.open(id, SENTENCE);
    while (thread.turns.length < 1) await new Promise((resolve) => setImmediate(resolve));
    thread.scheduler.cancel(2);
    await thread.run(3);
    expect(thread.order).not.toContain(2);
    expect(Object.fromEntries(thread.ended)).toEqual({ 1: "done", 2: "cancelled", 3: "done" });
  });
});
