/** The bus of workers, as the process that started them keeps it: what it does when one ends, or does not read. */
import { duplexPair } from "node:stream";
import { describe, expect, it } from "vitest";
import { MemoryHub } from "../../src/cluster/bus/memory-bus.ts";
import { NodeRegistry, type NodeView } from "../../src/cluster/bus/node-registry.ts";
import { ProcessBus } from "../../src/cluster/bus/process-bus.ts";
import { MAX_UNREAD_BYTES, serveBus } from "../../src/cluster/bus/process-hub.ts";
import { WorkerHub } from "../../src/cluster/bus/worker-hub.ts";
import { SessionOwners } from "../../src/cluster/session-owners.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { until } from "../helpers/until.ts";
import { watchedLog } from "../helpers/watched-log.ts";

const FACTS = { url: "", load: 0, isDraining: false, buddy: null, machine: "" };
const never = (): void => expect.unreachable("It reads");

async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

async function startWorker(hub: WorkerHub, name: string) {
  const [stream, far] = duplexPair();
  const seat = hub.serve(far, never);
  const bus = new ProcessBus({ stream, clock: systemClock, log: watchedLog });
  const nodes = await NodeRegistry.join(bus, { name, facts: FACTS, onReplaced: never });
  const owners = await SessionOwners.open({ bus, nodes, clock: systemClock, onLost: never });
  const seen: string[] = [];
  nodes.onChange((node: NodeView) => seen.push(`${node.name} ${node.state}`));
  return { stream, seat, bus, nodes, owners, seen };
}

describe("the hub of workers", () => {
  it("says good-bye for a worker that is killed: the others know at once, and claim what it owned", async () => {
    const clock = new FakeClock();
    const hub = await WorkerHub.open({ clock, log: watchedLog });
    const [one, two] = [await startWorker(hub, "worker-1"), await startWorker(hub, "worker-2")];
    await until("they know each other", () => two.nodes.find("worker-1") !== undefined);
    await one.owners.claim("s");
    await one.owners.claim("left");
    await until("it is known", () => two.owners.find("s") !== undefined);
    one.stream.end();
    hub.nodeEnded("worker-1");
    await until("its end is known", () => two.seen.includes("worker-1 left"));
    expect(await two.owners.claim("s")).toMatchObject({ node: "worker-2", isHere: true });
    // Of what nobody has claimed the entry goes when a lease would have ended, and nothing else does.
    expect(two.owners.find("left")).toBeDefined();
    clock.advance(20_000);
    await until("it is forgotten", () => two.owners.find("left") === undefined);
    await settled();
    expect(two.owners.find("s")).toMatchObject({ node: "worker-2" });
    const again = await startWorker(hub, "worker-1");
    await until("another has its name", () => two.nodes.find("worker-1")?.state === "alive");
    for (const { bus } of [one, two, again]) await bus.close();
    await hub.close();
  });

  it("a request to a worker that has ended fails at once, also one that waits for its answer", async () => {
    const hub = new MemoryHub({ clock: systemClock });
    const [stream, far] = duplexPair();
    serveBus({ bus: hub.open(), stream: far, onStuck: never });
    const bus = new ProcessBus({ stream, clock: systemClock, log: watchedLog });
    await bus.answer("q", () => new Promise<Uint8Array>(() => undefined));
    const other = hub.open();
    const asked = other.request("q", new Uint8Array(), { timeoutMs: 60_000 });
    await settled();
    stream.end();
    await expect(asked).rejects.toMatchObject({ code: "bus_no_answer" });
    await settled();
    const next = other.request("q", new Uint8Array(), { timeoutMs: 60_000 });
    await expect(next).rejects.toMatchObject({ code: "bus_no_answer" });
    expect(bus.state).toBe("lost");
  });

  it("a message that can't be passed on is lost, and those behind it come", async () => {
    const hub = new MemoryHub({ clock: systemClock, maxWaitingBytes: 1000 });
    const [stream, far] = duplexPair();
    serveBus({ bus: hub.open(), stream: far, onStuck: never });
    const bus = new ProcessBus({ stream, clock: systemClock, log: watchedLog });
    const heard: number[] = [];
    await hub.open().subscribe("s", ({ length }) => heard.push(length));
    bus.publish("s", new Uint8Array(2000));
    bus.publish("s", new Uint8Array(20));
    await until("the second", () => heard.length > 0);
    expect(heard).toEqual([20]);
    await bus.close();
  });

  it("a worker that does not read is given up when too much waits for it", async () => {
    const hub = new MemoryHub({ clock: systemClock });
    const [stream, far] = duplexPair();
    let stuck = 0;
    serveBus({
      bus: hub.open(),
      stream: far,
      onStuck: () => {
        stuck += 1;
      },
    });
    const bus = new ProcessBus({ stream, clock: systemClock, log: watchedLog });
    await bus.subscribe("s", () => undefined);
    stream.pause();
    const other = hub.open();
    const message = new Uint8Array(1024 * 1024);
    for (let sent = 0; sent <= MAX_UNREAD_BYTES + 4 * message.length; sent += message.length) {
      other.publish("s", message);
      await settled();
    }
    expect(stuck).toBe(1);
  });
});
