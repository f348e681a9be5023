/** Alert rules: each fires in its case, none on a healthy gateway, and each has a runbook in docs/operate.md. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import {
  checkConfig,
  checkRules,
  IF_PROMTOOL_MISSING,
  isPromtoolMissing,
  testRules,
} from "../kit/promtool.ts";
import { textOf } from "./deploy-files.ts";
import { metricsIn, metricsText, namesIn } from "./figures.ts";

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

const text = textOf("alerts.yml");
const { groups } = parse(text) as { readonly groups: readonly { readonly rules: readonly Alert[] }[] };
const alerts = groups.flatMap(({ rules }) => rules);
const page = readFileSync(new URL("../../docs/operate.md", import.meta.url), "utf8");

/** Series of promtool: name and labels -> values, one a minute. */
type Series = Readonly<Record<string, string>>;

const AT = 'job="voicewire",instance="a:9090"';
const JOB = { job: "voicewire" };
const INSTANCE = { job: "voicewire", instance: "a:9090" };
const DAY = 24 * 60;

/** `slow`: of 100 segments a minute so many need longer than a second. */
function stage(name: string, slow: number, minutes: number): Series {
  const bucket = (le: string): string => `voicewire_stage_seconds_bucket{${AT},stage="${name}",le="${le}"}`;
  const rising = (each: number): string => `0+${each}x${minutes}`;
  return {
    [bucket("0.1")]: rising(100 - slow),
    [bucket("1")]: rising(100 - slow),
    [bucket("2")]: rising(100),
    [bucket("+Inf")]: rising(100),
  };
}

/** A gateway to which nothing happens but speech. */
function healthy(minutes: number): Series {
  const steady = (value: number): string => `${value}+0x${minutes}`;
  const rising = (each: number): string => `0+${each}x${minutes}`;
  const own: Series = {
    build_info: steady(1),
    draining: steady(0),
    utterances_done_total: rising(100),
    utterances_interrupted_total: rising(20),
    utterances_failed_total: rising(1),
    frames_sent_total: rising(30_000),
    frames_dropped_total: rising(10),
    underruns_total: rising(0.5),
    times_found_total: rising(1),
    times_guessed_total: rising(1),
    upstream_requests_total: rising(100),
    upstream_errors_total: rising(1),
    upstream_queued: steady(2),
    service_hangs_total: steady(3),
    late_wakes_total: rising(6),
    tls_certificate_end_seconds: steady(100 * 86_400),
    keys_broken: steady(0),
    audit_lines_lost_total: steady(2),
    ledger_lost_total: steady(4),
    ledger_free_bytes: steady(50e9),
    cluster_bus_up: steady(1),
    cluster_takeovers_total: "0 0 5+0x10000",
    cluster_sessions_owned: steady(5),
  };
  return {
    ...Object.fromEntries(Object.entries(own).map(([name, values]) => [`voicewire_${name}{${AT}}`, values])),
    ...stage("total", 1, minutes),
    ...stage("queued", 1, minutes),
    [`voicewire_upstream_region_healthy{${AT},region="eu"}`]: steady(1),
    [`voicewire_upstream_region_healthy{${AT},region="us"}`]: steady(0),
    [`voicewire_refused_total{${AT},reason="upstream_busy"}`]: steady(7),
    [`voicewire_characters_total{${AT},outcome="billed"}`]: rising(6000),
    [`voicewire_recordings_ended_total{${AT},reason="closed"}`]: rising(3),
    [`process_resident_memory_bytes{${AT}}`]: steady(200e6),
    [`nodejs_eventloop_lag_p99_seconds{${AT}}`]: steady(0.012),
    [`up{${AT}}`]: steady(1),
  };
}

interface Case {
  /** What is otherwise than with a healthy gateway. */
  readonly series: Series;
  readonly minute: number;
  readonly labels: Readonly<Record<string, string>>;
  /** Of its values; default 1. A week of minutes would take long. */
  readonly stepMinutes?: number;
}

const of = (name: string, values: string): Series => ({ [`voicewire_${name}{${AT}}`]: values });

