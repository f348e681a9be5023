/** Clients at one node, their sessions at another: src/cluster/relay/. */
import { afterEach, describe, expect, it } from "vitest";
import { MemoryHub } from "../../src/cluster/bus/memory-bus.ts";
import {
  type ArrivedSocket,
  type OwnerConnection,
  Relay,
  type RelayedListener,
} from "../../src/cluster/relay/relay.ts";
import type { RelayItem } from "../../src/cluster/relay/relay-format.ts";
import type { SendResult } from "../../src/delivery/listener.ts";
import { GatewayError } from "../../src/errors.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

interface Facts {
  readonly name: string;
}

/** One client as the owner sees it. */
class HostedClient {
  readonly said: string[] = [];
  closeCode: number | null = null;
  drains = 0;
  readonly name: string;
  readonly listener: RelayedListener;
  constructor(name: string, listener: RelayedListener) {
    this.name = name;
    this.listener = listener;
  }
}

/** A client's socket where it arrived; it can be made slow. */
class FakeSocket implements ArrivedSocket {
  readonly got: string[] = [];
  waitingBytes = 0;
  isSlow = false;
  ended: { code: number; reason: string } | null = null;
  way: OwnerConnection | null = null;

  send(items: readonly RelayItem[]): SendResult {
    for (const { isBinary, bytes } of items) {
      this.got.push(isBinary ? `[${Buffer.from(bytes).toString("hex")}]` : Buffer.from(bytes).toString());
      if (this.isSlow) this.waitingBytes += bytes.length;
    }
    return this.isSlow ? "buffered" : "sent";
  }
  bufferedBytes(): number {
    return this.waitingBytes;
  }
  end(code: number, reason: string): void {
    this.ended = { code, reason };
    this.way?.closed(code);
  }
}

const incarnationOf = (letter: string): string => `${letter.repeat(8)}-0000-4000-8000-000000000000`;
const opened: { close(): void }[] = [];
afterEach(() => {
  for (const one of opened.splice(0)) one.close();
});

async function node(
  hub: MemoryHub,
  letter: string,
  options: { windowBytes?: number; maxConnections?: number } = {},
) {
  const bus = hub.open();
  const clients: HostedClient[] = [];
  const published: number[] = [];
  const publish = bus.publish.bind(bus);
  let isLosing = false;
  bus.publish = (subject, bytes) => {
    published.push(bytes.length);
    if (!isLosing) publish(subject, bytes);
  };
  const relay = await Relay.open<Facts, HostedClient>({
    bus,
    clock: hub.clock,
    incarnation: incarnationOf(letter),
    windowBytes: options.windowBytes ?? 1_048_576,
    slowBytes: 1000,
    maxConnections: options.maxConnections ?? 100,
    host: {
      readFacts: (value) => {
        const { name } = value as Partial<Facts>;
        return typeof name === "string" ? { name } : undefined;
      },
      opened: ({ name }, listener) => {
        const client = new HostedClient(name, listener);
        clients.push(client);
        return client;
      },
      message: (client, { bytes }) => client.said.push(Buffer.from(bytes).toString()),
      drained: (client) => {
        client.drains += 1;
      },
      closed: (client, code) => {
        client.closeCode = code;
      },
    },
  });
  opened.push({ close: () => relay.close(new GatewayError("draining", "The test is over")) });
  const lose = (isOn: boolean): void => {
    isLosing = isOn;
  };
  return { bus, relay, clients, published, lose, incarnation: incarnationOf(letter) };
}

type Node = Awaited<ReturnType<typeof node>>;

function arrive(at: Node, owner: Node, name: string): FakeSocket {
  const socket = new FakeSocket();
  socket.way = at.relay.connect(owner.incarnation, { name }, socket);
  return socket;
}

