/** What `serve --workers` is made of: shares of settings, merged metrics, and a worker that ends, hangs or does not start. */
import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import type { Child } from "../../../src/cli/serve/child.ts";
import { mergeExpositions } from "../../../src/cli/serve/workers/merge-metrics.ts";
import type { FromWorker, ToWorker } from "../../../src/cli/serve/workers/worker-messages.ts";
import { WorkerProcess } from "../../../src/cli/serve/workers/worker-process.ts";
import { checkShares, shareOf } from "../../../src/cli/serve/workers/worker-share.ts";
import { settingsFrom } from "../../../src/cli/settings.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { watchedLog } from "../../helpers/watched-log.ts";

const { config } = settingsFrom({});
const STATE = { sessions: 3, isDraining: false, upstream: { open: 0, queued: 0, regions: [] } };

class FakeWorker implements Child<ToWorker, FromWorker> {
  readonly pid = 1;
  readonly sent: string[] = [];
  readonly killed: string[] = [];
  isHanging = false;
  #report: (report: FromWorker) => void = () => undefined;
  readonly #endListeners: ((reason: string) => void)[] = [];

  send(message: ToWorker): void {
    if (message.type !== "ping") this.sent.push(message.type);
    if (message.type === "ping" && !this.isHanging) this.#report({ type: "pong", state: STATE });
  }
  onReport(listener: (report: FromWorker) => void): void {
    this.#report = listener;
  }
  report(report: FromWorker): void {
    this.#report(report);
  }
  onEnd(listener: (reason: string) => void): void {
    this.#endListeners.push(listener);
  }
  kill(signal: "SIGTERM" | "SIGKILL"): void {
    this.killed.push(signal);
    this.end(`signal ${signal}`);
  }
  end(reason = "exit code 1"): void {
    for (const listener of this.#endListeners.splice(0)) listener(reason);
  }
}

function setUp() {
  const clock = new FakeClock();
  const children: FakeWorker[] = [];
  const ended: string[] = [];
  const worker = new WorkerProcess({
    worker: 1,
    clock,
    log: watchedLog,
    fork: () => {
      const child = new FakeWorker();
      children.push(child);
      return { child, pipe: new PassThrough() };
    },
    start: () => ({
      type: "start",
      worker: 1,
      nodeName: "worker-1",
      config,
      upstream: { baseUrl: "http://127.0.0.1:1", key: "", passesFaults: false },
      services: [],
      voices: [],
    }),
    serveBus: () => ({ close: () => ended.push("bus") }),
    onEnd: () => ended.push("process"),
  });
  const newest = (): FakeWorker => {
    const child = children.at(-1);
    if (child === undefined) throw new Error("No child");
    return child;
  };
  const startUp = async (): Promise<void> => {
    const started = worker.start();
    newest().report({ type: "listening" });
    await started;
  };
  return { clock, worker, children, ended, newest, startUp };
}

/** Promises that wait for one another are settled by then. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("a worker", () => {
  test("starts with the settings of its parent, and is up when it listens", async () => {
    const { worker, newest, startUp } = setUp();
    expect(worker.isUp).toBe(false);
    await startUp();
    expect(newest().sent).toEqual(["start"]);
    expect(worker.isUp).toBe(true);
  });

  test("that can't start rejects with what it reported, and is not started again", async () => {
    const { clock, worker, children, newest } = setUp();
    const started = worker.start();
    newest().report({ type: "failed", code: "port_in_use", message: "Taken" });
    newest().end();
    await expect(started).rejects.toMatchObject({ code: "port_in_use", message: "Taken" });
    clock.advance(60_000);
    expect(children).toHaveLength(1);
  });

  test("that ends is started again, after a wait that doubles while it ends at once", async () => {
    const { clock, worker, children, ended, newest, startUp } = setUp();
    await startUp();
    for (const [waitMs, count] of [
      [100, 2],
      [200, 3],
      [400, 4],
    ] as const) {
      newest().end();
      expect(worker.isUp).toBe(false);
      expect(worker.state).toBeNull();
      clock.advance(waitMs - 1);
      expect(children).toHaveLength(count - 1);
      clock.advance(1);
      expect(children).toHaveLength(count);
      newest().report({ type: "listening" });
      await settled();
    }
    expect(worker.restarts).toBe(3);
    expect(ended).toEqual(["bus", "process", "bus", "process", "bus", "process"]);
    clock.advance(10_000);
    newest().end();
    clock.advance(100);
    expect(children).toHaveLength(5);
  });

  test("that hangs is killed and started again", async () => {
    const { clock, worker, children, newest, startUp } = setUp();
    await startUp();
    const first = newest();
    first.isHanging = true;
    clock.advance(6000);
    expect(first.killed).toEqual(["SIGKILL"]);
    clock.advance(100);
    expect(children).toHaveLength(2);
    expect([worker.hangs, worker.restarts]).toEqual([1, 1]);
  });

  test("says how it is with each ping", async () => {
    const { clock, worker, startUp } = setUp();
    await startUp();
    clock.advance(1000);
    expect(worker.state).toEqual(STATE);
  });

  test("that is asked to end by a signal ends when its speech has, and another one takes its place", async () => {
    const { clock, children, newest, startUp } = setUp();
    await startUp();
    newest().report({ type: "settled" });
    expect(newest().sent).toEqual(["start", "close"]);
    newest().end("exit code 0");
    clock.advance(100);
    expect(children).toHaveLength(2);
  });

  test("settle waits for its speech, then it stays until it is closed; nothing is started again", async () => {
    const { clock, worker, children, newest, startUp } = setUp();
    await startUp();
    const settling = worker.settle();
    newest().report({ type: "settled" });
    await settling;
    expect(newest().sent).toEqual(["start", "settle"]);
    const closing = worker.close();
    newest().end("exit code 0");
    await closing;
    await worker.close();
    clock.advance(60_000);
    expect(children).toHaveLength(1);
  });

  test("that does not end when it is closed is killed", async () => {
    const { clock, worker, newest, startUp } = setUp();
    await startUp();
    const closing = worker.close();
    clock.advance(5000);
    await closing;
    expect(newest().killed).toEqual(["SIGKILL"]);
  });

  test("gives its metrics, or none where it is down, ends before its answer or does not answer", async () => {
    const { clock, worker, newest, startUp } = setUp();
    expect(await worker.metrics()).toBeNull();
    await startUp();
    const asked = worker.metrics();
    newest().report({ type: "metrics", id: 1, text: "a 1" });
    expect(await asked).toBe("a 1");
    const unanswered = worker.metrics();
    clock.advance(2000);
    expect(await unanswered).toBeNull();
    const ending = worker.metrics();
    newest().end();
    expect(await ending).toBeNull();
  });
});

describe("metrics of all workers", () => {
  test("each sample gets its worker's label, each family is in one place", () => {
    const text = (value: number) =>
      `# HELP a Of all\n# TYPE a counter\na ${value}\n\n# HELP b_seconds Times\n# TYPE b_seconds histogram\n` +
      `b_seconds_bucket{le="+Inf",codec="x} y"} ${value}\nb_seconds_count ${value}\n`;
    expect(mergeExpositions([1, 2].map((value) => ({ worker: `${value}`, text: text(value) })))).toBe(
      [
        "# HELP a Of all",
        "# TYPE a counter",
        'a{worker="1"} 1',
        'a{worker="2"} 2',
        "",
        "# HELP b_seconds Times",
        "# TYPE b_seconds histogram",
        'b_seconds_bucket{worker="1",le="+Inf",codec="x} y"} 1',
        'b_seconds_count{worker="1"} 1',
        'b_seconds_bucket{worker="2",le="+Inf",codec="x} y"} 2',
        'b_seconds_count{worker="2"} 2',
        "",
      ].join("\n"),
    );
  });

  test("a family that the first worker does not have is there", () => {
    const expositions = [
      { worker: "1", text: "# TYPE a gauge\na 1" },
      { worker: "2", text: "# TYPE b gauge\nb 1" },
    ];
    expect(mergeExpositions(expositions)).toContain('# TYPE b gauge\nb{worker="2"} 1');
  });
});

describe("a worker's share of the settings", () => {
  const share = (settings: object, worker: number, count: number) =>
    shareOf({ ...config, ...settings }, { worker, count, port: 9000 });

  test("limits of the gateway are divided, those of one client are not; the port is the same", () => {
    const { port, workers, opsPort, maxSessions, upstreamConnections, sessionsPerSubject } = share(
      { maxSessions: 10, upstreamConnections: 7, sessionsPerSubject: 64, port: 0 },
      2,
      3,
    );
    expect({ port, workers, opsPort, maxSessions, upstreamConnections, sessionsPerSubject }).toEqual({
      port: 9000,
      workers: 1,
      opsPort: "off",
      maxSessions: 4,
      upstreamConnections: 3,
      sessionsPerSubject: 64,
    });
  });

  test("what is off stays off, and nothing becomes 0", () => {
    expect(share({ phraseCacheMb: 0, maxCalls: 0, maxSessions: 1 }, 1, 8)).toMatchObject({
      phraseCacheMb: 0,
      maxCalls: 0,
      maxSessions: 1,
    });
  });

  test.each([
    ["10000-10007", 3, ["10000-10001", "10002-10003", "10004-10007"]],
    ["10001-10006", 3, ["10002-10003", "10004-10005", "10006-10007"]],
    ["10000-10002", 2, ["10000-10001", "10002-10003"]],
  ])("RTP ports %s are divided into pairs", (rtpPorts, count, expected) => {
    const ports = expected.map((_, index) => share({ rtpPorts }, index + 1, count).rtpPorts);
    expect(ports).toEqual(expected);
  });

  test("each worker has an AudioSocket port of its own, or none has", () => {
    expect([1, 2].map((worker) => share({ audiosocketPort: 9092 }, worker, 2).audiosocketPort)).toEqual([
      9092, 9093,
    ]);
    expect(share({ audiosocketPort: 0 }, 2, 2).audiosocketPort).toBe(0);
    const asked = { ...config, audiosocketPort: 65_535 };
    expect(() => checkShares(asked, { count: 2, platform: "linux" })).toThrow("65535 at most");
  });

  test("other systems than Linux do not spread the connections of a port", () => {
    expect(() => checkShares(config, { count: 2, platform: "darwin" })).toThrow("only Linux");
  });

  test("too few RTP ports are refused", () => {
    expect(() => share({ rtpPorts: "10000-10002" }, 1, 3)).toThrow("2 even ports");
  });
});
