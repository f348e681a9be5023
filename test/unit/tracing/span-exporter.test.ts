/** What reaches a collector, and what a collector that is down, slow or unwilling costs. */
import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../../src/kit/clock.ts";
import type { Logger } from "../../../src/kit/log.ts";
import { createSampler } from "../../../src/tracing/sampler.ts";
import { SpanExporter, type SpanExporterOptions } from "../../../src/tracing/span-exporter.ts";
import { Tracer } from "../../../src/tracing/tracer.ts";
import { freePort } from "../../helpers/free-port.ts";
import { until } from "../../helpers/until.ts";
import { watchedLog } from "../../helpers/watched-log.ts";
import { Collector } from "../../kit/collector.ts";

/** The clock goes a hundred times as fast: waits of seconds are tried in a test. */
const HASTE = 100;
const hasty: Clock = {
  nowMs: () => systemClock.nowMs() * HASTE,
  at: (atMs, action) => systemClock.at(atMs / HASTE, action),
};

function exporterTo(url: string, options: Partial<SpanExporterOptions> = {}) {
  const exporter = new SpanExporter({
    url: `${url}/v1/traces`,
    headers: { "x-key": "k" },
    resource: { "service.name": "test", "process.pid": 1 },
    scope: { name: "voicewire", version: "1" },
    timeoutMs: 1000,
    delayMs: 100,
    maxQueued: 100,
    maxBatch: 10,
    clock: hasty,
    log: watchedLog,
    ...options,
  });
  const { clock = hasty } = options;
  const tracer = new Tracer({
    clock,
    sampler: createSampler("always_on", undefined),
    wallMs: Date.now,
    deliver: (json) => exporter.push(json),
  });
  const span = (name = "s"): void =>
    tracer.begin(null, { name, kind: "server", startMs: clock.nowMs(), attributes: {} })?.end(clock.nowMs());
  return { exporter, tracer, span };
}

function warnings(): { log: Logger; said: string[] } {
  const said: string[] = [];
  const warn = (fields: object, message: string): void =>
    void said.push(`${message} ${JSON.stringify(fields)}`);
  return { log: { ...watchedLog, warn } as Logger, said };
}

describe("a collector that takes spans", () => {
  it("gets them with their resource, scope, attributes, events and status", async () => {
    await using collector = await Collector.start();
    const clock = systemClock;
    const { exporter, tracer } = exporterTo(collector.url, { clock });
    const before = Date.now();
    const root = tracer.begin(null, {
      name: "root",
      kind: "server",
      startMs: clock.nowMs(),
      attributes: { text: 'a "b" \u2028', whole: 3, half: 0.5, yes: true, list: ["a", "b"], none: null },
    });
    const child = root?.child({ name: "child", kind: "client", startMs: clock.nowMs(), attributes: {} });
    child?.event("first_byte", clock.nowMs(), { n: 1 });
    child?.end(clock.nowMs(), "upstream_timeout");
    child?.end(clock.nowMs(), null);
    child?.event("late", clock.nowMs());
    root?.end(clock.nowMs());
    await exporter.close();
    expect(collector.faults).toEqual([]);
    const [second, first] = collector.spans;
    expect(first).toMatchObject({
      name: "root",
      kind: 2,
      attributes: { text: 'a "b" \u2028', whole: 3, half: 0.5, yes: true, list: ["a", "b"] },
      resource: { "service.name": "test", "process.pid": 1 },
      status: {},
    });
    expect(first?.attributes).not.toHaveProperty("none");
    expect(second).toMatchObject({
      traceId: first?.traceId,
      parentSpanId: first?.spanId,
      kind: 3,
      attributes: { "error.type": "upstream_timeout" },
      events: [{ name: "first_byte" }],
      status: { code: 2, message: "upstream_timeout" },
    });
    expect(collector.spans).toHaveLength(2);
    expect(Math.abs(Number(first?.startTimeUnixNano) / 1e6 - before)).toBeLessThan(60_000);
    expect(collector.requests[0]).toMatchObject({ path: "/v1/traces", headers: { "x-key": "k" } });
    expect(exporter.figures).toEqual({ sent: 2, dropped: 0, refused: 0, waiting: 0 });
  });

  it("gets them in batches, each once", async () => {
    await using collector = await Collector.start();
    const { exporter, span } = exporterTo(collector.url);
    for (let n = 0; n < 35; n += 1) span(`s${n}`);
    await until("all are there", () => collector.spans.length === 35);
    expect(new Set(collector.spans.map(({ name }) => name)).size).toBe(35);
    expect(collector.requests.length).toBeGreaterThanOrEqual(4);
    await exporter.close();
  });
});

