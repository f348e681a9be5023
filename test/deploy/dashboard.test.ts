/** Grafana's dashboard: it imports into any Grafana, and each of its figures is one that a gateway has. */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { checkRules, IF_PROMTOOL_MISSING, isPromtoolMissing } from "../kit/promtool.ts";
import { metricsIn, metricsText, namesIn, plainMetricsText } from "./figures.ts";

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: { readonly type: string; readonly uid: string };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig?: { readonly defaults: { readonly noValue?: string } };
  readonly targets?: readonly {
    readonly refId: string;
    readonly expr: string;
    readonly datasource: { readonly uid: string };
  }[];
}

const text = readFileSync(new URL("../../examples/deploy/grafana/voicewire.json", import.meta.url), "utf8");
const dashboard = JSON.parse(text) as {
  readonly __inputs: readonly { readonly name: string; readonly pluginId: string }[];
  readonly __requires: readonly { readonly id: string }[];
  readonly id: null;
  readonly uid: string;
  readonly schemaVersion: number;
  readonly templating: {
    readonly list: readonly {
      readonly name: string;
      readonly definition?: string;
      readonly current: { value: unknown };
    }[];
  };
  readonly panels: readonly Panel[];
};
const panels = dashboard.panels.filter(({ type }) => type !== "row");
const targets = panels.flatMap((panel) =>
  (panel.targets ?? []).map((target) => ({ ...target, panel: panel.title })),
);
let names: ReadonlySet<string>;

beforeAll(async () => {
  names = namesIn(await metricsText());
});

describe("the dashboard", () => {
  it("asks for its data source when it is imported, and keeps its address", () => {
    expect(dashboard).toMatchObject({ id: null, uid: "voicewire" });
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(39);
    expect(dashboard.__inputs).toMatchObject([{ name: "DS_PROMETHEUS", pluginId: "prometheus" }]);
    const [source, ...others] = dashboard.templating.list;
    expect(source).toMatchObject({ name: "datasource", current: { value: `\${DS_PROMETHEUS}` } });
    expect(others.map(({ name }) => name)).toEqual(["job", "instance"]);
    const required = new Set(dashboard.__requires.map(({ id }) => id));
    for (const { type } of panels) expect(required).toContain(type);
    for (const { datasource, targets: own = [] } of panels) {
      for (const used of [datasource, ...own.map((target) => target.datasource)]) {
        expect(used?.uid).toBe(`\${datasource}`);
      }
    }
  });

  it("has its rows in order", () => {
    const rows = dashboard.panels.filter(({ type }) => type === "row").map(({ title }) => title);
    expect(rows).toEqual([
      "Golden signals",
      "Latency waterfall by stage",
      "Listeners and drops",
      "Upstreams",
      "Calls",
      "Cluster",
      "Node",
    ]);
  });

  it("has panels with names and ids of their own that say what they show and do not overlap", () => {
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
    expect(new Set(dashboard.panels.map(({ title }) => title)).size).toBe(dashboard.panels.length);
    const taken = new Set<string>();
    for (const { title, gridPos, targets: own = [], ...panel } of dashboard.panels) {
      if (panel.type !== "row") {
        expect([title, (panel.description ?? "") !== "", own.length > 0]).toEqual([title, true, true]);
      }
      expect(new Set(own.map(({ refId }) => refId)).size).toBe(own.length);
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          expect([title, taken.has(`${x}/${y}`)]).toEqual([title, false]);
          taken.add(`${x}/${y}`);
        }
      }
    }
  });

  it("asks for nothing that a gateway does not have", () => {
    const definitions = dashboard.templating.list.flatMap(({ definition }) => definition ?? []);
    const unknown = [...targets.map(({ expr }) => expr), ...definitions]
      .flatMap(metricsIn)
      .filter((name) => !names.has(name));
    expect(unknown).toEqual([]);
    for (const { panel, expr } of targets) expect([panel, metricsIn(expr).length > 0]).toEqual([panel, true]);
  });

  it("says in the place of figures what is off, or what has not come yet", async () => {
    const plain = await plainMetricsText();
    const isThere = (name: string): boolean => new RegExp(`^${name}[{ ]`, "m").test(plain);
    const empty = panels.filter(
      ({ targets: own = [] }) => !own.flatMap(({ expr }) => metricsIn(expr)).some(isThere),
    );
    expect(empty.length).toBeGreaterThan(10);
    const silent = empty.filter(({ fieldConfig }) => (fieldConfig?.defaults.noValue ?? "") === "");
    expect(silent.map(({ title }) => title)).toEqual([]);
  });

  it("narrows every figure to the chosen jobs and instances, and rates to what is scraped", () => {
    for (const { panel, expr } of targets) {
      const selectors = [...expr.matchAll(/\{([^}]*)\}/g)].map(([, inside = ""]) => inside);
      expect([panel, selectors.length]).toEqual([panel, metricsIn(expr).length]);
      for (const selector of selectors) {
        expect([panel, selector]).toEqual([
          panel,
          expect.stringMatching(/^job=~"\$job",instance=~"\$instance"/),
        ]);
      }
      const windows = [...expr.matchAll(/\[([^\]]*)\]/g)].map(([, window]) => window);
      expect([panel, windows.filter((window) => window !== "$__rate_interval")]).toEqual([panel, []]);
    }
  });

  it("shows every metric of the gateway's own, but for details", () => {
    const shown = new Set(targets.flatMap(({ expr }) => metricsIn(expr)));
    const base = (name: string): string => name.replace(/_(?:bucket|sum|count)$/, "");
    const bases = new Set([...shown].map(base));
    const left = [...names].filter((name) => name.startsWith("voicewire_") && !bases.has(base(name)));
    expect(left.sort()).toEqual(NOT_SHOWN);
  });
});