/** What is under way has come. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 6; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

const text = (words: string): RelayItem => ({ isBinary: false, bytes: Buffer.from(words) });

function mustHave<T>(value: T | undefined | null): T {
  if (value === undefined || value === null) throw new Error("Value is missing");
  return value;
}

async function pair(options: { windowBytes?: number; maxConnections?: number } = {}) {
  const clock = new FakeClock();
  const hub = new MemoryHub({ clock });
  return { here: await node(hub, "a", options), owner: await node(hub, "b", options), clock };
}

describe("a client at another node than its session", () => {
  it("is heard by the owner and hears it, in order", async () => {
    const { here, owner } = await pair();
    const socket = arrive(here, owner, "Ann");
    socket.way?.message(text("one"));
    socket.way?.message(text("two"));
    await settled();
    const client = mustHave(owner.clients[0]);
    expect(client).toMatchObject({ name: "Ann", said: ["one", "two"] });
    client.listener.deliver([Uint8Array.of(1, 2), Uint8Array.of(3)], "utf16");
    client.listener.notify({ type: "pong", seq: 1, at_ms: 0 });
    client.listener.deliver([Uint8Array.of(4)], "utf16");
    await settled();
    expect(socket.got).toEqual(["[0102]", "[03]", '{"type":"pong","seq":1,"at_ms":0}', "[04]"]);
  });

  it("frames may change as soon as they are delivered", async () => {
    const { here, owner } = await pair();
    const socket = arrive(here, owner, "Ann");
    await settled();
    const frame = Uint8Array.of(7, 7);
    owner.clients[0]?.listener.deliver([frame], "utf16");
    frame.fill(0);
    await settled();
    expect(socket.got).toEqual(["[0707]"]);
  });

  it("leaves: the owner sees its close code, once", async () => {
    const { here, owner } = await pair();
    const socket = arrive(here, owner, "Ann");
    socket.way?.message(text("bye"));
    socket.way?.closed(1001);
    socket.way?.closed(1006);
    await settled();
    expect(owner.clients).toMatchObject([{ said: ["bye"], closeCode: 1001, listener: { isClosed: true } }]);
    expect([here.relay.sizes, owner.relay.sizes]).toEqual([
      { arrived: 0, hosted: 0 },
      { arrived: 0, hosted: 0 },
    ]);
  });

  it("is ended by its owner with code and reason", async () => {
    const { here, owner } = await pair();
    const socket = arrive(here, owner, "Ann");
    await settled();
    owner.clients[0]?.listener.end(4401, "token_expired");
    await settled();
    expect(socket.ended).toEqual({ code: 4401, reason: "token_expired" });
    expect(owner.clients).toMatchObject([{ closeCode: 4401, listener: { isEnded: true, isClosed: true } }]);
  });

  it("is refused where its facts can't be read, or there are too many", async () => {
    const { here, owner } = await pair({ maxConnections: 1 });
    const nameless = new FakeSocket();
    nameless.way = here.relay.connect(owner.incarnation, {} as Facts, nameless);
    const first = arrive(here, owner, "Ann");
    const second = arrive(here, owner, "Ben");
    await settled();
    expect([nameless.ended?.code, first.ended, second.ended?.code]).toEqual([1008, null, 1008]);
    expect(owner.clients.map(({ name }) => name)).toEqual(["Ann"]);
  });
});

describe("listeners of one node in lockstep", () => {
  it("share one copy of a batch, with four bytes for each", async () => {
    const { here, owner } = await pair();
    const sockets = Array.from({ length: 50 }, (_, index) => arrive(here, owner, `listener ${index}`));
    await settled();
    owner.published.length = 0;
    const batch = [new Uint8Array(800).fill(1), new Uint8Array(800).fill(2)];
    for (const { listener } of owner.clients) listener.deliver(batch, "utf16");
    await settled();
    for (const socket of sockets) expect(socket.got).toHaveLength(2);
    expect(owner.published).toHaveLength(1);
    expect(owner.published[0]).toBeLessThan(1600 + 50 * 4 + 100);
  });

  it("another unit of offsets is another copy", async () => {
    const { here, owner } = await pair();
    for (const name of ["Ann", "Ben"]) arrive(here, owner, name);
    await settled();
    owner.published.length = 0;
    const batch = [new Uint8Array(1000)];
    owner.clients[0]?.listener.deliver(batch, "utf16");
    owner.clients[1]?.listener.deliver(batch, "cp");
    await settled();
    expect(owner.published[0]).toBeGreaterThan(2000);
  });

  it("a batch that is larger than a message goes in parts", async () => {
    const { here, owner } = await pair({ windowBytes: 16 * 1_048_576 });
    const socket = arrive(here, owner, "Ann");
    await settled();
    const batch = Array.from({ length: 30 }, (_, index) => new Uint8Array(100_000).fill(index));
    owner.clients[0]?.listener.deliver(batch, "utf16");
    await settled();
    expect(socket.got.map((frame) => Number.parseInt(frame.slice(1, 3), 16))).toEqual(
      Array.from({ length: 30 }, (_, index) => index),
    );
  });
});

describe("a message that is larger than the bus takes", () => {
  it("ends the client that sent it, and no other of the link", async () => {
    const { here, owner } = await pair();
    const [ann, ben] = [arrive(here, owner, "Ann"), arrive(here, owner, "Ben")];
    ann.way?.message({ isBinary: false, bytes: new Uint8Array(1_048_576) });
    ben.way?.message(text("Hello"));
    await settled();
    expect([ann.ended, ben.ended]).toEqual([{ code: 4413, reason: "bus_too_large" }, null]);
    expect(owner.clients.map(({ said, closeCode }) => [said, closeCode])).toEqual([
      [[], 4413],
      [["Hello"], null],
    ]);
  });

  it("ends the listener that would miss it, and no other", async () => {
    const { here, owner } = await pair({ windowBytes: 16 * 1_048_576 });
    const [ann, ben] = [arrive(here, owner, "Ann"), arrive(here, owner, "Ben")];
    await settled();
    owner.clients[0]?.listener.deliver([new Uint8Array(1_048_576)], "utf16");
    owner.clients[1]?.listener.deliver([Uint8Array.of(7)], "utf16");
    await settled();
    expect([ann.ended, ann.got]).toEqual([{ code: 4413, reason: "bus_too_large" }, []]);
    expect([ben.ended, ben.got]).toEqual([null, ["[07]"]]);
  });

  it("is sent in two where two records fit each for themselves", async () => {
    const { here, owner } = await pair({ windowBytes: 16 * 1_048_576 });
    const ann = arrive(here, owner, "Ann");
    await settled();
    for (const bytes of [500_000, 700_000]) {
      ann.way?.message({ isBinary: false, bytes: new Uint8Array(bytes).fill(65) });
      owner.clients[0]?.listener.deliver([new Uint8Array(bytes)], "utf16");
    }
    await settled();
    expect(ann.ended).toBeNull();
    expect(owner.clients[0]?.said.map(({ length }) => length)).toEqual([500_000, 700_000]);
    expect(ann.got.map(({ length }) => length)).toEqual([1_000_002, 1_400_002]);
  });
});

describe("what is slow", () => {
  it("a client: its owner knows how much waits, and when it has drained", async () => {
    const { here, owner } = await pair();
    const socket = arrive(here, owner, "Ann");
    await settled();
    const { listener } = mustHave(owner.clients[0]);
    socket.isSlow = true;
    expect(listener.deliver([new Uint8Array(5000)], "utf16")).toBe("sent");
    await settled();
    expect(listener.bufferedBytes()).toBe(5000);
    expect(listener.deliver([Uint8Array.of(1)], "utf16")).toBe("buffered");
    socket.isSlow = false;
    socket.waitingBytes = 0;
    socket.way?.drained();
    await settled();
    expect([listener.bufferedBytes(), owner.clients[0]?.drains]).toEqual([0, 1]);
  });

  it("the link: all who listen over it wait, and go on when the other node has read", async () => {
    const { here, owner } = await pair({ windowBytes: 20_000 });
    const socket = arrive(here, owner, "Ann");
    await settled();
    const { listener } = mustHave(owner.clients[0]);
    const results: SendResult[] = [];
    for (let count = 0; count < 12; count += 1)
      results.push(listener.deliver([new Uint8Array(1000)], "utf16"));
    expect([results[0], results.at(-1)]).toEqual(["sent", "buffered"]);
    expect(listener.bufferedBytes()).toBe(Number.POSITIVE_INFINITY);
    await settled();
    expect(listener.bufferedBytes()).toBe(0);
    expect(owner.clients[0]?.drains).toBe(1);
    expect(socket.got).toHaveLength(12);
  });

  it("a node that reads nothing costs four windows, then its connections are over", async () => {
    const { here, owner } = await pair({ windowBytes: 20_000 });
    arrive(here, owner, "Ann");
    await settled();
    owner.lose(true);
    const { listener } = mustHave(owner.clients[0]);
    for (let count = 0; count < 100; count += 1) listener.deliver([new Uint8Array(1000)], "utf16");
    expect(owner.clients[0]?.closeCode).toBe(1006);
    expect(owner.relay.sizes.hosted).toBe(0);
  });
});

describe("a client that sends without end", () => {
  it("waits for room, and ends no connection of others", async () => {
    const { here, owner } = await pair({ windowBytes: 20_000 });
    const [flooding, quiet] = [arrive(here, owner, "Ann"), arrive(here, owner, "Bo")];
    await settled();
    let wakings = 0;
    const say = (bytes: number) => flooding.way?.message({ isBinary: false, bytes: new Uint8Array(bytes) });
    for (let count = 0; count < 100 && flooding.way?.isFull === false; count += 1) say(1000);
    expect(quiet.way?.isFull).toBe(true);
    flooding.way?.whenRoom(() => {
      wakings += 1;
    });
    await settled();
    expect([wakings, flooding.way?.isFull, flooding.ended, quiet.ended]).toEqual([1, false, null, null]);
    expect(owner.clients[0]?.said).toHaveLength(10);
  });

  it("is ended alone where it does not wait, and who comes then is refused", async () => {
    const { here, owner } = await pair({ windowBytes: 20_000 });
    const [flooding, quiet] = [arrive(here, owner, "Ann"), arrive(here, owner, "Bo")];
    await settled();
    for (let count = 0; count < 100; count += 1) {
      flooding.way?.message({ isBinary: false, bytes: new Uint8Array(1000) });
    }
    expect([flooding.ended?.reason, quiet.ended]).toEqual(["bus_full", null]);
    expect(() => arrive(here, owner, "Cy")).toThrow("More is on its way");
    await settled();
    arrive(here, owner, "Cy");
    await settled();
    expect(owner.clients.map(({ name }) => name)).toEqual(["Ann", "Bo", "Cy"]);
  });

  it("is woken where its node is gone", async () => {
    const { here, owner } = await pair({ windowBytes: 20_000 });
    const flooding = arrive(here, owner, "Ann");
    let wakings = 0;
    flooding.way?.whenRoom(() => {
      wakings += 1;
    });
    here.relay.nodeGone(owner.incarnation);
    expect([wakings, flooding.way?.isFull]).toEqual([1, false]);
  });
});

describe("what is lost", () => {
  it("a message: every connection of the link ends so that its client comes back, and new ones work", async () => {
    const { here, owner } = await pair();
    const socket = arrive(here, owner, "Ann");
    await settled();
    owner.lose(true);
    owner.clients[0]?.listener.deliver([Uint8Array.of(1)], "utf16");
    await settled();
    owner.lose(false);
    owner.clients[0]?.listener.deliver([Uint8Array.of(2)], "utf16");
    await settled();
    expect(socket.got).toEqual([]);
    expect(socket.ended).toEqual({ code: 4502, reason: "bus_lost" });
    expect(owner.clients[0]?.closeCode).toBe(1006);
    const again = arrive(here, owner, "Ann");
    await settled();
    owner.clients[1]?.listener.deliver([Uint8Array.of(3)], "utf16");
    await settled();
    expect(again.got).toEqual(["[03]"]);
  });

  it("the client's node: the owner sees its clients go", async () => {
    const { here, owner } = await pair();
    arrive(here, owner, "Ann");
    await settled();
    owner.relay.nodeGone(here.incarnation);
    expect(owner.clients[0]?.closeCode).toBe(1006);
    expect(owner.relay.sizes.hosted).toBe(0);
  });

  it("the owner: its clients are sent away to come back", async () => {
    const { here, owner } = await pair();
    const socket = arrive(here, owner, "Ann");
    await settled();
    here.relay.nodeGone(owner.incarnation);
    expect(socket.ended).toEqual({ code: 4502, reason: "bus_lost" });
  });

  it("the bus: connections end on both sides, and none begins until it is back", async () => {
    const { here, owner } = await pair();
    const socket = arrive(here, owner, "Ann");
    await settled();
    here.bus.cut();
    await settled();
    expect(socket.ended?.reason).toBe("bus_lost");
    expect(() => arrive(here, owner, "Ben")).toThrow(expect.objectContaining({ code: "bus_lost" }));
    here.bus.heal();
    await settled();
    const again = arrive(here, owner, "Ben");
    again.way?.message(text("back"));
    await settled();
    expect(owner.clients.at(-1)).toMatchObject({ name: "Ben", said: ["back"] });
    expect(owner.clients[0]?.closeCode).toBe(1006);
  });

  it("the last message before a silence: its client is told, and the owner sees it go", async () => {
    for (const isOpening of [true, false]) {
      const { here, owner, clock } = await pair();
      here.lose(isOpening);
      const socket = arrive(here, owner, "Ann");
      await settled();
      here.lose(false);
      owner.lose(true);
      owner.clients[0]?.listener.deliver([Uint8Array.of(1)], "utf16");
      await settled();
      owner.lose(false);
      for (let look = 0; look < 2; look += 1) {
        clock.advance(1000);
        await settled();
      }
      expect(socket.ended).toEqual({ code: 4502, reason: "bus_lost" });
      expect(owner.clients.map(({ closeCode }) => closeCode)).toEqual(isOpening ? [] : [1006]);
    }
  });

  it("the bus of one side, for a moment: clients of the other are told", async () => {
    const { here, owner, clock } = await pair();
    const socket = arrive(here, owner, "Ann");
    await settled();
    owner.bus.cut();
    owner.bus.heal();
    expect(owner.clients[0]?.closeCode).toBe(1006);
    for (let look = 0; look < 2; look += 1) {
      clock.advance(1000);
      await settled();
    }
    expect(socket.ended).toEqual({ code: 4502, reason: "bus_lost" });
  });

  it("a process whose last words are read after its end: its client goes from the session, and nothing is kept", async () => {
    const { here, owner, clock } = await pair();
    owner.relay.nodeGone(here.incarnation);
    const socket = arrive(here, owner, "Ann");
    await settled();
    expect(owner.clients.map(({ closeCode }) => closeCode)).toEqual([null]);
    here.lose(true);
    for (let look = 0; look < 6; look += 1) {
      clock.advance(1000);
      await settled();
    }
    expect(owner.clients[0]?.closeCode).toBe(1006);
    expect(owner.relay.sizes.hosted).toBe(0);
    // It had not ended: both begin again.
    here.lose(false);
    expect(socket.ended).toEqual({ code: 4502, reason: "bus_lost" });
    const again = arrive(here, owner, "Ben");
    again.way?.message(text("back"));
    await settled();
    expect(owner.clients.at(-1)).toMatchObject({ name: "Ben", said: ["back"], closeCode: null });
  });

  it("nothing: a link with clients says so once a second where nobody speaks, one without says nothing", async () => {
    const { here, owner, clock } = await pair();
    const socket = arrive(here, owner, "Ann");
    await settled();
    const countAfter = async (ms: number): Promise<number[]> => {
      for (const { published } of [here, owner]) published.length = 0;
      for (let passed = 0; passed < ms; passed += 100) {
        clock.advance(100);
        await settled();
      }
      return [here, owner].map(({ published }) => published.length);
    };
    expect(await countAfter(1000)).toEqual([0, 0]);
    expect(await countAfter(10_000)).toEqual([10, 10]);
    expect(socket.ended).toBeNull();
    socket.way?.closed(1000);
    await settled();
    expect(await countAfter(10_000)).toEqual([0, 0]);
  });

  it("bytes that are no message are passed over", async () => {
    const { here, owner } = await pair();
    for (const bytes of [new Uint8Array(), new Uint8Array(44), Buffer.from("x".repeat(80))]) {
      here.bus.publish(`relay.${owner.incarnation}`, bytes);
    }
    await settled();
    const socket = arrive(here, owner, "Ann");
    socket.way?.message(text("still here"));
    await settled();
    expect(owner.clients[0]?.said).toEqual(["still here"]);
  });
});
