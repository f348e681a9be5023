import { afterEach, describe, expect, it } from "vitest";
import type { GatewayError } from "../../../src/errors.ts";
import { WorkerPool, type WorkerPoolOptions } from "../../../src/kit/worker-pool.ts";
import { until } from "../../helpers/until.ts";

const pools: WorkerPool<string, string>[] = [];
afterEach(async () => {
  Reflect.deleteProperty(process.env, "ECHO_WORKER_FAULT");
  await Promise.all(pools.splice(0).map((pool) => pool.close()));
});

function createPool(options: Partial<WorkerPoolOptions> = {}) {
  const pool = new WorkerPool<string, string>({
    failure: "Cannot echo",
    url: new URL("./echo-worker.mjs", import.meta.url),
    maxThreads: 1,
    maxWaiting: 0,
    ...options,
  });
  pools.push(pool);
  return pool;
}

/** Opens a job and records what it gets. */
function open(pool: WorkerPool<string, string>, ...requests: string[]) {
  const reported: string[] = [];
  const errors: GatewayError[] = [];
  const job = pool.open({ reply: (reply) => reported.push(reply), failed: (error) => errors.push(error) });
  for (const request of requests) job.post(request);
  return { job, reported, errors };
}

describe("WorkerPool", () => {
  it("jobs: each hears its own answers, in order, whether they share a thread or wait for one", async () => {
    for (const options of [{ jobsPerThread: 3 }, { maxThreads: 3 }, { maxWaiting: 2 }]) {
      const pool = createPool(options);
      const jobs = ["a", "b", "c"].map((name) => open(pool, `${name}1`, `${name}2`));
      expect(pool.stats.threads).toBe(options.maxThreads ?? 1);
      for (const { job, reported } of jobs) {
        await until("it has its answers", () => reported.length === 2);
        job.finish();
      }
      expect(jobs.map(({ reported }) => reported)).toEqual([
        ["a1", "a2"],
        ["b1", "b2"],
        ["c1", "c2"],
      ]);
      expect(pool.stats).toMatchObject({ running: 0, waiting: 0, lost: 0 });
    }
  });

  it("queue: bounded; one more is refused, and one that is given up makes room", () => {
    const pool = createPool({ maxWaiting: 1 });
    open(pool);
    const { job } = open(pool);
    expect(pool.stats).toMatchObject({ running: 1, waiting: 1 });
    expect(() => open(pool)).toThrow(expect.objectContaining({ code: "queue_full" }));
    job.abandon();
    job.abandon();
    open(pool);
    expect(pool.stats).toMatchObject({ running: 1, waiting: 1, threads: 1 });
  });

  it("crash: the jobs of the thread fail, those that wait get a new one", async () => {
    const pool = createPool({ jobsPerThread: 2, maxWaiting: 1 });
    const bystander = open(pool, "before");
    await until("it has an answer", () => bystander.reported.length === 1);
    const crashing = open(pool, "crash");
    const waiting = open(pool, "after");
    await until("the one that waits has its answer", () => waiting.reported.length === 1);
    for (const { errors } of [bystander, crashing]) {
      expect(errors.map(({ message }) => message)).toEqual([
        "Cannot echo: the thread failed: asked to crash",
      ]);
    }
    expect(waiting.errors).toEqual([]);
    expect(pool.stats).toMatchObject({ running: 1, waiting: 0, threads: 1, lost: 1 });
  });

  it("crash: a pool started in advance replaces the thread without being asked", async () => {
    const lost: string[] = [];
    const pool = createPool({ onThreadLost: (error) => lost.push(error.message) });
    await pool.start();
    const { errors } = open(pool, "crash");
    await until("it fails", () => errors.length === 1);
    expect(pool.stats).toMatchObject({ running: 0, threads: 1, lost: 1 });
    expect(lost).toEqual(["Cannot echo: the thread failed: asked to crash"]);
  });

  it("hang: a thread that owes an answer is ended, and its job fails", async () => {
    const pool = createPool({ stallMs: 1500 });
    const { errors } = open(pool, "hang");
    await until("it fails", () => errors.length === 1, { deadlineMs: 15_000 });
    expect(errors[0]).toMatchObject({
      code: "internal",
      message: "Cannot echo: the thread was silent for 1500 ms",
    });
    const next = open(pool, "after");
    await until("the next has its answer", () => next.reported.length === 1);
  });

  it("given up: a job's thread is ended in the middle of its work, and nothing is reported any more", async () => {
    const pool = createPool({ maxWaiting: 1 });
    const hanging = open(pool, "first", "hang");
    await until("it hangs", () => hanging.reported.length === 1);
    const next = open(pool, "after");
    hanging.job.abandon();
    await until("the next has its answer", () => next.reported.length === 1);
    expect(hanging.errors).toEqual([]);
    expect(pool.stats).toMatchObject({ running: 1, threads: 1, lost: 0 });
  });

  it("given up: a thread ends itself between two turns, and nobody has its place before", async () => {
    const ended = new Int32Array(new SharedArrayBuffer(4));
    const pool = createPool({ threadData: { ended }, maxWaiting: 1 });
    const { job, reported } = open(pool, "a");
    await until("it has its answer", () => reported.length === 1);
    job.abandon();
    const next = open(pool, "b");
    expect(pool.stats).toMatchObject({ threads: 0, waiting: 1 });
    await until("the next has its answer", () => next.reported.length === 1);
    expect(ended[0]).toBe(1);
  });

  it("idle: a thread that nobody needs is ended", async () => {
    const pool = createPool({ idleMs: 1 });
    const { job, reported } = open(pool, "a");
    await until("it has its answer", () => reported.length === 1);
    job.finish();
    await until("the thread is gone", () => pool.stats.threads === 0);
  });

  it("start: rejects with what the thread says, and the pool is closed", async () => {
    process.env.ECHO_WORKER_FAULT = "nothing to echo with";
    const pool = createPool({ maxThreads: 2 });
    await expect(pool.start()).rejects.toMatchObject({ code: "internal", message: "nothing to echo with" });
    expect(() => open(pool)).toThrow(expect.objectContaining({ code: "draining" }));
    expect(pool.stats.threads).toBe(0);
  });

  it("close: what runs and what waits fails, once", async () => {
    const pool = createPool({ maxWaiting: 1 });
    const jobs = [open(pool), open(pool)];
    await Promise.all([pool.close(), pool.close()]);
    for (const { errors } of jobs) expect(errors.map(({ code }) => code)).toEqual(["draining"]);
    expect(pool.stats).toMatchObject({ running: 0, waiting: 0, threads: 0 });
  });
});
