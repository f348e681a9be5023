import { describe, expect, test } from "vitest";
import { type ServiceChild, startEmbeddedService } from "../../../src/cli/serve/embedded.ts";
import type { ParentMessage, ServiceReport } from "../../../src/cli/serve/service-messages.ts";
import { GatewayError } from "../../../src/errors.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { watchedLog } from "../../helpers/watched-log.ts";

/** A child that a test reports and ends by hand. */
class FakeChild implements ServiceChild {
  readonly pid = 1;
  readonly args: readonly string[];
  readonly killed: string[] = [];
  readonly keys: string[] = [];
  pings = 0;
  #isHanging = false;
  #report: ((report: ServiceReport) => void) | undefined;
  readonly #endListeners: ((reason: string) => void)[] = [];

  constructor(args: readonly string[]) {
    this.args = args;
  }
  send(message: ParentMessage): void {
    if (message.type === "key") {
      this.keys.push(message.key);
      return;
    }
    this.pings++;
    if (!this.#isHanging) this.#report?.({ type: "pong" });
  }
  hang(): void {
    this.#isHanging = true;
  }
  /** Goes on with what has come meanwhile. */
  wake(): void {
    this.#isHanging = false;
    this.#report?.({ type: "pong" });
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
  const log = { ...watchedLog, error: (_: object, message: string) => messages.push(message) };
  const starting = startEmbeddedService({
    clock,
    env: {},
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
    const service = await starting;
    expect(service.url).toBe("http://127.0.0.1:4321");
    // Left: the timer of the next ping.
    expect(clock.pending).toBe(1);
    child(0).end("signal SIGTERM");
    await service.stop();
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

  test("hands each child the key over IPC, another one for each supervisor", async () => {
    const { child, starting, clock } = setUp();
    child(0).listening();
    const service = await starting;
    expect(service.key).toMatch(/^[0-9a-f]{64}$/);
    child(0).end("gone");
    clock.advance(100);
    for (const index of [0, 1]) {
      expect(child(index).keys).toEqual([service.key]);
      expect(child(index).args.join(" ")).not.toContain(service.key);
    }
    const other = setUp();
    expect(other.child(0).keys).not.toEqual([service.key]);
  });

  describe("a child that hangs", () => {
    async function listening() {
      const rig = setUp();
      rig.child(0).listening();
      const service = await rig.starting;
      rig.clock.advance(1_000);
      return { ...rig, service };
    }

    test("is killed after 5 s without an answer, and started again on the same port", async () => {
      const { child, clock, messages, service } = await listening();
      clock.advance(60_000);
      expect(child(0).killed).toEqual([]);
      child(0).hang();
      clock.advance(5_999);
      expect(child(0).killed).toEqual([]);
      clock.advance(1);
      expect(child(0).killed).toEqual(["SIGKILL"]);
      expect(service.hangs).toBe(1);
      expect(messages[0]).toBe("Embedded speech service does not answer; killing it");
      clock.advance(100);
      expect(child(1).args).toEqual(["service", "--parent", "--port", "4321"]);
      child(1).listening();
      clock.advance(60_000);
      expect(child(1).killed).toEqual([]);
      expect(service.hangs).toBe(1);
    });

    test("is left alone when it answers in time after all", async () => {
      const { child, clock, service } = await listening();
      for (let round = 0; round < 10; round++) {
        child(0).hang();
        clock.advance(4_500);
        child(0).wake();
        clock.advance(1_000);
      }
      expect(child(0).killed).toEqual([]);
      expect(service.hangs).toBe(0);
    });

    test("a gateway that slept or stood still does not kill a child whose answers it could not read", async () => {
      const { child, clock, service } = await listening();
      // The answers wait unread: to the gateway it looks as if there were none.
      child(0).hang();
      clock.stall(3_600_000);
      clock.advance(0);
      for (let round = 0; round < 10; round++) {
        clock.stall(5_000);
        clock.advance(0);
      }
      expect(child(0).killed).toEqual([]);
      child(0).wake();
      clock.advance(60_000);
      expect(service.hangs).toBe(0);
    });

    test("is killed even when the gateway stands still now and then: only its time awake counts", async () => {
      const { child, clock, service } = await listening();
      child(0).hang();
      for (let round = 0; round < 5; round++) {
        expect(child(0).killed).toEqual([]);
        clock.stall(5_000);
        clock.advance(0);
        clock.advance(1_000);
      }
      expect(service.hangs).toBe(1);
    });

    test("is not pinged before it listens, nor once it is stopped", async () => {
      const { child, clock, starting } = setUp();
      child(0).hang();
      clock.advance(30_000);
      expect(child(0).pings).toBe(0);
      child(0).listening();
      const service = await starting;
      const stopped = service.stop();
      const before = child(0).pings;
      clock.advance(1_999);
      expect(child(0).pings).toBe(before);
      child(0).end("signal SIGTERM");
      await stopped;
      expect(clock.pending).toBe(0);
      expect(service.hangs).toBe(0);
    });
  });
});
