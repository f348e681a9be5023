/** What src/cluster/bus/bus.ts promises, held against each bus there is: inside one process, and over a real nats-server. */
import { randomUUID } from "node:crypto";
import { duplexPair } from "node:stream";
import { afterAll, describe, expect, it } from "vitest";
import { type Bus, type Entry, MAX_OPEN_ANSWERS, type TableChange } from "../../src/cluster/bus/bus.ts";
import { LateBus } from "../../src/cluster/bus/late-bus.ts";
import { MemoryHub } from "../../src/cluster/bus/memory-bus.ts";
import { NatsBus } from "../../src/cluster/bus/nats-bus.ts";
import { ProcessBus } from "../../src/cluster/bus/process-bus.ts";
import { serveBus } from "../../src/cluster/bus/process-hub.ts";
import { GatewayError } from "../../src/errors.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { until } from "../helpers/until.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { endNatsServers, IF_NATS_MISSING, isNatsMissing, NatsServer } from "../kit/nats-server.ts";

afterAll(endNatsServers);

const LEASE_MS = 1000;
const MAX_WAITING_BYTES = 1024 * 1024;
const TIMEOUT_MS = 10_000;

interface Rig extends AsyncDisposable {
  open(): Promise<Bus>;
  /** All buses lose their connection, and the store all that is in it. */
  lose(): Promise<void>;
  restore(): Promise<void>;
}

async function memoryRig(): Promise<Rig> {
  const hub = new MemoryHub({ clock: systemClock, leaseMs: LEASE_MS, maxWaitingBytes: MAX_WAITING_BYTES });
  const buses: ReturnType<MemoryHub["open"]>[] = [];
  return {
    open: async () => {
      const bus = hub.open();
      buses.push(bus);
      return bus;
    },
    lose: async () => {
      for (const bus of buses) bus.cut();
      hub.loseStore();
    },
    restore: async () => {
      for (const bus of buses) bus.heal();
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(buses.map((bus) => bus.close()));
    },
  };
}

/** Of nodes that were alone when they started. */
async function lateRig(): Promise<Rig> {
  const rig = await memoryRig();
  return {
    ...rig,
    open: async () => {
      let tries = 0;
      const connect = (): Promise<Bus> => {
        tries += 1;
        return tries === 1 ? Promise.reject(new GatewayError("bus_lost", "No server")) : rig.open();
      };
      const bus = await LateBus.open({ connect, clock: systemClock, log: watchedLog });
      let hasCome = false;
      bus.onState((state) => {
        hasCome ||= state === "up";
      });
      await until("the bus has come", () => hasCome);
      return bus;
    },
  };
}

/** Of workers, and the process that started them. */
async function processRig(): Promise<Rig> {
  const rig = await memoryRig();
  const buses: Bus[] = [];
  const everywhere = (state: string) =>
    until(state, () => buses.every((bus) => bus.state === state || bus.state === "closed"));
  return {
    open: async () => {
      const [stream, far] = duplexPair();
      const onStuck = (): void => expect.unreachable("It reads");
      serveBus({ bus: await rig.open(), stream: far, onStuck });
      const bus = new ProcessBus({
        stream,
        clock: systemClock,
        log: watchedLog,
        maxWaitingBytes: MAX_WAITING_BYTES,
      });
      buses.push(bus);
      return bus;
    },
    lose: async () => {
      await rig.lose();
      await everywhere("lost");
    },
    restore: async () => {
      await rig.restore();
      await everywhere("up");
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(buses.map((bus) => bus.close()));
      await rig[Symbol.asyncDispose]();
    },
  };
}

