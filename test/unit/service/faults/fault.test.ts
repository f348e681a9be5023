import { describe, expect, it } from "vitest";
import { ApiError } from "../../../../src/service/api-error.ts";
import { FaultBoard } from "../../../../src/service/faults/board.ts";
import { readHeader, readSetting } from "../../../../src/service/faults/fault.ts";

const setting = (value: unknown) => readSetting(Buffer.from(JSON.stringify(value)));

function apiErrorOf(action: () => unknown): { status: number; body: string } {
  try {
    action();
  } catch (thrown) {
    if (thrown instanceof ApiError)
      return { status: thrown.httpStatus, body: JSON.stringify(thrown.body("trace")) };
    throw thrown;
  }
  throw new Error("Nothing was refused");
}

describe("the header", () => {
  it("has kinds with their parameters, defaults filled in", () => {
    expect(readHeader("latency ms=20; chunks sizes=1,7;alignment_missing ; status status=503")).toEqual([
      { kind: "latency", ms: 20 },
      { kind: "chunks", sizes: [1, 7] },
      { kind: "alignment_missing", every: 1 },
      { kind: "status", status: 503 },
    ]);
    expect(readHeader(" ; ")).toEqual([]);
  });

  it.each([
    ["explode", "explode.kind"],
    ["latency", "latency.ms"],
    ["latency ms=soon", "latency.ms"],
    ["latency ms=-1", "latency.ms"],
    ["latency seconds=1 ms=1", "seconds"],
    ["chunks sizes=0", "chunks.sizes.0"],
    ["reset after_bytes=1.5", "after_bytes"],
    ["status status=404", "status.status"],
    ["status status=429 times=2", "status.times"],
    ["latency ms", "expected key=value"],
    ["latency kind=reset", "expected key=value"],
  ])("%s is refused with 400 that says why", (header, part) => {
    const { status, body } = apiErrorOf(() => readHeader(header));
    expect(status).toBe(400);
    expect(body).toContain(part);
    expect(body).toContain("x-voicewire-fault");
  });
});

describe("the setting", () => {
  it("has its defaults", () => {
    expect(setting({ faults: [{ kind: "alignment_overlap" }] })).toEqual({
      faults: [{ kind: "alignment_overlap", characters: 3 }],
      probability: 1,
      seed: 0,
      truth: false,
    });
  });

  it.each([
    [{}, ["body", "faults"]],
    [{ faults: [{ kind: "nonsense" }] }, ["body", "faults", 0, "kind"]],
    [{ faults: [{ kind: "stall", ms: 1 }] }, ["body", "faults", 0, "after_ms_of_audio"]],
    [{ faults: [], probability: 2 }, ["body", "probability"]],
    [{ faults: [], count: -1 }, ["body", "count"]],
    [{ faults: [], colour: 1 }, ["body"]],
    [null, ["body"]],
  ])("%j is refused with 422 at its place", (value, loc) => {
    const { status, body } = apiErrorOf(() => setting(value));
    expect(status).toBe(422);
    expect(body).toContain(`"loc":${JSON.stringify(loc)}`);
  });

  it("that is no JSON is refused with 400", () => {
    expect(apiErrorOf(() => readSetting(Buffer.from("{"))).status).toBe(400);
    expect(apiErrorOf(() => readSetting(undefined)).status).toBe(400);
  });
});

describe("the board", () => {
  const hits = (board: FaultBoard, requests: number) =>
    Array.from({ length: requests }, () => board.next(undefined).faults.length > 0);

  it("gives nothing until it is set, and nothing after it is cleared", () => {
    const board = new FaultBoard();
    expect(board.next(undefined)).toEqual({ faults: [], wantsTruth: false });
    board.set(setting({ faults: [{ kind: "latency", ms: 1 }], truth: true }));
    expect(board.next(undefined)).toEqual({ faults: [{ kind: "latency", ms: 1 }], wantsTruth: true });
    board.clear();
    expect(board.next(undefined)).toEqual({ faults: [], wantsTruth: false });
    expect(board.describe()).toEqual({ faults: [] });
  });

  it("stops after its count", () => {
    const board = new FaultBoard();
    board.set(setting({ faults: [{ kind: "latency", ms: 1 }], count: 2 }));
    expect(hits(board, 4)).toEqual([true, true, false, false]);
    expect(board.describe()).toMatchObject({ count: 2, left: 0 });
  });

  it("a refusal comes the set number of times, other faults go on", () => {
    const board = new FaultBoard();
    board.set(
      setting({
        faults: [
          { kind: "status", status: 429, times: 1 },
          { kind: "latency", ms: 1 },
        ],
      }),
    );
    const kinds = [1, 2, 3].map(() => board.next(undefined).faults.map((fault) => fault.kind));
    expect(kinds).toEqual([["status", "latency"], ["latency"], ["latency"]]);
  });

  it("hits its share of the requests, the same ones for the same seed", () => {
    const draw = (seed: number) => {
      const board = new FaultBoard();
      board.set(setting({ faults: [{ kind: "latency", ms: 1 }], probability: 0.25, seed }));
      return hits(board, 1000);
    };
    const first = draw(7);
    const share = first.filter(Boolean).length / 1000;
    expect(share).toBeGreaterThan(0.2);
    expect(share).toBeLessThan(0.3);
    expect(draw(7)).toEqual(first);
    expect(draw(8)).not.toEqual(first);
  });

  it("a request's own header comes before the setting and does not use up its count", () => {
    const board = new FaultBoard();
    board.set(setting({ faults: [{ kind: "latency", ms: 1 }], count: 1 }));
    expect(board.next("reset after_bytes=5").faults).toEqual([{ kind: "reset", after_bytes: 5 }]);
    expect(hits(board, 2)).toEqual([true, false]);
  });
});
