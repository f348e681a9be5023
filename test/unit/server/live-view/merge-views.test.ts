/** Which sessions and budgets a view shows, and one view of several workers. */
import { describe, expect, it } from "vitest";
import type { LiveSession, LiveView } from "../../../../src/protocol/live-view.ts";
import { firstBudgets, firstRows, mergeViews } from "../../../../src/server/live-view/merge-views.ts";

const LOOK = { order: "lag", prefix: "", rows: 100, sessions: [] } as const;

function rowOf(name: string, facts: Partial<LiveSession> = {}): LiveSession {
  const numbers = {
    age_s: 1,
    lead_ms: 0,
    utterances: 0,
    listeners: 1,
    speakers: 0,
    calls: 0,
    lag_ms: 0,
    queue_bytes: 0,
  };
  const counts = { dropped_frames: 0, underruns: 0, interrupts: 0 };
  return { name, node: "a", tenant: "", state: "idle", voice: "", ...numbers, ...counts, ...facts };
}

function viewOf(node: string, rows: readonly LiveSession[], more: Partial<LiveView> = {}): LiveView {
  const figures = {
    loop_delay_ms: 1,
    cpu_percent: 2,
    memory_bytes: 3,
    heap_bytes: 4,
    uptime_s: 5,
    connections: 6,
  };
  return {
    nodes: [{ name: node, version: "1", is_draining: false, sessions: rows.length, ...figures }],
    other_nodes: [],
    upstreams: [],
    budgets: [],
    sessions: { total: rows.length, matching: rows.length, rows },
    ...more,
  };
}

const namesOf = (rows: readonly LiveSession[]): string[] => rows.map(({ name }) => name);

describe("rows", () => {
  const rows = () => [
    rowOf("b", { lag_ms: 5, age_s: 9 }),
    rowOf("c", { underruns: 3 }),
    rowOf("a", { dropped_frames: 2 }),
  ];

  it.each([
    ["lag", ["b", "a", "c"]],
    ["name", ["a", "b", "c"]],
    ["age", ["b", "a", "c"]],
    ["underruns", ["c", "a", "b"]],
    ["drops", ["a", "b", "c"]],
  ] as const)("by %s: the worst first, those that are alike by name", (order, names) => {
    expect(namesOf(firstRows(rows(), { ...LOOK, order }))).toEqual(names);
  });

  it("are no more than were asked for", () => {
    expect(namesOf(firstRows(rows(), { ...LOOK, rows: 2 }))).toEqual(["b", "a"]);
  });
});

describe("budgets", () => {
  it("come by how much of them is used, and say from 80 % on that they are low", () => {
    const used = (of: string, share: number) => ({ of, what: "characters", used: share, limit: 100 });
    const budgets = firstBudgets([used("key a", 79), used("key b", 80), used("key c", 120)]);
    expect(budgets.map(({ of, is_low }) => [of, is_low])).toEqual([
      ["key c", true],
      ["key b", true],
      ["key a", false],
    ]);
  });

  it("are 50 at most", () => {
    const many = Array.from({ length: 80 }, (_, used) => ({
      of: "key a",
      what: `w${used}`,
      used,
      limit: 100,
    }));
    const budgets = firstBudgets(many);
    expect([budgets.length, budgets[0]?.used]).toEqual([50, 79]);
  });
});

describe("the views of several workers", () => {
  it("are one: rows in one order, counts added up", () => {
    const merged = mergeViews(
      [viewOf("w-1", [rowOf("a", { lag_ms: 1 })]), viewOf("w-2", [rowOf("b", { lag_ms: 2 }), rowOf("c")])],
      { ...LOOK, rows: 2 },
    );
    expect(merged.sessions).toMatchObject({ total: 3, matching: 3 });
    expect(namesOf(merged.sessions.rows)).toEqual(["b", "a"]);
    expect(merged.nodes.map(({ name }) => name)).toEqual(["w-1", "w-2"]);
  });

  it("have each other node once, and none of the workers among them", () => {
    const other = (name: string) => ({ name, state: "alive", load: 0, is_draining: false });
    const merged = mergeViews(
      [
        viewOf("w-1", [], { other_nodes: [other("w-2"), other("far")] }),
        viewOf("w-2", [], { other_nodes: [other("w-1"), other("far")] }),
      ],
      LOOK,
    );
    expect(merged.other_nodes.map(({ name }) => name)).toEqual(["far"]);
  });

  it("add up what each has of an upstream, which is ill where one finds it ill", () => {
    const upstream = (isHealthy: boolean) => ({
      ...{ name: "eu", is_healthy: isHealthy, open: 1, queued: 2, limit: 3, requests: 4, failovers: 5 },
      errors_last_minute: 6,
    });
    const merged = mergeViews(
      [
        viewOf("w-1", [], { upstreams: [upstream(true)] }),
        viewOf("w-2", [], { upstreams: [upstream(false)] }),
      ],
      LOOK,
    );
    expect(merged.upstreams).toEqual([
      {
        ...{ name: "eu", is_healthy: false, open: 2, queued: 4, limit: 6, requests: 8, failovers: 10 },
        errors_last_minute: 12,
      },
    ]);
  });

  it("have a budget as the worker has it that has heard most of it", () => {
    const budget = (used: number) => ({ of: "key a", what: "characters", used, limit: 100, is_low: false });
    const views = [80, 90, 10].map((used, index) => viewOf(`w-${index}`, [], { budgets: [budget(used)] }));
    expect(mergeViews(views, LOOK).budgets).toEqual([{ ...budget(90), is_low: true }]);
  });
});
