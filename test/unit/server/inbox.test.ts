/** Connections that bring many messages at once, on a clock that each handled message moves by a millisecond. */

import { describe, expect, it, vi } from "vitest";
import type { GatewayError } from "../../../src/errors.ts";
import { ByteRoom } from "../../../src/kit/byte-room.ts";
import { createCounters } from "../../../src/metrics/counters.ts";
import { Backlog, type Bytes } from "../../../src/server/sockets/backlog.ts";
import { FairScheduler } from "../../../src/server/sockets/fair-scheduler.ts";
import { Inbox, inboxBytes } from "../../../src/server/sockets/inbox.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

interface Connection {
  readonly name: string;
  /** A message that makes the receiver end the connection. */
  readonly fatal?: string;
  /** A message behind which all others have to wait. */
  readonly holdsAt?: string;
}

interface RigOptions {
  readonly maxInboxBytes?: number;
  readonly maxWaitingBytes?: number;
  readonly costMs?: number;
}

function rig(options: RigOptions = {}) {
  const { maxInboxBytes = 1000, maxWaitingBytes = Number.POSITIVE_INFINITY, costMs = 1 } = options;
  const clock = new FakeClock();
  const counters = createCounters();
  const rounds: (() => void)[] = [];
  const said: string[] = [];
  let turnsOfOthers = 0;
  const scheduler = new FairScheduler({
    clock,
    counters,
    between: () => {
      turnsOfOthers += 1;
    },
    later: (round) => rounds.push(round),
    room: new ByteRoom(maxWaitingBytes),
  });
  const handled: Bytes[] = [];
  const held: ((ready: () => void) => void)[] = [];
  const connect = (connection: Connection) => {
    const inbox: Inbox<Connection> = new Inbox({
      scheduler,
      connection,
      receiver: {
        maxInboxBytes,
        handle: ({ name, fatal, holdsAt }, message, isBinary) => {
          clock.stall(costMs);
          handled.push(message);
          const text = new TextDecoder().decode(message);
          said.push(`${name}${text}${isBinary ? "!" : ""}`);
          if (text === holdsAt) held.push(inbox.hold());
          if (text === fatal) inbox.close(4400, { wantsRest: false });
        },
        refuse: ({ name }, { code }: GatewayError) => {
          said.push(`${name} ${code}`);
          inbox.close(4429, { wantsRest: false });
        },
        closed: ({ name }, code) => said.push(`${name} closed ${code}`),
      },
    });
    return inbox;
  };
  return {
    clock,
    counters,
    scheduler,
    said,
    handled,
    held,
    connect,
    get turnsOfOthers() {
      return turnsOfOthers;
    },
    get roundsDue() {
      return rounds.length;
    },
    /** One turn of the event loop. */
    round: () => {
      for (const round of rounds.splice(0)) round();
    },
  };
}

const message = (text: string): ArrayBuffer => new Uint8Array(Buffer.from(text)).buffer;

function bring(inbox: Inbox<Connection>, count: number, from = 1): void {
  for (let i = from; i < from + count; i += 1) inbox.take(message(String(i)), false);
}

const numbered = (name: string, from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, i) => `${name}${from + i}`);

describe("a connection that brings few messages", () => {
  it("has each handled in the call that brings it, without a copy", () => {
    const { connect, said, handled, roundsDue, counters, clock } = rig();
    const push = vi.spyOn(Backlog.prototype, "push");
    const a = connect({ name: "a" });
    const sent = Array.from({ length: 10 }, (_, i) => message(String(i + 1)));
    for (const one of sent) {
      a.take(one, false);
      clock.stall(20);
    }
    expect(said).toEqual(numbered("a", 1, 10));
    for (const [i, one] of sent.entries()) expect(handled[i]).toBe(one);
    expect(push).not.toHaveBeenCalled();
    expect({ roundsDue, waited: counters.messagesWaited }).toEqual({ roundsDue: 0, waited: 0 });
    push.mockRestore();
  });

  it("reads the clock once for each message", () => {
    const { connect, clock } = rig();
    const a = connect({ name: "a" });
    const nowMs = vi.spyOn(clock, "nowMs");
    for (let i = 1; i <= 5; i += 1) {
      a.take(message(String(i)), false);
      clock.stall(20);
    }
    expect(nowMs).toHaveBeenCalledTimes(5);
  });
});

