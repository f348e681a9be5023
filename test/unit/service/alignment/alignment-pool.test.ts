/** The thread that finds words: what comes back of it, and what happens where it can't work. */
import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import type { Logger } from "../../../../src/kit/log.ts";
import { AlignmentPool } from "../../../../src/service/alignment/alignment-pool.ts";
import type { AlignmentOutcome, FoundWord } from "../../../../src/timing/aligner.ts";
import { until } from "../../../helpers/until.ts";
import { watchedLog } from "../../../helpers/watched-log.ts";

const FLITE = new URL("../../../fixtures/flite/", import.meta.url);
const [SPEECH] = JSON.parse(readFileSync(new URL("truth.json", FLITE), "utf8")) as readonly {
  readonly file: string;
  readonly text: string;
}[];
const TEXT = SPEECH?.text ?? "";
const AUDIO = new Uint8Array(readFileSync(new URL(SPEECH?.file ?? "", FLITE)));
const REQUEST = { text: TEXT, language: "en", format: "ulaw_8000" };

/** A thread that loads the engine takes seconds on a busy machine. */
const DEADLINE_MS = 30_000;

const pools: AlignmentPool[] = [];

afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()));
});

function poolWith(options: { readonly isInstalled?: boolean } = {}) {
  const warnings: string[] = [];
  const log: Logger = { ...watchedLog, warn: (...args) => warnings.push(JSON.stringify(args)) };
  const pool = new AlignmentPool({ log, ...options });
  pools.push(pool);
  const words: FoundWord[] = [];
  const outcomes: AlignmentOutcome[] = [];
  const handlers = {
    found: (some: readonly FoundWord[]) => words.push(...some),
    ended: (outcome: AlignmentOutcome) => outcomes.push(outcome),
  };
  return { pool, warnings, words, outcomes, handlers };
}

describe("AlignmentPool", { timeout: 2 * DEADLINE_MS }, () => {
  it("finds all words of a text, however its audio is split", async () => {
    const { pool, words, outcomes, handlers } = poolWith();
    const job = pool.open(REQUEST, handlers);
    for (let from = 0; from < AUDIO.length; from += 777) job?.push(AUDIO.subarray(from, from + 777));
    job?.finish();
    await until("the end", () => outcomes.length > 0, { deadlineMs: DEADLINE_MS });
    expect(outcomes).toEqual(["complete"]);
    expect(words.map(({ start, end }) => TEXT.slice(start, end))).toEqual(TEXT.match(/[A-Za-z]+/g));
  });

  it("says that the audio is another text's", async () => {
    const { pool, outcomes, handlers } = poolWith();
    const text = "Zwei mal drei macht vier, und drei macht neune.";
    const job = pool.open({ ...REQUEST, text, language: "de" }, handlers);
    job?.push(AUDIO);
    job?.finish();
    await until("the end", () => outcomes.length > 0, { deadlineMs: DEADLINE_MS });
    expect(outcomes).toEqual(["unlike"]);
  });

  it("says so where the text has nothing to say", async () => {
    const { pool, outcomes, handlers } = poolWith();
    const job = pool.open({ ...REQUEST, text: "..." }, handlers);
    job?.push(AUDIO);
    job?.finish();
    await until("the end", () => outcomes.length > 0, { deadlineMs: DEADLINE_MS });
    expect(outcomes).toEqual(["unlike"]);
  });

  it("has nothing for audio that it can't look into, and for a text that is too long", () => {
    const { pool, warnings, handlers } = poolWith();
    expect(pool.open({ ...REQUEST, format: "mp3_44100_128" }, handlers)).toBeNull();
    expect(pool.open({ ...REQUEST, format: "nonsense" }, handlers)).toBeNull();
    expect(pool.open({ ...REQUEST, text: "a ".repeat(501) }, handlers)).toBeNull();
    expect(warnings).toEqual([]);
  });

  it("says once in the log that the embedded voice is not installed", () => {
    const { pool, warnings, handlers } = poolWith({ isInstalled: false });
    for (let i = 0; i < 3; i += 1) expect(pool.open(REQUEST, handlers)).toBeNull();
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("not installed");
  });

  it("gives up a response whose waiting audio is too much, and one that is too long", async () => {
    const { pool, outcomes, handlers } = poolWith();
    for (const piece of [new Uint8Array(1_000_001), new Uint8Array(600_000)]) {
      const job = pool.open(REQUEST, handlers);
      job?.push(piece);
      job?.push(piece);
      job?.push(AUDIO);
    }
    await until("the end", () => outcomes.length >= 2, { deadlineMs: DEADLINE_MS });
    expect(outcomes).toEqual(["failed", "failed"]);
  });

  it("gives nothing of a job that was closed", async () => {
    const { pool, words, outcomes, handlers } = poolWith();
    const closed = pool.open(REQUEST, { found: () => words.push(), ended: () => outcomes.push("failed") });
    closed?.push(AUDIO);
    closed?.close();
    closed?.finish();
    const job = pool.open(REQUEST, handlers);
    job?.push(AUDIO);
    job?.finish();
    await until("the end", () => outcomes.length > 0, { deadlineMs: DEADLINE_MS });
    expect(outcomes).toEqual(["complete"]);
  });

  it("ends open jobs where it is closed, and has nothing afterwards", async () => {
    const { pool, outcomes, handlers } = poolWith();
    pool.open(REQUEST, handlers)?.push(AUDIO);
    await pool.close();
    expect(outcomes).toEqual(["failed"]);
    expect(pool.open(REQUEST, handlers)).toBeNull();
  });
});
