/** What a node tells its buddy of its sessions: over buses in memory. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BUS_VERSION } from "../../src/cluster/bus/heartbeat.ts";
import { type MemoryBus, MemoryHub } from "../../src/cluster/bus/memory-bus.ts";
import type { NodeView } from "../../src/cluster/bus/node-registry.ts";
import { chooseBuddy } from "../../src/cluster/takeover/buddy.ts";
import { handOverAll, type LeavingSession } from "../../src/cluster/takeover/hand-over.ts";
import { decodeReplica, encodeReplica, RecordWriter } from "../../src/cluster/takeover/replica-format.ts";
import { Replicas } from "../../src/cluster/takeover/replicas.ts";
import {
  type KeptSession,
  Replicator,
  ROUND_MS,
  replicaSubject,
} from "../../src/cluster/takeover/replicator.ts";
import { systemClock } from "../../src/kit/clock.ts";
import type {
  HeardUpTo,
  SavedConnection,
  SavedPlaces,
  SavedSession,
  SavedUtterance,
  SpeechReader,
} from "../../src/session/saved-session.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { watchedLog } from "../helpers/watched-log.ts";

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 4; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

function utteranceOf(id: string, text: string): SavedUtterance {
  return {
    id,
    command: { type: "text", text: "", voice_id: "v" },
    text,
    half: "",
    leftOut: 0,
    isEnded: false,
    subject: { id: "key k", maxPlaces: Number.POSITIVE_INFINITY, payer: { key: "k", tenant: "acme" } },
    holder: "",
    startMs: null,
    heardMs: 0,
    heard: [{ end: 0, ms: 0 }],
    marks: [],
  };
}

class TestSession implements KeptSession {
  readonly epoch = "e1";
  isClosed = false;
  sentMs = 0;
  renderedMs = 0;
  utterances: SavedUtterance[] = [];
  connections: SavedSession["connections"] = [
    { token: "t", listenerId: "l1", holder: "", openIds: [], currentId: null },
  ];
  /** What is read next on top of all. */
  places: SavedPlaces[] = [];
  constructor(readonly id: string) {}
  speechReader(): SpeechReader {
    return {
      readAll: () => ({ sentMs: this.sentMs, utterances: this.utterances }),
      readPlaces: () => this.places.splice(0),
    };
  }
  save(): SavedSession {
    return { sentMs: this.sentMs, utterances: this.utterances, connections: this.connections };
  }
}

function heardAt(...places: readonly (readonly [end: number, ms: number])[]): HeardUpTo[] {
  return places.map(([end, ms]) => ({ end, ms }));
}

function placesOf(id: string, ...places: readonly (readonly [end: number, ms: number])[]): SavedPlaces {
  return { id, startMs: 0, heard: heardAt(...places) };
}

function connectionsOf(from: number, to: number): SavedConnection[] {
  return Array.from({ length: to - from }, (_, index) => ({
    token: `token-${from + index}`,
    listenerId: `l${from + index}`,
    holder: "",
    openIds: [],
    currentId: null,
  }));
}

interface Pair {
  readonly sessions: TestSession[];
  readonly replicator: Replicator;
  readonly replicas: Replicas;
  readonly buses: { readonly owner: MemoryBus; readonly buddy: MemoryBus };
  /** Bytes of each message to the buddy. */
  readonly messages: number[];
  /** Until all is told that was sent. */
  readonly tellSent: () => Promise<void>;
}

async function openPair(maxChars = 1_000_000): Promise<Pair> {
  const hub = new MemoryHub({ clock: systemClock });
  const buses = { owner: hub.open(), buddy: hub.open() };
  const clock = new FakeClock();
  const sessions: TestSession[] = [];
  const messages: number[] = [];
  await buses.buddy.subscribe(replicaSubject("two"), (bytes) => messages.push(bytes.length));
  const replicator = await Replicator.open({
    bus: buses.owner,
    incarnation: "one",
    sessions: () => sessions,
    clock,
    log: watchedLog,
  });
  const replicas = await Replicas.open({ bus: buses.buddy, incarnation: "two", maxChars, log: watchedLog });
  replicator.choose("two");
  await settle();
  const tellSent = (): Promise<void> => {
    clock.advance(ROUND_MS);
    return settle();
  };
  return { sessions, replicator, replicas, buses, messages, tellSent };
}