describe("a connection that brings many messages", () => {
  it("has some handled at once, then a round's worth at a time, all in order", () => {
    const { connect, said, round, scheduler, counters } = rig();
    const a = connect({ name: "a" });
    bring(a, 20);
    // The first one of a window, and four milliseconds of others.
    expect(said).toEqual(numbered("a", 1, 5));
    expect(scheduler.waitingBytes).toBe(15 * 4 + 4 + 11 * 2);
    round();
    expect(said).toEqual(numbered("a", 1, 11));
    round();
    expect(said).toEqual(numbered("a", 1, 17));
    round();
    expect(said).toEqual(numbered("a", 1, 20));
    expect({ waited: counters.messagesWaited, bytes: scheduler.waitingBytes }).toEqual({
      waited: 15,
      bytes: 0,
    });
  });

  it("keeps its order with messages that come between two rounds", () => {
    const stage = rig();
    const a = stage.connect({ name: "a" });
    bring(a, 10);
    stage.clock.stall(1000);
    bring(a, 2, 11);
    expect(stage.said).toEqual(numbered("a", 1, 5));
    stage.round();
    stage.round();
    expect(stage.said).toEqual(numbered("a", 1, 12));
    expect(stage.roundsDue).toBe(0);
    stage.clock.stall(20);
    bring(a, 1, 13);
    expect(stage.said.at(-1)).toBe("a13");
    expect(stage.roundsDue).toBe(0);
  });

  it("may take as much again when the window is over", () => {
    const { connect, said, clock } = rig();
    const a = connect({ name: "a" });
    bring(a, 5);
    clock.stall(15);
    bring(a, 5, 6);
    expect(said).toEqual(numbered("a", 1, 10));
  });

  it("gives others their turn before each that is handled", () => {
    const stage = rig();
    const a = stage.connect({ name: "a" });
    bring(a, 5);
    expect(stage.turnsOfOthers).toBe(5);
    bring(a, 10, 6);
    const before = stage.turnsOfOthers;
    stage.round();
    expect(stage.turnsOfOthers - before).toBe(6);
  });

  it("gives others their turn also while thousands are kept", () => {
    const stage = rig({ maxInboxBytes: 1_000_000 });
    const a = stage.connect({ name: "a" });
    bring(a, 5);
    const before = stage.turnsOfOthers;
    bring(a, 3200, 6);
    expect(stage.turnsOfOthers - before).toBeGreaterThanOrEqual(100);
  });

  it("keeps which message is binary", () => {
    const { connect, said, round } = rig();
    const a = connect({ name: "a" });
    bring(a, 5);
    a.take(message("x"), true);
    a.take(message("y"), false);
    round();
    expect(said.slice(5)).toEqual(["ax!", "ay"]);
  });
});

describe("several connections", () => {
  it("take turns, whichever has brought more", () => {
    const { connect, said, round } = rig();
    const a = connect({ name: "a" });
    const b = connect({ name: "b" });
    bring(a, 100);
    bring(b, 6);
    // Somebody waits already: the second one may take half as much at once.
    expect(said).toEqual([...numbered("a", 1, 5), ...numbered("b", 1, 3)]);
    round();
    expect(said.slice(8)).toEqual(["a6", "b4", "a7", "b5", "a8", "b6"]);
    round();
    expect(said.slice(14)).toEqual(numbered("a", 9, 14));
  });

  it("one without many messages is handled at once, however many wait", () => {
    const { connect, said, clock } = rig({ maxInboxBytes: 100_000 });
    for (let i = 0; i < 50; i += 1) bring(connect({ name: "x" }), 10);
    const calm = connect({ name: "calm" });
    for (let i = 1; i <= 3; i += 1) {
      bring(calm, 1, i);
      expect(said.at(-1)).toBe(`calm${i}`);
      clock.stall(20);
    }
  });

  it("the next round begins where the last one has ended", () => {
    const { connect, said, round } = rig({ costMs: 2 });
    const all = ["a", "b", "c", "d", "e"].map((name) => connect({ name }));
    for (const inbox of all) bring(inbox, 5);
    const before = said.length;
    round();
    round();
    expect(said.slice(before).map((line) => line[0])).toEqual(["a", "b", "c", "d", "e", "a"]);
  });
});

