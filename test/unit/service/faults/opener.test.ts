/** What becomes of a job's chunks, stage by stage: a job of three chunks, "ab", "cd" and "ef", a second each. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Fault } from "../../../../src/service/faults/fault.ts";
import { faultyOpener } from "../../../../src/service/faults/opener.ts";
import type { JobOpener } from "../../../../src/service/http/speech/delivery.ts";
import type { JobChunk } from "../../../../src/service/voice/messages.ts";
import type { JobHandlers } from "../../../../src/service/voice/pool.ts";
import type { Alignment } from "../../../../src/timing/alignment.ts";
import { JOB_DEFAULTS } from "../../../helpers/voice-job.ts";

const alignmentOf = (text: string, second: number): Alignment => ({
  characters: [...text],
  character_start_times_seconds: [second, second + 0.5],
  character_end_times_seconds: [second + 0.5, second + 1],
});

function chunkOf(text: string, second: number): JobChunk {
  const alignment = alignmentOf(text, second);
  return {
    audio: new Uint8Array(8000).fill(second + 1),
    timing: {
      alignment,
      normalizedAlignment: alignment,
      voiceSegments: [
        {
          voice_id: "v",
          start_time_seconds: second,
          end_time_seconds: second + 1,
          character_start_index: 2 * second,
          character_end_index: 2 * second + 2,
          dialogue_input_index: 0,
        },
      ],
      truth: [
        {
          normalized_character_index: 2 * second,
          character_index: 2 * second,
          length: 2,
          start_time_seconds: second,
        },
      ],
    },
  };
}
const CHUNKS = [chunkOf("ab", 0), chunkOf("cd", 1), chunkOf("ef", 2)];

class Recorder implements JobHandlers {
  readonly chunks: JobChunk[] = [];
  ends: string[] = [];
  chunk(chunk: JobChunk): void {
    this.chunks.push(chunk);
  }
  done(): void {
    this.ends.push("done");
  }
  failed(): void {
    this.ends.push("failed");
  }
}

/** Opens a job with faults whose inner job is driven by the test. */
function open(faults: readonly Fault[]) {
  let inner: JobHandlers | undefined;
  const calls: (string | number)[] = [];
  const voices: JobOpener = {
    open(_spec, handlers) {
      inner = handlers;
      return { acknowledge: (bytes) => calls.push(bytes), cancel: () => calls.push("cancel") };
    },
  };
  const recorder = new Recorder();
  const opener = faultyOpener(voices, faults);
  const job = opener.open({ ...JOB_DEFAULTS, format: "ulaw_8000" }, recorder);
  if (inner === undefined) throw new Error("No job was opened");
  return { recorder, job, inner, calls, isPassedThrough: opener === voices };
}

function run(...faults: Fault[]): JobChunk[] {
  const { recorder, inner } = open(faults);
  for (const chunk of CHUNKS) inner.chunk(chunk);
  inner.done();
  expect(recorder.ends).toEqual(["done"]);
  return recorder.chunks;
}

const alignments = (chunks: readonly JobChunk[]) => chunks.map((chunk) => chunk.timing?.alignment ?? null);
const startsOf = (chunks: readonly JobChunk[]) =>
  alignments(chunks).map((one) => one?.character_start_times_seconds);
const endsOf = (chunks: readonly JobChunk[]) =>
  alignments(chunks).map((one) => one?.character_end_times_seconds);

const KINDS: Readonly<Record<string, Fault>> = {
  chunks: { kind: "chunks", sizes: [1000] },
  alignment_missing: { kind: "alignment_missing", every: 1 },
  alignment_late: { kind: "alignment_late", chunks: 2 },
  alignment_overlap: { kind: "alignment_overlap", characters: 1 },
  alignment_restart: { kind: "alignment_restart" },
  alignment_scaled: { kind: "alignment_scaled", factor: 2 },
  alignment_long: { kind: "alignment_long", seconds: 1 },
  alignment_ragged: { kind: "alignment_ragged", drop: 1 },
  alignment_nan: { kind: "alignment_nan", every: 2 },
};

describe("whatever the fault of the alignment", () => {
  it.each(Object.entries(KINDS))("%s leaves the audio and the truth as they are", (_kind, fault) => {
    const chunks = run(fault);
    const audio = Buffer.concat(chunks.map((chunk) => chunk.audio));
    expect(audio.equals(Buffer.concat(CHUNKS.map((chunk) => chunk.audio)))).toBe(true);
    expect(chunks.flatMap((chunk) => chunk.timing?.truth ?? [])).toEqual(
      CHUNKS.flatMap((chunk) => chunk.timing?.truth ?? []),
    );
    const before = chunks.flatMap((chunk) => chunk.timing?.trueAlignment?.characters ?? []);
    expect(before.join("")).toBe("abcdef");
  });

  it("faults of other kinds cost the chunks nothing", () => {
    const faults: Fault[] = [
      { kind: "latency", ms: 1 },
      { kind: "reset", after_bytes: 1 },
    ];
    expect(open(faults).isPassedThrough).toBe(true);
    expect(open([]).isPassedThrough).toBe(true);
  });
});