describe("the buddy", () => {
  it("knows each text as it grows; only its new part is sent", async () => {
    const { sessions, replicator, replicas, messages } = await openPair();
    const session = new TestSession("s");
    sessions.push(session);
    const long = "word ".repeat(2000);
    session.utterances = [utteranceOf("u1", long)];
    replicator.changed(session);
    await settle();
    session.utterances = [utteranceOf("u1", `${long}and more`)];
    replicator.changed(session);
    await settle();
    expect(messages.at(-2)).toBeGreaterThan(long.length);
    expect(messages.at(-1)).toBeLessThan(1000);
    expect(replicas.ownerOf("s")).toBe("one");
    expect(replicas.take("s")).toEqual({ epoch: "e1", saved: session.save() });
    expect(replicas.ownerOf("s")).toBeUndefined();
  });

  it("learns in a few bytes how far listeners were sent audio", async () => {
    const { sessions, replicator, replicas, messages, tellSent } = await openPair();
    const session = new TestSession("s");
    sessions.push(session);
    const heard = [
      { end: 0, ms: 0 },
      { end: 4, ms: 1400 },
      { end: 9, ms: 1900 },
    ];
    session.utterances = [{ ...utteranceOf("u1", "word word"), startMs: 0, heard }];
    replicator.changed(session);
    await settle();
    session.sentMs = 1500;
    replicator.sending(session);
    await tellSent();
    expect(messages.at(-1)).toBeLessThan(30);
    // Inside the next word nothing is told.
    session.sentMs = 1600;
    replicator.sending(session);
    await tellSent();
    expect(replicas.take("s")?.saved.sentMs).toBe(1540);
  });

  it("gets the sent words of many sessions in one message, and none of them again when text comes", async () => {
    const { sessions, replicator, replicas, messages, tellSent } = await openPair();
    const heard = [
      { end: 0, ms: 0 },
      { end: 4, ms: 400 },
    ];
    for (let number = 0; number < 50; number += 1) {
      const session = new TestSession(`s${number}`);
      session.utterances = [{ ...utteranceOf("u1", "word word"), startMs: 0, heard }];
      sessions.push(session);
      replicator.changed(session);
    }
    await settle();
    const before = messages.length;
    for (const session of sessions) {
      // Its end is in the second frame from here.
      session.sentMs = 360;
      replicator.sending(session);
      await settle();
    }
    expect(messages.length).toBe(before);
    await tellSent();
    expect(messages.length).toBe(before + 1);
    for (const session of sessions) replicator.changed(session);
    await settle();
    for (const { id } of sessions) expect(replicas.take(id)?.saved.sentMs).toBe(400);
  });

  it("learns the place of speech before that is sent, and nothing else of it", async () => {
    const { sessions, replicator, replicas, messages, tellSent } = await openPair();
    const session = new TestSession("s");
    sessions.push(session);
    session.utterances = [utteranceOf("u1", "word ".repeat(2000))];
    replicator.changed(session);
    await settle();
    session.places = [placesOf("u1", [0, 0], [4, 300])];
    session.renderedMs = 600;
    session.sentMs = 300;
    replicator.sending(session);
    await tellSent();
    expect(messages.at(-1)).toBeLessThan(90);
    const kept = replicas.take("s")?.saved;
    expect(kept?.sentMs).toBe(340);
    expect(kept?.utterances[0]).toMatchObject({ startMs: 0, heard: heardAt([0, 0], [4, 300]) });
  });

  it("gets each word once, and keeps those of the last second", async () => {
    const { sessions, replicator, replicas, messages, tellSent } = await openPair();
    const session = new TestSession("s");
    sessions.push(session);
    session.utterances = [utteranceOf("u1", "word ".repeat(100))];
    replicator.changed(session);
    await settle();
    for (let word = 1; word <= 40; word += 1) {
      session.places = [placesOf("u1", [5 * word, 300 * word])];
      session.renderedMs = 300 * word;
      session.sentMs = 300 * word - 100;
      replicator.sending(session);
      await tellSent();
      expect(messages.at(-1)).toBeLessThan(90);
    }
    const kept = replicas.take("s")?.saved.utterances[0]?.heard ?? [];
    expect(kept[0]).toEqual({ end: 0, ms: 0 });
    expect(kept.slice(-4)).toEqual(heardAt([185, 11_100], [190, 11_400], [195, 11_700], [200, 12_000]));
    expect(kept.length).toBeLessThan(20);
  });

  it("gets at once the words of audio that is sent when it comes", async () => {
    const { sessions, replicator, replicas } = await openPair();
    const session = new TestSession("s");
    sessions.push(session);
    session.utterances = [utteranceOf("u1", "word word")];
    replicator.changed(session);
    await settle();
    session.places = [placesOf("u1", [4, 300])];
    session.renderedMs = 300;
    session.sentMs = 300;
    replicator.sending(session);
    // Before its round is over.
    await settle();
    expect(replicas.take("s")?.saved.utterances[0]?.heard).toEqual(heardAt([0, 0], [4, 300]));
  });

  it("forgets the later places when an earlier one comes", async () => {
    const { sessions, replicator, replicas, tellSent } = await openPair();
    const session = new TestSession("s");
    sessions.push(session);
    session.utterances = [utteranceOf("u1", "word ".repeat(100))];
    replicator.changed(session);
    await settle();
    const next = [placesOf("u1", [5, 300], [10, 600], [15, 900]), placesOf("u1", [10, 500])];
    for (const places of next) {
      session.places = [places];
      session.renderedMs += 100;
      replicator.sending(session);
      await tellSent();
    }
    expect(replicas.take("s")?.saved.utterances[0]?.heard).toEqual(heardAt([0, 0], [5, 300], [10, 500]));
  });

  it("learns in a few bytes that an utterance is over, and knows the others by their new places", async () => {
    const { sessions, replicator, replicas, messages, tellSent } = await openPair();
    const session = new TestSession("s");
    sessions.push(session);
    session.utterances = ["u1", "u2", "u3"].map((id) => utteranceOf(id, "word "));
    replicator.changed(session);
    await settle();
    replicator.passed(session, "u1");
    replicator.passed(session, "of which nothing was told");
    session.places = [placesOf("u3", [4, 300])];
    session.renderedMs = 400;
    replicator.sending(session);
    await tellSent();
    expect(messages.at(-1)).toBeLessThan(90);
    expect(replicas.sizes.chars).toBe(110);
    const kept = replicas.take("s")?.saved.utterances ?? [];
    expect(kept.map(({ id }) => id)).toEqual(["u2", "u3"]);
    expect(kept[1]?.heard).toEqual(heardAt([0, 0], [4, 300]));
  });

  it("gets a whole session where words come of an utterance that it does not know", async () => {
    const { sessions, replicator, replicas, tellSent } = await openPair();
    const session = new TestSession("s");
    sessions.push(session);
    session.utterances = [utteranceOf("u1", "word ")];
    replicator.changed(session);
    await settle();
    session.utterances = [...session.utterances, utteranceOf("u2", "other ")];
    session.places = [placesOf("u2", [5, 300])];
    session.renderedMs = 400;
    replicator.sending(session);
    await tellSent();
    expect(replicas.take("s")?.saved).toEqual(session.save());
  });

  it("that missed a message asks for all again", async () => {
    const { sessions, replicator, replicas, buses } = await openPair();
    const session = new TestSession("s");
    sessions.push(session);
    session.utterances = [utteranceOf("u1", "Hello")];
    replicator.changed(session);
    await settle();
    // As if one had been lost on the way.
    const lost = { from: "one", seq: 7, records: new Uint8Array(), sessions: [], ended: [] };
    buses.owner.publish(replicaSubject("two"), encodeReplica(lost));
    await settle();
    session.utterances = [utteranceOf("u1", "Hello there")];
    replicator.changed(session);
    await settle();
    expect(replicas.take("s")?.saved.utterances).toEqual([utteranceOf("u1", "Hello there")]);
  });

  it("gets every session when it is chosen later, or comes back", async () => {
    const { sessions, replicator, replicas, buses } = await openPair();
    const session = new TestSession("s");
    sessions.push(session);
    buses.buddy.cut();
    session.utterances = [utteranceOf("u1", "Hello")];
    replicator.changed(session);
    await settle();
    buses.buddy.heal();
    replicator.choose(null);
    replicator.choose("two");
    await settle();
    expect(replicas.take("s")?.saved.utterances[0]?.text).toBe("Hello");
  });

  it("learns who comes and who goes, and of nobody twice", async () => {
    const { sessions, replicator, replicas, messages } = await openPair();
    const session = new TestSession("s");
    sessions.push(session);
    session.connections = connectionsOf(0, 500);
    replicator.changed(session);
    await settle();
    const [comes] = connectionsOf(500, 501);
    if (comes === undefined) throw new Error("Nobody comes");
    session.connections = [...session.connections, comes];
    replicator.connected(session, comes);
    await settle();
    expect(messages.at(-1)).toBeLessThan(250);
    const speaks = { ...comes, openIds: ["u1"], currentId: "u1" };
    replicator.connected(session, speaks);
    await settle();
    replicator.disconnected(session, "token-7");
    await settle();
    expect(messages.at(-1)).toBeLessThan(250);
    const kept = replicas.take("s")?.saved.connections ?? [];
    expect(kept).toEqual([...connectionsOf(0, 7), ...connectionsOf(8, 500), speaks]);
  });

  it("gets 10,000 connections of one session in messages that the bus takes", async () => {
    const { sessions, replicator, replicas, messages, buses } = await openPair(10_000_000);
    const session = new TestSession("s");
    session.utterances = [utteranceOf("u1", "Hello")];
    session.connections = connectionsOf(0, 10_000);
    sessions.push(session);
    replicator.changed(session);
    await settle();
    expect(Math.max(...messages)).toBeLessThan(buses.owner.maxMessageBytes / 2);
    expect(replicas.take("s")?.saved).toEqual(session.save());
    const given = encodeReplica({
      ...{ from: "one", seq: 0, records: new Uint8Array(), ended: [] },
      sessions: [replicator.wholeOf(session)],
    });
    expect(given.length).toBeLessThan(buses.owner.maxMessageBytes);
  });

  it("gets a session with more text than the bus takes in parts, and the others with it", async () => {
    const { sessions, replicator, replicas, messages, buses } = await openPair(10_000_000);
    const [large, small] = [new TestSession("large"), new TestSession("small")];
    const longest = utteranceOf("u0", "語".repeat(200_000));
    const many = Array.from({ length: 64 }, (_, index) => utteranceOf(`u${index + 1}`, "語".repeat(10_000)));
    large.utterances = [longest, ...many];
    small.utterances = [utteranceOf("u", "Hello")];
    sessions.push(large, small);
    for (const session of sessions) replicator.changed(session);
    await settle();
    expect(Math.max(...messages)).toBeLessThan(buses.owner.maxMessageBytes / 2);
    large.utterances = [...large.utterances, utteranceOf("last", "And this.")];
    replicator.changed(large);
    await settle();
    expect(messages.at(-1)).toBeLessThan(65 * 500);
    for (const session of sessions) expect(replicas.take(session.id)?.saved).toEqual(session.save());
  });

  it("forgets what has ended, and what its owner takes with it", async () => {
    const { sessions, replicator, replicas } = await openPair();
    for (const id of ["a", "b"]) {
      const session = new TestSession(id);
      sessions.push(session);
      replicator.changed(session);
    }
    await settle();
    replicator.ended("a");
    await settle();
    expect(replicas.of("one")).toEqual(["b"]);
    replicas.forget("one");
    expect(replicas.sizes).toEqual({ sessions: 0, chars: 0, refused: 0 });
  });

  it("keeps no more text than it may, and says how many sessions had no room", async () => {
    // A connection counts as 100.
    const { sessions, replicator, replicas } = await openPair(200);
    for (const id of ["a", "b"]) {
      const session = new TestSession(id);
      sessions.push(session);
      session.utterances = [utteranceOf("u1", "x".repeat(80))];
      replicator.changed(session);
      await settle();
      replicator.changed(session);
      await settle();
    }
    expect(replicas.of("one")).toEqual(["a"]);
    expect(replicas.sizes).toEqual({ sessions: 1, chars: 180, refused: 1 });
  });
});