describe("a collector that does not", () => {
  it("is asked again while it is overloaded, and gets all of them once it takes them", async () => {
    await using collector = await Collector.start();
    const { log, said } = warnings();
    const { exporter, span } = exporterTo(collector.url, { log });
    collector.instead = (res) => res.writeHead(503, { "retry-after": "1" }).end();
    span();
    await until("it was asked twice", () => collector.requests.length >= 2);
    collector.instead = null;
    await until("it has it", () => collector.spans.length === 1);
    await until("it is counted", () => exporter.figures.sent === 1);
    expect(said).toHaveLength(1);
    expect(said[0]).toContain("503");
    await exporter.close();
  });

  it("costs what has no room, and the log says how much once it takes spans again", async () => {
    await using collector = await Collector.start();
    const said: object[] = [];
    const info = (fields: object): void => void said.push(fields);
    collector.instead = (res) => res.writeHead(503).end();
    const log = { ...watchedLog, info, warn: () => undefined } as Logger;
    const { exporter, span } = exporterTo(collector.url, { maxQueued: 4, log });
    for (let made = 0; made < 7; made++) span();
    await until("it was asked", () => collector.requests.length > 0);
    collector.instead = null;
    await until("all are sent", () => exporter.figures.sent === 4);
    expect(said).toEqual([{ dropped: 3 }]);
    await exporter.close();
  });

  it("and refuses them is not asked again: they are counted", async () => {
    await using collector = await Collector.start();
    const { exporter, span } = exporterTo(collector.url);
    collector.instead = (res) => res.writeHead(401).end();
    span();
    await until("it is refused", () => exporter.figures.refused === 1);
    expect(collector.requests).toHaveLength(1);
    await exporter.close();
  });

  it("but takes a part of them says how many it does not", async () => {
    await using collector = await Collector.start();
    const { exporter, span } = exporterTo(collector.url);
    collector.instead = (res) => res.end('{"partialSuccess":{"rejectedSpans":"3","errorMessage":"full"}}');
    for (let n = 0; n < 10; n += 1) span();
    await until("they are counted", () => exporter.figures.sent === 7);
    expect(exporter.figures.refused).toBe(3);
    await exporter.close();
  });

  it("and can't be reached costs spans beyond the bound, and no memory", async () => {
    const { log, said } = warnings();
    const { exporter, span } = exporterTo(`http://127.0.0.1:${await freePort()}`, { log });
    for (let n = 0; n < 500; n += 1) span();
    expect(exporter.figures.waiting).toBe(100);
    expect(exporter.figures.dropped).toBe(400);
    // Batches are given up one by one.
    await until("all are given up", () => exporter.figures.dropped === 500, { deadlineMs: 15_000 });
    expect(said).toHaveLength(1);
    await exporter.close();
  });

  it("and never answers is left after the time that is set, also when the gateway ends", async () => {
    await using collector = await Collector.start();
    const { exporter, span } = exporterTo(collector.url, { timeoutMs: 50 });
    collector.instead = () => undefined;
    span();
    await until("it was asked again", () => collector.requests.length >= 2);
    await exporter.close();
    await exporter.close();
    expect(exporter.figures).toEqual({ sent: 0, dropped: 1, refused: 0, waiting: 0 });
    span();
    expect(exporter.figures.dropped).toBe(2);
  });
});
