/** A process that stood still while others took its sessions over: one voice, not two. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { NatsBus } from "../../src/cluster/bus/nats-bus.ts";
import { Standstill } from "../../src/cluster/standstill.ts";
import { Pacer } from "../../src/delivery/pacer.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { endNatsServers, IF_NATS_MISSING, isNatsMissing, NatsServer } from "../kit/nats-server.ts";
import { isBuilt } from "../kit/node-process.ts";

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function rig(verify: () => Promise<void>) {
  const clock = new FakeClock();
  const standstill = new Standstill({ clock, log: watchedLog, verify });
  const pacer = new Pacer(clock, (nowMs) => standstill.isHeld(nowMs));
  let ticks = 0;
  const paced = pacer.register({
    tick: (nowMs) => {
      ticks += 1;
      paced.wakeAt(nowMs + 20);
    },
    send: () => undefined,
  });
  paced.wakeAt(clock.nowMs());
  return { clock, standstill, ticks: () => ticks };
}

describe("behind a standstill", () => {
  it("nobody is woken until the owners are known, whichever timer runs first", async () => {
    let known: (() => void) | null = null;
    const { clock, ticks } = rig(() => new Promise((resolve) => (known = resolve)));
    clock.advance(1000);
    const before = ticks();
    expect(before).toBeGreaterThan(10);
    clock.stall(2500);
    clock.advance(1000);
    expect(ticks()).toBe(before);
    (known as (() => void) | null)?.();
    await settle();
    clock.advance(100);
    expect(ticks()).toBeGreaterThan(before);
  });

  it("a short standstill asks nothing", () => {
    const { clock, ticks } = rig(() => expect.fail("asked"));
    clock.stall(1500);
    clock.advance(100);
    expect(ticks()).toBeGreaterThan(0);
  });

  it("asks again where the store can't be asked", async () => {
    let tries = 0;
    const { clock, ticks } = rig(async () => {
      tries += 1;
      if (tries < 3) throw new Error("lost");
    });
    clock.stall(5000);
    for (let slots = 0; slots < 10; slots += 1) {
      clock.advance(100);
      await settle();
    }
    expect(tries).toBe(3);
    expect(ticks()).toBeGreaterThan(0);
  });
});

const isLeftOut = isNatsMissing || (!isBuilt && process.env.CI === undefined);

describe.skipIf(isLeftOut)(`a gateway that hangs${IF_NATS_MISSING}`, () => {
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill("SIGKILL");
  });
  afterAll(endNatsServers);

  /** Resolves with its address. */
  async function startProcess(...parameters: string[]) {
    const program = fileURLToPath(new URL("gateway-program.mjs", import.meta.url));
    const child = spawn(process.execPath, [program, ...parameters], { stdio: ["ignore", "pipe", "inherit"] });
    children.push(child);
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    return { child, wsUrl: line.toString().trim().replace("http", "ws") };
  }

  it("says nothing more when it wakes, and its clients are sent to where the session is", async () => {
    const fake = await startFakeUpstream(speaking({ msPerChar: 20 }));
    await using server = await NatsServer.start();
    const hung = await startProcess(server.url, fake.url, "hung");
    const connect = () => NatsBus.connect({ url: server.url });
    await using other = await gatewayAt(fake.url, { trimMs: 0 }, { cluster: { nodeName: "other", connect } });
    const query = "format=ulaw_8000&lead_ms=100";
    const text = "One two three four five six seven. ".repeat(60);
    await using before = await TestClient.connect(hung, `/live/call?${query}`);
    const { epoch } = await before.next("hello");
    before.send({ type: "speak", text, voice_id: "v" });
    await before.until(() => before.frames.length > 20);
    hung.child.kill("SIGSTOP");
    // What it had sent is read.
    await new Promise((resolve) => setTimeout(resolve, 500));
    const heard = before.frames.length;
    let after: TestClient | null = null;
    const deadlineMs = performance.now() + 20_000;
    while (after === null && performance.now() < deadlineMs) {
      const client = await TestClient.connect(other, `/live/call?${query}`);
      await client.until(() => client.closed !== null || client.eventsOf("hello").length > 0);
      if (client.eventsOf("hello").length > 0) after = client;
    }
    expect(after?.eventsOf("hello")[0]?.epoch).not.toBe(epoch);
    after?.send({ type: "speak", text, voice_id: "v" });
    await after?.until(() => (after?.frames.length ?? 0) > 50);
    hung.child.kill("SIGCONT");
    expect((await before.untilClosed()).code).toBe(4502);
    expect(before.frames.length).toBe(heard);
    expect(after?.closed).toBeNull();
    after?.socket.terminate();
    await fake.close();
  }, 60_000);
});