describe("a replica's message", () => {
  it("is read as it was written; anything else is no message", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme" }), { maxLength: 4 }), (texts) => {
        const writer = new RecordWriter();
        const heard = heardAt([0, 0], [7, 312.5], [70_000, 3_600_000.125]);
        writer.places(1, 2, { startMs: 20.25, heard });
        writer.sent(4_000_000_000, 40.5);
        writer.over(1, 0);
        const message = {
          from: "one",
          seq: 2 ** 40 + 3,
          records: writer.take(),
          sessions: [
            {
              id: "s",
              number: 1,
              epoch: "e",
              sentMs: 12.5,
              connections: [
                { token: "t1", listenerId: "l1", holder: "", openIds: [], currentId: null },
                { token: "t2", listenerId: "l2", holder: "key k", openIds: [], currentId: null },
                { token: "t3", listenerId: "l3", holder: "", openIds: ["u1", "u2"], currentId: "u1" },
              ],
              disconnected: ["t0"],
              utterances: texts.map((text, index) => ({ ...utteranceOf(`u${index}`, text), from: 0 })),
            },
          ],
          ended: ["x"],
        };
        const records = [
          { kind: "places", session: 1, utterance: 2, places: { startMs: 20.25, heard } },
          { kind: "sent", session: 4_000_000_000, sentMs: 40.5 },
          { kind: "over", session: 1, utterance: 0 },
        ];
        expect(decodeReplica(encodeReplica(message))).toEqual({ ...message, records });
      }),
    );
    for (const bytes of ["", "{}", '{"from":1}', "[]", "\u0000"]) {
      expect(decodeReplica(new TextEncoder().encode(bytes))).toBeUndefined();
    }
  });

  it("is refused where it is cut, has no valid time, or a record of an unknown kind", () => {
    const sentAt = (ms: number): Uint8Array => {
      const writer = new RecordWriter();
      writer.sent(1, ms);
      writer.places(1, 0, { startMs: 0, heard: heardAt([4, ms]) });
      writer.over(1, 0);
      return encodeReplica({ from: "one", seq: 0, records: writer.take(), sessions: [], ended: [] });
    };
    const bytes = sentAt(40);
    expect(decodeReplica(bytes)?.records).toHaveLength(3);
    for (let length = 0; length < bytes.length; length += 1) {
      expect(decodeReplica(bytes.subarray(0, length))).toBeUndefined();
    }
    for (const ms of [Number.NaN, Number.POSITIVE_INFINITY, -1]) {
      expect(decodeReplica(sentAt(ms))).toBeUndefined();
    }
    // The kind of the last record.
    expect(decodeReplica(bytes.fill(9, bytes.length - 9, bytes.length - 8))).toBeUndefined();
  });
});