async function natsRig(): Promise<Rig> {
  const server = await NatsServer.start();
  const buses: Bus[] = [];
  const everywhere = (state: string) =>
    until(state, () => buses.every((bus) => bus.state === state || bus.state === "closed"));
  return {
    open: async () => {
      const bus = await NatsBus.connect({
        url: server.url,
        leaseMs: LEASE_MS,
        maxWaitingBytes: MAX_WAITING_BYTES,
      });
      buses.push(bus);
      return bus;
    },
    lose: async () => {
      await server.kill();
      await everywhere("lost");
    },
    restore: async () => {
      await server.start();
      await everywhere("up");
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(buses.map((bus) => bus.close()));
      await server[Symbol.asyncDispose]();
    },
  };
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (data: Uint8Array): string => new TextDecoder().decode(data);
const code = async (call: () => unknown): Promise<string> => {
  try {
    await call();
  } catch (error) {
    if (error instanceof GatewayError) return error.code;
    throw error;
  }
  return "none";
};
const said = ({ key, entry }: TableChange): string =>
  `${key} ${entry === undefined ? "free" : text(entry.value)}`;

/** Read back: an entry of one's own call is no proof. */
async function held(bus: Bus, key: string): Promise<Entry> {
  const entry = await bus.owners.find(key);
  if (entry === undefined) throw new Error(`Nobody holds ${key}`);
  return entry;
}

const RIGS = [
  { name: "memory", isMissing: false, start: memoryRig },
  { name: "late", isMissing: false, start: lateRig },
  { name: "processes", isMissing: false, start: processRig },
  { name: `nats-server${IF_NATS_MISSING}`, isMissing: isNatsMissing, start: natsRig },
];

for (const { name, isMissing, start } of RIGS) {
  describe.skipIf(isMissing)(`bus, ${name}`, () => {
    describe("tables", () => {
      it("claim: one of many gets the key, the others the entry that holds it", async () => {
        await using rig = await start();
        const buses = await Promise.all(Array.from({ length: 8 }, () => rig.open()));
        const claims = await Promise.all(
          buses.map((bus, index) => bus.owners.claim("s.1", bytes(`${index}`))),
        );
        const winner = claims.findIndex((claim) => claim.isOurs);
        expect(claims.filter((claim) => claim.isOurs)).toHaveLength(1);
        for (const { entry } of claims) {
          expect(text(entry.value)).toBe(`${winner}`);
          expect(entry).toMatchObject({ key: "s.1", epoch: claims[winner]?.entry.epoch });
        }
      });

      it("takeOver: one of many takes the entry, with a newer epoch; who held it can't write any more", async () => {
        await using rig = await start();
        const buses = await Promise.all(Array.from({ length: 4 }, () => rig.open()));
        const [first] = buses as [Bus, ...Bus[]];
        const { entry } = await first.owners.claim("s", bytes("first"));
        const taken = await Promise.all(buses.map((bus) => bus.owners.takeOver(entry, bytes("next"))));
        const winners = taken.filter((next) => next !== undefined);
        expect(winners).toHaveLength(1);
        expect(winners[0]?.epoch).toBeGreaterThan(entry.epoch);
        expect(await held(first, "s")).toEqual(winners[0]);
        expect(await first.owners.renew(entry, bytes("mine"))).toBeUndefined();
        expect(await first.owners.release(entry)).toBe(false);
        expect(text((await held(first, "s")).value)).toBe("next");
      });

      it("renew: a new value and the same epoch; the entry as it was before is no longer good", async () => {
        await using rig = await start();
        const bus = await rig.open();
        const { entry } = await bus.owners.claim("s", bytes("1"));
        const renewed = await bus.owners.renew(entry, bytes("2"));
        expect(renewed).toMatchObject({ key: "s", epoch: entry.epoch });
        expect(await held(bus, "s")).toEqual(renewed);
        expect(await bus.owners.renew(entry, bytes("3"))).toBeUndefined();
      });

      it("release: the key is free, and its next epoch is newer, at every node", async () => {
        await using rig = await start();
        const [one, two] = [await rig.open(), await rig.open()];
        const { entry } = await one.owners.claim("s", bytes("1"));
        expect(await one.owners.release(entry)).toBe(true);
        expect(await one.owners.release(entry)).toBe(false);
        expect(await two.owners.find("s")).toBeUndefined();
        const again = await two.owners.claim("s", bytes("2"));
        expect(again.isOurs).toBe(true);
        expect(again.entry.epoch).toBeGreaterThan(entry.epoch);
      });

      it("leases: are free when they were not renewed, and not before; owners stay", async () => {
        await using rig = await start();
        const bus = await rig.open();
        await bus.owners.claim("s", bytes("1"));
        let { entry } = await bus.leases.claim("node", bytes("1"));
        const begunMs = performance.now();
        while (performance.now() - begunMs < 2 * LEASE_MS) {
          const renewed = await bus.leases.renew(entry, bytes("1"));
          expect(renewed).toBeDefined();
          entry = renewed ?? entry;
          await new Promise((resolve) => setTimeout(resolve, LEASE_MS / 10));
        }
        let isFree = false;
        while (!isFree) isFree = (await bus.leases.find("node")) === undefined;
        expect(await bus.leases.renew(entry, bytes("1"))).toBeUndefined();
        expect((await bus.leases.claim("node", bytes("2"))).isOurs).toBe(true);
        expect(await bus.owners.find("s")).toBeDefined();
      });

      it("watch: entries that are there, then each change, of its prefix alone, until it is closed", async () => {
        await using rig = await start();
        const [one, two] = [await rig.open(), await rig.open()];
        await one.owners.claim("other", bytes("x"));
        const a = await one.owners.claim("s.a", bytes("1"));
        const b = await one.owners.claim("s.b", bytes("1"));
        await one.owners.release(b.entry);
        const seen: string[] = [];
        const watch = await two.owners.watch("s.", (change) => seen.push(said(change)));
        expect(seen).toEqual(["s.a 1"]);
        const taken = await one.owners.takeOver(a.entry, bytes("2"));
        await one.owners.claim("other.c", bytes("x"));
        await one.owners.claim("s.c", bytes("3"));
        if (taken !== undefined) await one.owners.release(taken);
        await until("the last change", () => seen.length === 4);
        expect(seen).toEqual(["s.a 1", "s.a 2", "s.c 3", "s.a free"]);
        watch.close();
        watch.close();
        const all: string[] = [];
        await two.owners.watch("", (change) => all.push(said(change)));
        await one.owners.claim("s.d", bytes("4"));
        await until("the change", () => all.includes("s.d 4"));
        expect(all.sort()).toEqual(["other x", "other.c x", "s.c 3", "s.d 4"]);
        expect(seen).toHaveLength(4);
      });

      it("watch of an empty table resolves", async () => {
        await using rig = await start();
        const seen: TableChange[] = [];
        await (await rig.open()).leases.watch("", (change) => seen.push(change));
        expect(seen).toEqual([]);
      });

      it("a value that is too large is refused", async () => {
        await using rig = await start();
        const bus = await rig.open();
        expect(await code(() => bus.owners.claim("s", new Uint8Array(bus.maxMessageBytes + 1)))).toBe(
          "bus_too_large",
        );
      });

      it("keys and subjects that are none throw, before anything is sent", async () => {
        await using rig = await start();
        const bus = await rig.open();
        for (const key of ["", "a b", "a..b", ".a", "a.", "a.*", ">", "\u00e4", "a".repeat(256)]) {
          const calls = [
            async () => bus.owners.claim(key, bytes("")),
            async () => bus.owners.find(key),
            async () => bus.publish(key, bytes("")),
            async () => bus.subscribe(key, () => undefined),
            async () => bus.request(key, bytes(""), { timeoutMs: TIMEOUT_MS }),
            async () => bus.answer(key, () => bytes("")),
          ];
          for (const call of calls) await expect(call(), key).rejects.toThrow(TypeError);
        }
        for (const prefix of ["a", ".", "*.", "a..", "a b."]) {
          await expect(
            bus.owners.watch(prefix, () => undefined),
            prefix,
          ).rejects.toThrow(TypeError);
        }
      });
    });

    describe("messages", () => {
      it("publish: each subscriber gets all, in order, the publisher too; a closed subscription gets none", async () => {
        await using rig = await start();
        const [one, two] = [await rig.open(), await rig.open()];
        const heard: string[][] = [[], [], []];
        await one.subscribe("s", (data) => heard[0]?.push(text(data)));
        await two.subscribe("s", (data) => heard[1]?.push(text(data)));
        const ended = await two.subscribe("s", (data) => heard[2]?.push(text(data)));
        await two.subscribe("s.t", () => expect.unreachable("another subject"));
        ended.close();
        const sent = Array.from({ length: 2000 }, (_, index) => `${index}`);
        for (const message of sent) one.publish("s", bytes(message));
        await until("the last message", () => heard[0]?.length === 2000 && heard[1]?.length === 2000);
        expect(heard).toEqual([sent, sent, []]);
      });

      it("publish: no listener is called inside the call, and one that throws keeps nothing from the others", async () => {
        await using rig = await start();
        const bus = await rig.open();
        let heard = 0;
        await bus.subscribe("s", () => {
          throw new Error("A listener's fault");
        });
        await bus.subscribe("s", () => {
          heard += 1;
        });
        bus.publish("s", bytes("1"));
        expect(heard).toBe(0);
        bus.publish("s", bytes("2"));
        await until("both messages", () => heard === 2);
      });

      it("publish: beyond what may wait it fails, and all that was taken comes, in order", async () => {
        await using rig = await start();
        const [one, two] = [await rig.open(), await rig.open()];
        const heard: number[] = [];
        await two.subscribe("s", (data) =>
          heard.push(new DataView(data.buffer, data.byteOffset).getUint32(0)),
        );
        const taken: number[] = [];
        const refused = await code(() => {
          for (let index = 0; index < 100; index += 1) {
            const message = new Uint8Array(64 * 1024);
            new DataView(message.buffer).setUint32(0, index);
            one.publish("s", message);
            taken.push(index);
          }
        });
        expect(refused).toBe("bus_full");
        expect(taken.length).toBeGreaterThan(10);
        await until("what was taken", () => heard.length === taken.length);
        expect(heard).toEqual(taken);
        // It goes on.
        await until("room", () => {
          try {
            one.publish("s", new Uint8Array(64 * 1024));
            return true;
          } catch {
            // Still full.
            return false;
          }
        });
        await until("one more", () => heard.length === taken.length + 1);
      });

      it("a message that is too large is refused before it is sent", async () => {
        await using rig = await start();
        const bus = await rig.open();
        let heard = 0;
        await bus.subscribe("s", () => {
          heard += 1;
        });
        await bus.answer("q", (data) => new Uint8Array(data.length === 0 ? bus.maxMessageBytes + 1 : 1));
        const large = new Uint8Array(bus.maxMessageBytes + 1);
        expect(await code(() => bus.publish("s", large))).toBe("bus_too_large");
        expect(await code(() => bus.request("q", large, { timeoutMs: TIMEOUT_MS }))).toBe("bus_too_large");
        expect(await code(() => bus.request("q", bytes(""), { timeoutMs: TIMEOUT_MS }))).toBe(
          "bus_too_large",
        );
        expect(bus.state).toBe("up");
        bus.publish("s", bytes("small"));
        await until("the message behind it", () => heard === 1);
      });
    });

    describe("requests", () => {
      it("get the answer, or the error of the one who answers", async () => {
        await using rig = await start();
        const [one, two] = [await rig.open(), await rig.open()];
        await one.answer("q", async (data) => {
          if (text(data) === "ours") throw new GatewayError("queue_full", "Queue of ten: it is full");
          if (text(data) === "other") throw new TypeError("A fault");
          return bytes(`${text(data)}!`);
        });
        const ask = (what: string) => two.request("q", bytes(what), { timeoutMs: TIMEOUT_MS });
        expect(text(await ask("hello"))).toBe("hello!");
        expect(text(await ask(""))).toBe("!");
        await expect(ask("ours")).rejects.toMatchObject({
          code: "queue_full",
          message: "Queue of ten: it is full",
        });
        await expect(ask("other")).rejects.toMatchObject({ code: "internal" });
        const many = await Promise.all(Array.from({ length: 200 }, (_, index) => ask(`${index}`)));
        expect(many.map(text)).toEqual(many.map((_, index) => `${index}!`));
      });

      it("fail at once where nobody answers, and where the one who did has gone", async () => {
        await using rig = await start();
        const [one, two] = [await rig.open(), await rig.open()];
        // A minute: the test's own deadline is shorter.
        const ask = () => code(() => two.request("q", bytes(""), { timeoutMs: 60_000 }));
        expect(await ask()).toBe("bus_no_answer");
        const answering = await one.answer("q", () => bytes(""));
        expect(await ask()).toBe("none");
        await one.answer("r", () => bytes(""));
        answering.close();
        await one.request("r", bytes(""), { timeoutMs: TIMEOUT_MS });
        expect(await ask()).toBe("bus_no_answer");
        await one.answer("q", () => bytes(""));
        expect(await ask()).toBe("none");
        await one.close();
        expect(await ask()).toBe("bus_no_answer");
      });

      it("time out where no answer comes", async () => {
        await using rig = await start();
        const [one, two] = [await rig.open(), await rig.open()];
        await one.answer("q", () => new Promise<Uint8Array>(() => undefined));
        expect(await code(() => two.request("q", bytes(""), { timeoutMs: 50 }))).toBe("bus_timeout");
      });

      it("are refused beyond what one node answers at a time", async () => {
        await using rig = await start();
        const [one, two] = [await rig.open(), await rig.open()];
        let asked = 0;
        let go: () => void = () => undefined;
        const goes = new Promise<void>((resolve) => {
          go = resolve;
        });
        await one.answer("q", async () => {
          asked += 1;
          await goes;
          return bytes("");
        });
        const ask = () => two.request("q", bytes(""), { timeoutMs: TIMEOUT_MS });
        const open = Array.from({ length: MAX_OPEN_ANSWERS }, ask);
        await until("all are asked", () => asked === MAX_OPEN_ANSWERS);
        expect(await code(ask)).toBe("bus_full");
        go();
        await Promise.all(open);
        expect(await code(ask)).toBe("none");
      });
    });

    describe("loss", () => {
      it("every call says so, requests that wait at once; nothing of that time is sent later", async () => {
        await using rig = await start();
        const [one, two] = [await rig.open(), await rig.open()];
        const heard: string[] = [];
        const states: string[] = [];
        await two.subscribe("s", (data) => heard.push(text(data)));
        await two.answer("q", () => new Promise<Uint8Array>(() => undefined));
        one.onState((state) => states.push(state));
        one.publish("s", bytes("before"));
        await until("the message before", () => heard.length === 1);
        const waiting = code(() => one.request("q", bytes(""), { timeoutMs: 60_000 }));
        const { entry } = await one.owners.claim("s", bytes("1"));
        await rig.lose();
        expect(await waiting).toBe("bus_lost");
        expect(states).toEqual(["lost"]);
        const calls = [
          () => one.publish("s", bytes("meanwhile")),
          () => one.request("q", bytes(""), { timeoutMs: TIMEOUT_MS }),
          () => one.owners.claim("t", bytes("")),
          () => one.owners.takeOver(entry, bytes("")),
          () => one.owners.renew(entry, bytes("")),
          () => one.owners.release(entry),
          () => one.owners.find("t"),
          () => one.owners.watch("", () => undefined),
        ];
        for (const call of calls) expect(await code(call)).toBe("bus_lost");
        await rig.restore();
        expect(states).toEqual(["lost", "up"]);
        await until("a message behind", () => {
          one.publish("s", bytes("behind"));
          return heard.length > 1;
        });
        expect(new Set(heard)).toEqual(new Set(["before", "behind"]));
      });

      it("subscriptions and answers come back, also those that were asked for while it was lost", async () => {
        await using rig = await start();
        const [one, two] = [await rig.open(), await rig.open()];
        const heard: string[] = [];
        await two.subscribe("s", (data) => heard.push(text(data)));
        const ended = await two.subscribe("ended", (data) => heard.push(text(data)));
        await two.answer("q", () => bytes("answer"));
        await rig.lose();
        await two.subscribe("t", (data) => heard.push(text(data)));
        ended.close();
        await rig.restore();
        // Its subscriptions were made before it answers.
        let answer = "";
        while (answer === "") {
          answer = await one.request("q", bytes(""), { timeoutMs: TIMEOUT_MS }).then(text, () => "");
        }
        expect(answer).toBe("answer");
        await two.request("q", bytes(""), { timeoutMs: TIMEOUT_MS });
        one.publish("ended", bytes("ended"));
        one.publish("s", bytes("s"));
        one.publish("t", bytes("t"));
        await until("both", () => heard.length === 2);
        expect(heard).toEqual(["s", "t"]);
      });

      it("a watch reports what is gone with the store; epochs grow over it, and old entries are no longer good", async () => {
        await using rig = await start();
        const [one, two] = [await rig.open(), await rig.open()];
        const seen: string[] = [];
        const first = await one.owners.claim("s", bytes("1"));
        await one.owners.claim("t", bytes("1"));
        await two.owners.watch("", (change) => seen.push(said(change)));
        await rig.lose();
        await rig.restore();
        await until("both are gone", () => seen.length === 4);
        expect(seen.slice(2)).toEqual(["s free", "t free"]);
        // The same number of writes: the store counts as it did before.
        const second = await two.owners.claim("s", bytes("2"));
        expect(second.isOurs).toBe(true);
        expect(second.entry.epoch).toBeGreaterThan(first.entry.epoch);
        expect(await one.owners.takeOver(first.entry, bytes("3"))).toBeUndefined();
        expect(await one.owners.release(first.entry)).toBe(false);
        await until("the new one", () => seen.includes("s 2"));
      });
    });

    describe("close", () => {
      it("runs what is done before, while the bus works; any number of times; then every call says so", async () => {
        await using rig = await start();
        const [one, two] = [await rig.open(), await rig.open()];
        const heard: string[] = [];
        const states: string[] = [];
        await two.subscribe("s", (data) => heard.push(text(data)));
        const { entry } = await one.owners.claim("s", bytes("1"));
        one.onState((state) => states.push(state));
        one.onClose(async () => {
          one.publish("s", bytes("good-bye"));
          await one.owners.release(entry);
        });
        one.onClose(async () => {
          throw new Error("A fault of another");
        });
        const forgotten = one.onClose(async () => expect.unreachable("taken back"));
        forgotten.close();
        await Promise.all([one.close(), one.close()]);
        await one.close();
        expect(states).toEqual(["closed"]);
        await until("the good-bye", () => heard.length === 1);
        expect(await two.owners.find("s")).toBeUndefined();
        for (const call of [
          () => one.publish("s", bytes("")),
          () => one.request("q", bytes(""), { timeoutMs: TIMEOUT_MS }),
          () => one.owners.claim("s", bytes("")),
          () => one.subscribe("s", () => undefined),
          () => one.answer("s", () => bytes("")),
        ]) {
          expect(await code(call)).toBe("bus_lost");
        }
      });

      it("does not wait for ever for what is done before, nor where the bus is lost", async () => {
        await using rig = await start();
        const [one, two] = [await rig.open(), await rig.open()];
        one.onClose(() => new Promise<void>(() => undefined));
        await one.close();
        expect(one.state).toBe("closed");
        await rig.lose();
        await two.close();
        expect(two.state).toBe("closed");
        await rig.restore();
        expect(two.state).toBe("closed");
      });
    });
  });
}

describe.skipIf(isNatsMissing)(`clusters on one nats-server${IF_NATS_MISSING}`, () => {
  it("do not see one another", async () => {
    await using server = await NatsServer.start();
    const [one, two] = await Promise.all(
      [`a${randomUUID().slice(0, 8)}`, "b"].map((cluster) => NatsBus.connect({ url: server.url, cluster })),
    );
    if (one === undefined || two === undefined) throw new Error("No bus");
    await one.owners.claim("s", bytes("1"));
    await one.answer("q", () => bytes(""));
    expect(await two.owners.find("s")).toBeUndefined();
    expect(await code(() => two.request("q", bytes(""), { timeoutMs: TIMEOUT_MS }))).toBe("bus_no_answer");
    await Promise.all([one.close(), two.close()]);
  });
});