describe("each kind", () => {
  it("missing: all, or every n-th", () => {
    expect(alignments(run({ kind: "alignment_missing", every: 1 }))).toEqual([null, null, null]);
    const some = alignments(run({ kind: "alignment_missing", every: 2 }));
    expect(some.map((one) => one === null)).toEqual([true, false, true]);
  });

  it("late: behind its audio, the rest without audio", () => {
    const chunks = run({ kind: "alignment_late", chunks: 2 });
    expect(alignments(chunks).map((one) => one?.characters.join("") ?? null)).toEqual([
      null,
      null,
      "ab",
      "cd",
      "ef",
    ]);
    expect(chunks.map((chunk) => chunk.audio.length)).toEqual([8000, 8000, 8000, 0, 0]);
  });

  it("overlap: each chunk begins with the end of the one before", () => {
    const chunks = alignments(run({ kind: "alignment_overlap", characters: 1 }));
    expect(chunks.map((one) => one?.characters.join(""))).toEqual(["ab", "bcd", "def"]);
    expect(chunks[1]?.character_start_times_seconds).toEqual([0.5, 1, 1.5]);
  });

  it("restart: each chunk counts from 0", () => {
    expect(startsOf(run({ kind: "alignment_restart" }))).toEqual([
      [0, 0.5],
      [0, 0.5],
      [0, 0.5],
    ]);
  });

  it("scaled: all times", () => {
    expect(endsOf(run({ kind: "alignment_scaled", factor: 1.5 }))).toEqual([
      [0.75, 1.5],
      [2.25, 3],
      [3.75, 4.5],
    ]);
  });

  it("long: the last chunk reaches beyond the audio", () => {
    const chunks = run({ kind: "alignment_long", seconds: 1 });
    expect(startsOf(chunks)).toEqual([
      [0, 0.5],
      [1, 1.5],
      [2, 3],
    ]);
    expect(endsOf(chunks).at(-1)).toEqual([3, 4]);
  });

  it("ragged: ends or starts are fewer", () => {
    const chunks = run({ kind: "alignment_ragged", drop: 1 });
    expect(endsOf(chunks).map((ends) => ends?.length)).toEqual([1, 2, 1]);
    expect(startsOf(chunks).map((starts) => starts?.length)).toEqual([2, 1, 2]);
  });

  it("nan: holes that are null on the wire", () => {
    const json = JSON.stringify(alignments(run({ kind: "alignment_nan", every: 2 }))[0]);
    expect(json).toContain('"character_start_times_seconds":[0,null]');
  });

  it("chunks: sizes in turn, the timing with the first piece", () => {
    const chunks = run({ kind: "chunks", sizes: [1, 6000] });
    expect(chunks.map((chunk) => chunk.audio.length).slice(0, 4)).toEqual([1, 6000, 1, 1998]);
    expect(alignments(chunks).filter((one) => one !== null)).toHaveLength(3);
    expect(chunks[1]?.timing?.alignment).toBeNull();
  });

  it("several faults, one after the other", () => {
    const chunks = run({ kind: "alignment_late", chunks: 1 }, { kind: "alignment_scaled", factor: 2 });
    expect(startsOf(chunks)).toEqual([undefined, [0, 1], [2, 3], [4, 5]]);
  });
});

describe("stalls", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  const stall: Fault = { kind: "stall", after_ms_of_audio: 1500, ms: 400 };

  it("hold what follows so much audio, and the end", () => {
    const { recorder, inner } = open([stall]);
    for (const chunk of CHUNKS) inner.chunk(chunk);
    inner.done();
    expect(recorder.chunks).toHaveLength(2);
    vi.advanceTimersByTime(399);
    expect(recorder.chunks).toHaveLength(2);
    vi.advanceTimersByTime(1);
    expect(recorder.chunks).toHaveLength(3);
    expect(recorder.ends).toEqual(["done"]);
  });

  it("end with the job", () => {
    const { recorder, inner, job, calls } = open([stall]);
    for (const chunk of CHUNKS) inner.chunk(chunk);
    job.acknowledge(8000);
    job.cancel();
    vi.runAllTimers();
    expect(recorder.chunks).toHaveLength(2);
    expect(recorder.ends).toEqual([]);
    expect(calls).toEqual([8000, "cancel"]);
  });

  it("a job that fails is reported at once", () => {
    const { recorder, inner } = open([stall]);
    for (const chunk of CHUNKS) inner.chunk(chunk);
    inner.failed(new Error("gone") as Parameters<JobHandlers["failed"]>[0]);
    vi.runAllTimers();
    expect(recorder.ends).toEqual(["failed"]);
    expect(recorder.chunks).toHaveLength(2);
  });
});