it("docs/operate.md: the panels and metrics that answer questions are there", () => {
  const page = readFileSync(new URL("../../docs/operate.md", import.meta.url), "utf8");
  const [, table = ""] = page.split("| question | panel | metric |\n|---|---|---|\n");
  const rows = (table.split("\n\n")[0] ?? "")
    .split("\n")
    .map((line) => line.split("|").map((cell) => cell.trim()));
  expect(rows.length).toBeGreaterThan(15);
  const titles = new Set(panels.map(({ title }) => title));
  for (const [, , shownIn = "", metrics = ""] of rows) {
    for (const title of shownIn.split(", ")) expect(titles).toContain(title);
    for (const name of metricsIn(metrics)) expect(names).toContain(name);
  }
});

it.skipIf(isPromtoolMissing)(`Prometheus can read each figure of the dashboard${IF_PROMTOOL_MISSING}`, () => {
  const rules = targets.map(({ expr }, index) => ({
    record: `figure_${index}`,
    expr: expr.replaceAll("$__rate_interval", "5m").replaceAll(/\$(?:job|instance)/g, ".*"),
  }));
  expect(checkRules(JSON.stringify({ groups: [{ name: "dashboard", rules }] }))).toEqual({
    status: 0,
    errors: "",
  });
});

/** Details that are looked up once a panel says that something is wrong. */
const NOT_SHOWN: readonly string[] = [
  "voicewire_cluster_used_tokens",
  "voicewire_events_total",
  "voicewire_messages_waited_total",
  "voicewire_phrases",
  "voicewire_sessions_closed_total",
  "voicewire_sessions_opened_total",
  "voicewire_spans_waiting",
  "voicewire_stall_cuts_total",
  "voicewire_text_pauses_total",
  "voicewire_tls_renewals_refused_total",
  "voicewire_tls_renewals_total",
  "voicewire_upstream_requests_total",
  "voicewire_wyoming_audio_bytes_total",
];