describe("the bound", () => {
  it("ends a connection beyond it with an error, and drops what waited", () => {
    // Each takes five bytes.
    const stage = rig({ maxInboxBytes: 20 });
    const a = stage.connect({ name: "a" });
    bring(a, 9);
    expect(stage.said).toEqual(numbered("a", 1, 5));
    bring(a, 1, 1);
    expect(stage.said.slice(5)).toEqual(["a inbox_full", "a closed 4429"]);
    expect(stage.scheduler.waitingBytes).toBe(0);
    expect(stage.counters.inboxesFull).toBe(1);
    stage.round();
    expect(stage.said).toHaveLength(7);
  });

  it("counts all connections together, and ends the one that sends on", () => {
    const { connect, said, round, scheduler } = rig({ maxWaitingBytes: 40 });
    const [a, b] = [connect({ name: "a" }), connect({ name: "b" })];
    bring(a, 9);
    bring(b, 7);
    expect(scheduler.waitingBytes).toBe(40);
    bring(b, 1, 8);
    expect(said.slice(-2)).toEqual(["b inbox_full", "b closed 4429"]);
    // Its part is free again.
    expect(scheduler.waitingBytes).toBe(20);
    bring(a, 3, 10);
    expect(scheduler.waitingBytes).toBe(38);
    round();
    round();
    expect(scheduler.waitingBytes).toBe(0);
    expect(said.filter((line) => line.startsWith("a"))).toEqual(numbered("a", 1, 12));
  });

  it("holds the longest text letter by letter, the longest messages, and never less than a read brings", () => {
    expect(inboxBytes({ maxMessageBytes: 1024, maxTextChars: 1 })).toBe(1_048_576);
    expect(inboxBytes({ maxMessageBytes: 262_144, maxTextChars: 10_000 })).toBe(16 * 262_144);
    expect(inboxBytes({ maxMessageBytes: 1024, maxTextChars: 300_000 })).toBe(128 * 300_000);
  });
});

describe("the end of a connection", () => {
  it("is reported at once where nothing waits", () => {
    const { connect, said } = rig();
    const a = connect({ name: "a" });
    bring(a, 1);
    a.close(1000, { wantsRest: true });
    expect(said).toEqual(["a1", "a closed 1000"]);
  });

  it("is reported behind all that the client had sent, which is still handled in turns", () => {
    const { connect, said, round } = rig();
    const a = connect({ name: "a" });
    bring(a, 12);
    a.close(1006, { wantsRest: true });
    expect(said).toEqual(numbered("a", 1, 5));
    round();
    expect(said).toEqual(numbered("a", 1, 11));
    round();
    expect(said).toEqual([...numbered("a", 1, 12), "a closed 1006"]);
    round();
    expect(said).toHaveLength(13);
  });

  it("is reported at once where nobody wants the rest", () => {
    const { connect, said, round } = rig();
    const a = connect({ name: "a" });
    bring(a, 12);
    a.close(1000, { wantsRest: false });
    round();
    expect(said).toEqual([...numbered("a", 1, 5), "a closed 1000"]);
  });

  it("a message that ends it is the last one, and the others go on", () => {
    const { connect, said, round } = rig();
    const a = connect({ name: "a", fatal: "8" });
    const b = connect({ name: "b" });
    bring(a, 20);
    bring(b, 5);
    const before = said.length;
    round();
    round();
    expect(said.slice(before)).toEqual(["a6", "b4", "a7", "b5", "a8", "a closed 4400"]);
  });

  it("the gateway's end drops what waits, and is reported to each", () => {
    const { connect, said, scheduler, round } = rig();
    const a = connect({ name: "a" });
    const b = connect({ name: "b" });
    bring(a, 12);
    bring(b, 12);
    a.close(1000, { wantsRest: true });
    b.close(1006, { wantsRest: true });
    const before = said.length;
    scheduler.close();
    round();
    expect(said.slice(before)).toEqual(["a closed 1000", "b closed 1006"]);
    expect(scheduler.waitingBytes).toBe(0);
  });
});