const CASES: Readonly<Record<string, Case>> = {
  VoicewireFirstAudioSlow: { series: stage("total", 10, 60), minute: 30, labels: JOB },
  VoicewireUtterancesFail: { series: of("utterances_failed_total", "0+5x60"), minute: 30, labels: JOB },
  VoicewireFramesDropped: { series: of("frames_dropped_total", "0+60x60"), minute: 30, labels: INSTANCE },
  VoicewireUnderruns: { series: of("underruns_total", "0+3x60"), minute: 30, labels: INSTANCE },
  VoicewireTimingLost: {
    series: of("times_found_total", `0+1x${DAY} ${DAY}+10x300`),
    minute: DAY + 120,
    labels: JOB,
  },
  VoicewireUpstreamDown: {
    series: { [`voicewire_upstream_region_healthy{${AT},region="eu"}`]: "1 1 0+0x60" },
    minute: 10,
    labels: INSTANCE,
  },
  VoicewireUpstreamErrors: { series: of("upstream_errors_total", "0+10x60"), minute: 30, labels: JOB },
  VoicewireUpstreamBusy: {
    series: { [`voicewire_refused_total{${AT},reason="upstream_busy"}`]: "0+1x60" },
    minute: 30,
    labels: JOB,
  },
  VoicewireQueueWaits: { series: stage("queued", 10, 60), minute: 30, labels: JOB },
  VoicewireSpentFast: {
    series: {
      [`voicewire_characters_total{${AT},outcome="billed"}`]: `0+10000x${(7 * DAY) / 10} ${7000 * DAY}+40000x30`,
    },
    stepMinutes: 10,
    minute: 7 * DAY + 120,
    labels: JOB,
  },
  VoicewireServiceHangs: { series: of("service_hangs_total", "3+0x20 4+0x60"), minute: 25, labels: INSTANCE },
  VoicewireDown: {
    series: { [`up{${AT}}`]: "1+0x10 0+0x600", ...of("build_info", "1+0x10 _x600") },
    minute: 300,
    labels: INSTANCE,
  },
  VoicewireOverloaded: {
    series: {
      [`nodejs_eventloop_lag_p99_seconds{${AT}}`]: "0.05+0x60",
      ...of("late_wakes_total", "0+600x60"),
    },
    minute: 30,
    labels: INSTANCE,
  },
  VoicewireMemoryGrows: {
    series: { [`process_resident_memory_bytes{${AT}}`]: "200000000+1000000x300" },
    minute: 240,
    labels: INSTANCE,
  },
  VoicewireDrainStuck: { series: of("draining", "0+0x10 1+0x60"), minute: 40, labels: INSTANCE },
  VoicewireCertificateEnds: {
    series: of("tls_certificate_end_seconds", `${13 * 86_400}+0x300`),
    minute: 90,
    labels: INSTANCE,
  },
  VoicewireKeysBroken: { series: of("keys_broken", "1+0x60"), minute: 30, labels: INSTANCE },
  VoicewireAuditLinesLost: {
    series: of("audit_lines_lost_total", "0+0x10 1+1x60"),
    minute: 20,
    labels: INSTANCE,
  },
  VoicewireLedgerFails: { series: of("ledger_lost_total", "0+0x10 1+1x60"), minute: 25, labels: INSTANCE },
  VoicewireRecordingsEnd: {
    series: { [`voicewire_recordings_ended_total{${AT},reason="disk"}`]: "0+0x10 1+0x60" },
    minute: 15,
    labels: INSTANCE,
  },
  VoicewireBusLost: { series: of("cluster_bus_up", "1+0x10 0+0x60"), minute: 20, labels: INSTANCE },
  VoicewireTakeoverLoop: { series: of("cluster_takeovers_total", "0+3x60"), minute: 30, labels: JOB },
};

interface Expectation {
  readonly alert: Alert;
  readonly minute: number;
  /** null: it is quiet. */
  readonly labels: Readonly<Record<string, string>> | null;
}

function evaluated(series: Series, expectations: readonly Expectation[], stepMinutes = 1) {
  return {
    interval: `${stepMinutes}m`,
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    alert_rule_test: expectations.map(({ alert, minute, labels }) => ({
      eval_time: `${minute}m`,
      alertname: alert.alert,
      exp_alerts:
        labels === null
          ? []
          : [{ exp_labels: { ...labels, ...alert.labels }, exp_annotations: alert.annotations }],
    })),
  };
}

const run = (test: ReturnType<typeof evaluated>) =>
  testRules(text, { rule_files: ["rules.yml"], evaluation_interval: test.interval, tests: [test] });

