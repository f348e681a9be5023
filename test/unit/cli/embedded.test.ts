import { describe, expect, test } from "vitest";
import { type ServiceChild, type ServiceReport, startEmbeddedService } from "../../../src/cli/embedded.ts";
import { GatewayError } from "../../../src/errors.ts";
import { silentLog } from "../../../src/kit/log.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

/** A child that a test reports and ends by hand. */
class FakeChild implements ServiceChild {
  readonly pid = 1;
  readonly args: readonly string[];
  readonly killed: string[] = [];
  #report: ((report: ServiceReport) => void) | undefined;
  readonly #endListeners: ((reason: string) => void)[] = [];

  constructor(args: readonly string[]) {
    this.args = args;
  }
  onReport(listener: (report: ServiceReport) => void): void {
    this.#report = listener;
  }
  onEnd(listener: (reason: string) => void): void {
    this.#endListeners.push(listener);
  }
  kill(signal: "SIGTERM" | "SIGKILL"): void {
    this.killed.push(signal);
    if (signal === "SIGKILL") this.end("signal SIGKILL");
  }
  listening(port = 4321): void {
    this.#report?.({ type: "listening", url: `http://127.0.0.1:${port}`, port });
  }
  failed(message: string): void {
    this.#report?.({ type: "failed", code: "voice_package_missing", message });
  }
  end(reason: string): void {
    for (const listener of this.#endListeners.splice(0)) listener(reason);
  }
}

function setUp() {
  const clock = new FakeClock();
  const children: FakeChild[] = [];
  const messages: string[] = [];
  const log = { ...silentLog, error: (_: object, message: string) => messages.push(message) };
  const starting = startEmbeddedService({
    clock,
    log: { ...log, info: (_: object, message: string) => messages.push(message) },
    start: (args) => {
      const child = new FakeChild(args);
      children.push(child);
      return child;
    },
  });
  const child = (index: number): FakeChild => {
    const found = children[index];
    if (found === undefined) throw new Error(`Expected a child number ${index}, got ${children.length}`);
    return found;
  };
  return { clock, children, child, messages, starting };
}

/** Lets promise callbacks run. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("startEmbeddedService()", () => {
  test("asks for any port and gives the one that the child reports", async () => {
    const { child, starting, clock } = setUp();
    expect(child(0).args).toEqual(["service", "--parent", "--port", "0"]);
    child(0).listening();
    expect((await starting).url).toBe("http://127.0.0.1:4321");
    expect(clock.pending).toBe(0);
  });

  test("starts a child that died again on the same port, later each time, and says so", async () => {
    const { child, children, starting, clock, messages } = setUp();
    child(0).listening();
    const service = await starting;
    child(0).end("signal SIGKILL");
    expect(messages).toEqual(["Embedded speech service ended; starting it again"]);
    expect(children).toHaveLength(1);
    clock.advance(100);
    expect(child(1).args).toEqual(["service", "--parent", "--port", "4321"]);
    child(1).listening();
    await settle();
    expect(messages.at(-1)).toBe("Embedded speech service is back");
    expect(service.restarts).toBe(1);
    child(1).end("exit code 1");
    clock.advance(199);
    expect(children).toHaveLength(2);
    clock.advance(1);
    expect(children).toHaveLength(3);
  });

  test("keeps trying when a restart fails, and is quick again after a healthy life", async () => {
    const { child, children, starting, clock } = setUp();
    child(0).listening();
    await starting;
    child(0).end("gone");
    clock.advance(100);
    child(1).end("exit code 3");
    await settle();
    clock.advance(200);
    expect(children).toHaveLength(3);
    child(2).listening();
    await settle();
    clock.advance(10_000);
    child(2).end("gone");
    clock.advance(100);
    expect(children).toHaveLength(4);
  });

  test("throws what the child reported where the first start fails", async () => {
    const { child, starting } = setUp();
    child(0).failed("No voice here");
    child(0).end("exit code 1");
    await expect(starting).rejects.toThrow(new GatewayError("voice_package_missing", "No voice here"));
  });

  test("ends a child that never reports, after its deadline", async () => {
    const { child, starting, clock } = setUp();
    clock.advance(60_000);
    expect(child(0).killed).toEqual(["SIGKILL"]);
    await expect(starting).rejects.toThrow("did not start: signal SIGKILL");
  });

  test("stop() ends the child, by force where it does not listen, and starts none again", async () => {
    const { child, children, starting, clock } = setUp();
    child(0).listening();
    const service = await starting;
    const stopped = Promise.all([service.stop(), service.stop()]);
    expect(child(0).killed).toEqual(["SIGTERM"]);
    clock.advance(2_000);
    await stopped;
    expect(child(0).killed).toEqual(["SIGTERM", "SIGKILL"]);
    clock.advance(60_000);
    expect(children).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });

  test("stop() while a restart waits starts nothing", async () => {
    const { child, children, starting, clock } = setUp();
    child(0).listening();
    const service = await starting;
    child(0).end("gone");
    await service.stop();
    clock.advance(60_000);
    expect(children).toHaveLength(1);
  });
});