const node = (
  incarnation: string,
  state: NodeView["state"] = "alive",
  isDraining = false,
  machine = "",
): NodeView => ({
  name: incarnation,
  incarnation,
  state,
  version: BUS_VERSION,
  facts: { url: "ws://node:8080", load: 0, isDraining, buddy: null, machine },
});

describe("the choice of a buddy", () => {
  it("falls on none that is gone, drains or does not listen yet, and stays where it is late", () => {
    const all = ["a", "b", "c", "d"].map((name) => node(name));
    const first = chooseBuddy("a", all, null);
    expect(first).not.toBe("a");
    const without = all.map((view) => (view.incarnation === first ? node(view.name, "gone") : view));
    expect(chooseBuddy("a", without, first)).not.toBe(first);
    const draining = all.map((view) => (view.incarnation === first ? node(view.name, "alive", true) : view));
    expect(chooseBuddy("a", draining, first)).not.toBe(first);
    const starting = all.map((view) =>
      view.incarnation === first ? { ...view, facts: { ...view.facts, url: "" } } : view,
    );
    expect(chooseBuddy("a", starting, first)).not.toBe(first);
    const late = all.map((view) => (view.incarnation === first ? node(view.name, "suspect") : view));
    expect(chooseBuddy("a", late, first)).toBe(first);
    expect(chooseBuddy("a", [node("a")], null)).toBeNull();
  });

  it("changes for few when a node comes, and to that one", () => {
    const all = Array.from({ length: 40 }, (_, index) => node(`n${index}`));
    const changes = all.flatMap(({ incarnation }) => {
      const before = chooseBuddy(incarnation, all, null);
      const behind = chooseBuddy(incarnation, [...all, node("new")], before);
      return behind === before ? [] : [behind];
    });
    expect(changes.length).toBeLessThan(8);
    expect(new Set([...changes, "new"])).toEqual(new Set(["new"]));
  });

  it("is one of another machine, as soon as there is one", () => {
    const same = ["a", "b"].map((name) => node(name, "alive", false, "first"));
    expect(chooseBuddy("a", same, null)).toBe("b");
    const all = [...same, node("c", "alive", false, "second")];
    expect(chooseBuddy("a", all, "b")).toBe("c");
    const drains = [...same, node("c", "alive", true, "second")];
    expect(chooseBuddy("a", drains, "b")).toBe("b");
  });

  it("shares out the nodes", () => {
    const all = Array.from({ length: 20 }, (_, index) => node(`n${index}`));
    const chosen = new Set(all.map(({ incarnation }) => chooseBuddy(incarnation, all, null)));
    expect(chosen.size).toBeGreaterThan(8);
  });
});