describe("alert rules", () => {
  it("each has a case here, a severity, and a runbook that is a heading of docs/operate.md", () => {
    expect(alerts.map(({ alert }) => alert).sort()).toEqual(Object.keys(CASES).sort());
    for (const { alert, labels, annotations } of alerts) {
      expect(["page", "ticket"]).toContain(labels.severity);
      expect(annotations.runbook).toBe(`docs/operate.md#${alert.toLowerCase()}`);
      expect([alert, page.split(`\n### ${alert}\n`).length]).toEqual([alert, 2]);
    }
    const headings = [...page.matchAll(/^### (Voicewire\w+)$/gm)].map(([, name]) => name);
    expect(headings.sort()).toEqual(Object.keys(CASES).sort());
  });

  it("each runbook says what to look at first, three things, and what to do", () => {
    for (const { alert } of alerts) {
      const [section = ""] = (page.split(`\n### ${alert}\n`)[1] ?? "").split(/\n#{2,3} /);
      expect([alert, [...section.matchAll(/^\d\. /gm)].length]).toEqual([alert, 3]);
      expect([alert, section.includes("\n**Do:** ")]).toEqual([alert, true]);
    }
  });

  it("the panels that runbooks name are on the dashboard", () => {
    const { panels } = JSON.parse(textOf("grafana/voicewire.json")) as { panels: { title: string }[] };
    const titles = new Set(panels.map(({ title }) => title));
    const [section = ""] = (page.split("\n## Alerts\n")[1] ?? "").split("\n## ");
    const named = [...section.matchAll(/"([^"]+)"/g)].map(([, name = ""]) => name);
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((name) => !titles.has(name.replaceAll("\n   ", " ")))).toEqual([]);
  });

  it("they ask for nothing that a gateway does not have", async () => {
    const names = namesIn(await metricsText());
    expect(alerts.flatMap(({ expr }) => metricsIn(expr)).filter((name) => !names.has(name))).toEqual([]);
  });
});

it("counters with a label that alerts wait for are there before they count: one that appears does not rise", async () => {
  const gateway = await metricsText();
  const waitedFor = alerts
    .flatMap(({ expr }) => [...expr.matchAll(/(\w+_total)\{(\w+="\w+")\}/g)])
    .map(([, name = "", label = ""]) => [name, label]);
  expect(waitedFor).toContainEqual(["voicewire_refused_total", 'reason="upstream_busy"']);
  for (const [name, label] of waitedFor)
    expect(gateway).toMatch(new RegExp(`^${name}\\{${label}\\} 0$`, "m"));
});

describe.skipIf(isPromtoolMissing)(`alert rules in Prometheus${IF_PROMTOOL_MISSING}`, () => {
  it("it can read them", () => {
    expect(checkRules(text)).toEqual({ status: 0, errors: "" });
  });

  it("the configuration in docs/operate.md names them, and the scraper's key", () => {
    const [, config = ""] = page.match(/```yaml\n# prometheus\.yml\n([\s\S]*?)```/) ?? [];
    const parts = parse(config) as { readonly rule_files: unknown; readonly scrape_configs: unknown };
    expect(parts).toMatchObject({
      rule_files: ["alerts.yml"],
      scrape_configs: [{ authorization: { credentials_file: "scraper.key" } }],
    });
    const files = { "alerts.yml": text, "scraper.key": "vwk_scraper_0" };
    expect(checkConfig(config, files)).toEqual({ status: 0, errors: "" });
  });

  it("none fires on a healthy gateway", { timeout: 120_000 }, () => {
    const minutes = 2 * DAY;
    const expectations = [5, 60, 300, DAY + 60, minutes].flatMap((minute) =>
      alerts.map((alert) => ({ alert, minute, labels: null })),
    );
    expect(run(evaluated(healthy(minutes), expectations))).toEqual({ status: 0, errors: "" });
  });

  it.each(alerts.map((alert) => [alert.alert, alert] as const))(
    "%s fires in its case, and not at once",
    { timeout: 120_000 },
    (name, alert) => {
      const {
        series,
        minute,
        labels,
        stepMinutes = 1,
      } = CASES[name] ?? { series: {}, minute: 0, labels: {} };
      const expectations = [
        { alert, minute: 0, labels: null },
        { alert, minute, labels },
      ];
      const all = { ...healthy(minute / stepMinutes), ...series };
      expect(run(evaluated(all, expectations, stepMinutes))).toEqual({ status: 0, errors: "" });
    },
  );
});