describe("a message behind which the others have to wait", () => {
  it.each([
    ["handled at once", "3", 20],
    ["handled in its turn", "8", 20],
    ["the last one", "20", 20],
  ])(
    "%s: nothing is handled until it is let go, and then in order, behind what is done first",
    (_name, holdsAt, count) => {
      const { connect, said, held, round, scheduler } = rig();
      const a = connect({ name: "a", holdsAt });
      bring(a, count);
      for (let turns = 0; turns < 10; turns += 1) round();
      expect(said).toEqual(numbered("a", 1, Number(holdsAt)));
      bring(a, 2, count + 1);
      held[0]?.(() => said.push("first"));
      for (let turns = 0; turns < 10; turns += 1) round();
      const rest = numbered("a", Number(holdsAt) + 1, count + 2);
      expect(said).toEqual([...numbered("a", 1, Number(holdsAt)), "first", ...rest]);
      expect(scheduler.waitingBytes).toBe(0);
      expect(a.isWaiting).toBe(false);
    },
  );

  it("costs no rounds while it waits", () => {
    const facts = rig();
    const a = facts.connect({ name: "a", holdsAt: "8" });
    bring(a, 20);
    for (let turns = 0; turns < 5; turns += 1) facts.round();
    expect(facts.roundsDue).toBe(0);
    a.close(1006, { wantsRest: false });
    expect(facts.said.at(-1)).toBe("a closed 1006");
  });
});

describe("a connection that follows on another", () => {
  it("is ready once the other's messages are handled and its end is reported; its own come behind", () => {
    const { connect, said, round } = rig();
    const [a, b] = [connect({ name: "a" }), connect({ name: "b" })];
    bring(a, 12);
    b.follow(a, () => said.push("b ready"));
    bring(b, 3);
    a.close(1006, { wantsRest: true });
    round();
    expect(said).toEqual(numbered("a", 1, 11));
    round();
    round();
    expect(said).toEqual([...numbered("a", 1, 12), "a closed 1006", "b ready", ...numbered("b", 1, 3)]);
    expect(b.isWaiting).toBe(false);
  });

  it("and closes before it is ready: its messages are handled, then its end; without messages nothing is reported", () => {
    const { connect, said, round } = rig();
    const [a, b, c] = [connect({ name: "a" }), connect({ name: "b" }), connect({ name: "c" })];
    bring(a, 6);
    b.follow(a, () => said.push("b ready"));
    c.follow(a, () => said.push("c ready"));
    bring(b, 2);
    b.close(1006, { wantsRest: true });
    c.close(1006, { wantsRest: true });
    round();
    round();
    const ends = ["c closed 1006", "b1", "b2", "b closed 1006"];
    expect(said).toEqual([...numbered("a", 1, 6), "b ready", ...ends]);
  });

  it("may follow a connection that still follows another", () => {
    const { connect, said, round } = rig();
    const [a, b, c] = [connect({ name: "a" }), connect({ name: "b" }), connect({ name: "c" })];
    bring(a, 6);
    b.follow(a, () => said.push("b ready"));
    bring(b, 1);
    c.follow(b, () => said.push("c ready"));
    bring(c, 1);
    b.close(1006, { wantsRest: true });
    for (let i = 0; i < 3; i += 1) round();
    expect(said).toEqual([...numbered("a", 1, 6), "b ready", "b1", "b closed 1006", "c ready", "c1"]);
  });

  it("ends where getting ready fails", () => {
    const { connect, said, round, scheduler } = rig();
    const [a, b] = [connect({ name: "a" }), connect({ name: "b" })];
    bring(a, 6);
    b.follow(a, () => b.close(4429, { wantsRest: false }));
    bring(b, 2);
    round();
    round();
    expect(said).toEqual([...numbered("a", 1, 6), "b closed 4429"]);
    expect(scheduler.waitingBytes).toBe(0);
  });

  it("has a bound, too", () => {
    const { connect, said, scheduler } = rig({ maxInboxBytes: 20 });
    const [a, b] = [connect({ name: "a" }), connect({ name: "b" })];
    bring(a, 6);
    b.follow(a, () => said.push("b ready"));
    bring(b, 5);
    expect(said.slice(-2)).toEqual(["b inbox_full", "b closed 4429"]);
    scheduler.close();
    expect(said.at(-1)).toBe("b closed 4429");
    expect(scheduler.waitingBytes).toBe(0);
  });
});
