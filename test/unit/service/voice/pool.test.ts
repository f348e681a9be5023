/** The pool on a real worker thread (from dist/): outcomes, credit, cancellation, and a worker that dies. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GatewayError } from "../../../../src/errors.ts";
import { type JobChunk, type JobSpec, PLAIN_JOB } from "../../../../src/service/voice/messages.ts";
import { VoicePool } from "../../../../src/service/voice/pool.ts";
import { until } from "../../../helpers/until.ts";
import { watchedLog } from "../../../helpers/watched-log.ts";

const SPEC: JobSpec = {
  ...PLAIN_JOB,
  inputs: [{ text: "Hello there.", voiceId: "21m00Tcm4TlvDq8ikWAM", languageCode: null }],
  format: "pcm_48000",
};
const LONG: JobSpec = {
  ...SPEC,
  inputs: SPEC.inputs.map((input) => ({ ...input, text: "One more sentence of some length. ".repeat(300) })),
};
const CREDIT_BYTES = 196_608;
const LARGEST_CHUNK_BYTES = 65_536;
let pool: VoicePool;

beforeAll(async () => {
  pool = new VoicePool({ workers: 1, log: watchedLog });
  await pool.start();
});
afterAll(() => pool.close());

/** Opens a job and records what it says. */
function open(spec: JobSpec, options: { readonly acknowledges: boolean }) {
  const heard = { bytes: 0, isDone: false, error: undefined as GatewayError | undefined };
  const job = pool.open(spec, {
    chunk: (chunk: JobChunk) => {
      heard.bytes += chunk.audio.length;
      if (options.acknowledges) job.acknowledge(chunk.audio.length);
    },
    done: () => {
      heard.isDone = true;
    },
    failed: (error) => {
      heard.error = error;
    },
  });
  return { heard, job };
}

describe("VoicePool", () => {
  it("stops making audio when nothing is acknowledged, and goes on when it is", async () => {
    const { heard, job } = open(LONG, { acknowledges: false });
    await until("the credit is used up", () => heard.bytes >= CREDIT_BYTES);
    // A job that is opened and done meanwhile has had as many turns as it needs: the blocked one made nothing more.
    const other = open(SPEC, { acknowledges: true });
    await until("another job is done", () => other.heard.isDone);
    expect(heard.bytes).toBeLessThanOrEqual(CREDIT_BYTES + LARGEST_CHUNK_BYTES);
    const blockedAt = heard.bytes;
    job.acknowledge(blockedAt);
    await until("it goes on", () => heard.bytes > blockedAt);
    job.cancel();
    job.cancel();
    await until("it is over", () => pool.stats.jobs_active === 0);
    expect(heard.isDone).toBe(false);
    expect(heard.error).toBeUndefined();
    expect(pool.stats.jobs_cancelled).toBe(1);
  });

  it("says nothing more after cancel()", async () => {
    const { heard, job } = open(LONG, { acknowledges: true });
    await until("it speaks", () => heard.bytes > 0);
    job.cancel();
    const { bytes } = heard;
    await until("it is over", () => pool.stats.jobs_active === 0);
    expect(heard.bytes).toBe(bytes);
  });

  it("reports a job that fails, and the next one works", async () => {
    const { heard } = open({ ...SPEC, format: "nonsense" }, { acknowledges: true });
    await until("it fails", () => heard.error !== undefined);
    const next = open(SPEC, { acknowledges: true });
    await until("the next is done", () => next.heard.isDone);
  });

  it("replaces a worker that dies: its jobs fail, later ones are spoken", async () => {
    const { heard: bystander } = open(LONG, { acknowledges: false });
    await until("it speaks", () => bystander.bytes > 0);
    // No JobSpec at all is a fault that no caller can make: it throws in the worker's message handler.
    open(null as unknown as JobSpec, { acknowledges: true });
    await until("the bystander fails", () => bystander.error !== undefined);
    await until("a new worker is there", () => pool.stats.workers === 1, { deadlineMs: 15_000 });
    expect(pool.stats.worker_restarts).toBe(1);
    const next = open(SPEC, { acknowledges: true });
    await until("the next is done", () => next.heard.isDone, { deadlineMs: 15_000 });
  });

  it("close() fails what is open, and is idempotent", async () => {
    const { heard } = open(LONG, { acknowledges: false });
    await Promise.all([pool.close(), pool.close()]);
    expect(heard.error?.code).toBe("draining");
    expect(pool.stats.jobs_active).toBe(0);
  });
});