describe("a node that drains", () => {
  it("keeps calls to the deadline, and what speaks to the end of its utterance", async () => {
    const clock = new FakeClock();
    const left = new Map<string, LeavingSession>();
    const put = (id: string, facts: Partial<LeavingSession>): void => {
      left.set(id, { id, isIdle: false, hasCalls: false, currentId: "u1", ...facts });
    };
    put("idle", { isIdle: true, currentId: null });
    put("speaking", {});
    put("call", { isIdle: true, currentId: null, hasCalls: true });
    const moved: string[] = [];
    const done = handOverAll({
      clock,
      deadlineMs: 1000,
      sessions: () => left.values(),
      callCount: () => 0,
      isTaken: () => true,
      refuseMore: () => undefined,
      move: (id) => {
        left.delete(id);
        moved.push(`${id} ${clock.nowMs()}`);
        return Promise.resolve();
      },
    });
    const pass = async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 50) {
        clock.advance(50);
        await settle();
      }
    };
    const startMs = clock.nowMs();
    await pass(300);
    put("speaking", { currentId: "u2" });
    await pass(1000);
    await done;
    expect(moved).toEqual([`idle ${startMs}`, `speaking ${startMs + 350}`, `call ${startMs + 1000}`]);
  });

  for (const [end, atMs] of [
    ["until they are over", 400],
    ["until the deadline", 1000],
  ] as const) {
    it(`waits for calls with sessions of other nodes ${end}`, async () => {
      const clock = new FakeClock();
      const startMs = clock.nowMs();
      let doneMs: number | null = null;
      const done = handOverAll({
        clock,
        deadlineMs: 1000,
        sessions: () => [],
        callCount: () => (clock.nowMs() < startMs + 400 || end === "until the deadline" ? 1 : 0),
        isTaken: () => true,
        refuseMore: () => undefined,
        move: () => Promise.resolve(),
      }).then(() => {
        doneMs = clock.nowMs() - startMs;
      });
      for (let passed = 0; passed < 1200; passed += 50) {
        await settle();
        clock.advance(50);
      }
      await done;
      expect(doneMs).toBe(atMs);
    });
  }
});
