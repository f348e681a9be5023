/** A call's leg as it follows its session: what it asks of the other nodes, when, and what it gives up for. */
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../src/errors.ts";
import type { SessionPlace } from "../../../src/session/place.ts";
import type { CallLeg, LegEvent, LegOptions } from "../../../src/telephony/call-leg.ts";
import { CallStats } from "../../../src/telephony/call-stats.ts";
import { type FarCalls, FollowingLeg } from "../../../src/telephony/following-leg.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { MemoryLine } from "./call-rig.ts";
import { TINY_START } from "./tiny-dialect.ts";

/** A leg somewhere, as its call made it. */
class TestLeg implements CallLeg {
  readonly place: SessionPlace;
  readonly options: LegOptions;
  readonly taken: LegEvent[] = [];
  left: string | null = null;
  constructor(place: SessionPlace, options: LegOptions) {
    this.place = place;
    this.options = options;
  }
  take(event: LegEvent): void {
    this.taken.push(event);
  }
  drained(): void {
    // Nothing waits here.
  }
  leave(reason: string): void {
    this.left ??= reason;
  }
}

function follow({ isAlone = false }: { isAlone?: boolean } = {}) {
  const clock = new FakeClock();
  const counts = new CallStats().of("twilio");
  const legs: TestLeg[] = [];
  const marks: string[] = [];
  const asked: boolean[] = [];
  const seen = { joined: 0, greetings: 0, refused: "", ended: "" };
  let known: SessionPlace | undefined = { owner: "a" };
  let placed: SessionPlace | GatewayError = "here";
  const has = new Set<string>();
  let confirm: () => void = () => undefined;
  const add = (place: SessionPlace, options: LegOptions): TestLeg => {
    const leg = new TestLeg(place, options);
    legs.push(leg);
    return leg;
  };
  const far: FarCalls = {
    known: () => known,
    place: async (_, { mayOpen }, enter) => {
      asked.push(mayOpen);
      await Promise.resolve();
      if (placed instanceof GatewayError) throw placed;
      return enter(placed);
    },
    legAt: (owner, options) => {
      confirm = options.onJoined;
      return add({ owner }, options);
    },
  };
  const leg = new FollowingLeg({
    terms: { sessionId: "s", carrier: "twilio", call: TINY_START, markMs: 100, leadMs: 200 },
    codec: {
      audio: () => [],
      mark: (name) => {
        marks.push(name);
        return null;
      },
      clear: () => [],
      flush: () => [],
    },
    line: new MemoryLine(),
    greeting: () => {
      seen.greetings += 1;
      return null;
    },
    clock,
    counts,
    sessions: { has: (id) => has.has(id), isDraining: false },
    far: isAlone ? null : far,
    legHere: (options) => add("here", options),
    onJoined: () => {
      seen.joined += 1;
    },
    onRefused: ({ code }) => {
      seen.refused = code;
    },
    onEnd: (_, reason) => {
      seen.ended = reason;
    },
  });
  return {
    leg,
    legs,
    marks,
    asked,
    seen,
    counts,
    has,
    last: (): TestLeg => {
      const last = legs.at(-1);
      if (last === undefined) throw new Error("There is no leg");
      return last;
    },
    confirm: () => confirm(),
    know: (place: SessionPlace | undefined) => {
      known = place;
    },
    placeAt: (place: SessionPlace | GatewayError) => {
      placed = place;
    },
    /** With what was promised meanwhile. */
    pass: async (ms: number) => {
      for (let passed = 0; passed < ms; passed += 50) {
        clock.advance(50);
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

const media = (byte: number): LegEvent => ({ kind: "media", audio: new Uint8Array(160).fill(byte) });
const lose = (leg: TestLeg) => leg.options.onEnd(4502, "bus_lost");

describe("a call's leg", () => {
  it("is here at once where the gateway is alone, and what ends it ends the call", () => {
    const rig = follow({ isAlone: true });
    rig.leg.enter();
    expect([rig.last().place, rig.seen.joined]).toEqual(["here", 1]);
    lose(rig.last());
    expect([rig.seen.ended, rig.last().left]).toEqual(["bus_lost", "bus_lost"]);
  });

  it("what comes before its session's place is known waits, up to a bound", async () => {
    const rig = follow();
    rig.know(undefined);
    rig.leg.enter();
    const audio = new Uint8Array(160).fill(1);
    rig.leg.take({ kind: "media", audio });
    audio.fill(0);
    rig.leg.take({ kind: "dtmf", digit: "5" });
    rig.leg.take({ kind: "hold" });
    for (let count = 0; count < 255; count += 1) rig.leg.take(media(2));
    expect(rig.counts.callerDropped).toBe(1);
    await rig.pass(50);
    expect(rig.last().taken.slice(0, 3)).toEqual([{ kind: "hold" }, { kind: "dtmf", digit: "5" }, media(2)]);
    expect(rig.last().taken).toHaveLength(257);
  });

  it("goes to its session's next node, with marks of its own, and is not greeted again", async () => {
    const rig = follow();
    rig.leg.enter();
    rig.confirm();
    rig.last().options.codec.mark("m1");
    rig.know(undefined);
    lose(rig.last());
    rig.leg.take(media(3));
    rig.know({ owner: "b" });
    await rig.pass(100);
    expect(rig.last()).toMatchObject({ place: { owner: "b" }, taken: [media(3)] });
    rig.last().options.codec.mark("m1");
    expect(new Set(rig.marks).size).toBe(2);
    const [old = "", own = ""] = rig.marks;
    rig.leg.take({ kind: "played", name: old });
    rig.leg.take({ kind: "played", name: own });
    expect(rig.last().taken.slice(1)).toEqual([{ kind: "played", name: "m1" }]);
    rig.last().options.greeting();
    expect(rig.seen).toMatchObject({ joined: 1, greetings: 0 });
  });

  it("leaves time for another node to take the session over, then opens it here", async () => {
    const rig = follow();
    rig.leg.enter();
    rig.know(undefined);
    lose(rig.last());
    await rig.pass(3900);
    expect([rig.legs.length, new Set(rig.asked)]).toEqual([1, new Set([false])]);
    await rig.pass(600);
    expect(rig.last().place).toBe("here");
    expect(rig.asked.at(-1)).toBe(true);
  });

  it("finds a session that has been taken over here", async () => {
    const rig = follow();
    rig.leg.enter();
    rig.know(undefined);
    lose(rig.last());
    rig.has.add("s");
    await rig.pass(100);
    expect(rig.last().place).toBe("here");
  });

  it("gives up after 8 s, and goes on looking where a new leg is lost again", async () => {
    const rig = follow();
    rig.leg.enter();
    rig.confirm();
    rig.know(undefined);
    rig.placeAt(new GatewayError("bus_lost", "The bus is lost"));
    lose(rig.last());
    await rig.pass(5000);
    rig.know({ owner: "b" });
    await rig.pass(400);
    // It was never there: its time is not over.
    lose(rig.last());
    rig.know(undefined);
    await rig.pass(2000);
    expect(rig.seen.refused).toBe("");
    await rig.pass(1500);
    expect(rig.seen.refused).toBe("bus_lost");
  });

  it("is refused at once where it never was in its session and the bus is lost", async () => {
    const rig = follow();
    rig.know(undefined);
    rig.placeAt(new GatewayError("bus_lost", "The bus is lost"));
    rig.leg.enter();
    await rig.pass(50);
    expect(rig.seen.refused).toBe("bus_lost");
  });

  it("is refused for what the session's node refuses it for", () => {
    const rig = follow();
    rig.leg.enter();
    rig.last().options.onEnd(4429, "listener_limit");
    expect(rig.seen).toMatchObject({ refused: "listener_limit", ended: "" });
  });

  it("over while its session is looked for: it goes nowhere", async () => {
    const rig = follow();
    rig.leg.enter();
    rig.know(undefined);
    lose(rig.last());
    rig.leg.leave("stopped");
    rig.know({ owner: "b" });
    await rig.pass(1000);
    expect([rig.legs.length, rig.seen.refused]).toEqual([1, ""]);
  });
});
