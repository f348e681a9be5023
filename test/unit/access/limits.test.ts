/** How much each address, key, tenant, subject and token may have, on a clock that the test turns. */
import { describe, expect, it } from "vitest";
import { Caller } from "../../../src/access/caller.ts";
import { EVERY_SESSION, type Grants } from "../../../src/access/grants.ts";
import type { Key, KeyLimits } from "../../../src/access/keys.ts";
import { type LimitSettings, Limits } from "../../../src/access/limits/limits.ts";
import { Meters } from "../../../src/access/limits/meters.ts";
import { Traffic } from "../../../src/access/limits/traffic.ts";
import { GatewayError } from "../../../src/errors.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { DEFAULTS } from "../../helpers/start-gateway.ts";

const ADDRESS = "203.0.113.7";
const MANY = { characters: 100, utterances: 1 };

interface RigOptions {
  readonly settings?: Partial<LimitSettings>;
  readonly tenants?: Readonly<Record<string, KeyLimits>>;
}

function rigOf({ settings = {}, tenants = {} }: RigOptions = {}) {
  const clock = new FakeClock();
  const limits = new Limits({
    settings: { ...DEFAULTS, ...settings },
    clock,
    wallMs: () => 1_700_000_000_000 + clock.nowMs(),
    tenantLimits: (tenant) => tenants[tenant] ?? {},
  });
  return { clock, limits };
}

function keyOf(
  id: string,
  { limits = {}, grants = {} }: { limits?: KeyLimits; grants?: Partial<Grants> } = {},
): Key {
  const facts = { expiresMs: null, signing: null, mints: false, signsForOthers: false, fingerprint: id };
  return { id, tenant: "", grants: { ...EVERY_SESSION, ...grants }, limits, ...facts };
}

function tokenCaller(
  grants: Partial<Grants> = {},
  { id = "t1", subject = "ann", key = keyOf("app") } = {},
): Caller {
  const expiresMs = 1_700_000_060_000;
  return new Caller(key, {
    id,
    signer: key,
    subject,
    grants: { ...EVERY_SESSION, ...grants },
    issuedMs: 0,
    expiresMs,
  });
}

const ANYBODY = new Caller(null);

/** The code of the error, or "" where it is none; and when to come back, ms. */
function outcomeOf(action: () => unknown): { code: string; retryAfterMs?: number | undefined } {
  try {
    action();
    return { code: "" };
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    return { code: thrown.code, retryAfterMs: thrown.retryAfterMs };
  }
}

describe("an address", () => {
  const settings = {
    connectionsPerAddress: 2,
    opensPerSecond: 1,
    failuresPerMinute: 2,
    sessionsPerAddress: 1,
  };

  it("has no connection beyond its limit until one of them ends", () => {
    const { limits } = rigOf({ settings });
    const leave = limits.enter(ANYBODY, ADDRESS);
    limits.enter(ANYBODY, ADDRESS);
    expect(outcomeOf(() => limits.enter(ANYBODY, ADDRESS)).code).toBe("connection_limit");
    expect(outcomeOf(() => limits.enter(ANYBODY, "203.0.113.8")).code).toBe("");
    leave();
    leave();
    expect(outcomeOf(() => limits.enter(ANYBODY, ADDRESS)).code).toBe("");
    expect(outcomeOf(() => limits.enter(ANYBODY, ADDRESS)).code).toBe("connection_limit");
  });

  it("opens five seconds' worth of connections at once, then its rate", () => {
    const { limits, clock } = rigOf({ settings: { ...settings, connectionsPerAddress: 0 } });
    const open = () => outcomeOf(() => limits.enter(ANYBODY, ADDRESS));
    for (let count = 0; count < 5; count += 1) expect(open().code).toBe("");
    expect(open()).toEqual({ code: "rate_limited", retryAfterMs: 1000 });
    clock.advance(1000);
    expect([open().code, open().code]).toEqual(["", "rate_limited"]);
  });

  it("opens no session beyond its limit", () => {
    const { limits } = rigOf({ settings });
    const end = limits.openSession(ANYBODY, ADDRESS);
    expect(outcomeOf(() => limits.openSession(ANYBODY, ADDRESS)).code).toBe("session_limit");
    end();
    expect(outcomeOf(() => limits.openSession(ANYBODY, ADDRESS)).code).toBe("");
  });

  it("is not asked for a credential once it has sent too many that do not hold", () => {
    const { limits, clock } = rigOf({ settings });
    limits.failed(ADDRESS);
    expect(outcomeOf(() => limits.mustTryNow(ADDRESS)).code).toBe("");
    limits.failed(ADDRESS);
    expect(outcomeOf(() => limits.mustTryNow(ADDRESS))).toEqual({
      code: "rate_limited",
      retryAfterMs: 30_000,
    });
    expect(outcomeOf(() => limits.mustTryNow("203.0.113.8")).code).toBe("");
    clock.advance(30_000);
    expect(outcomeOf(() => limits.mustTryNow(ADDRESS)).code).toBe("");
  });

  it.each([
    ["of IPv6 is its /64 network", "2001:db8::1", "2001:db8::ffff:0:0:2", "connection_limit"],
    ["of another /64 network is another", "2001:db8::1", "2001:db8:0:1::1", ""],
    ["is the same where IPv4 is written as IPv6", "203.0.113.9", "::ffff:203.0.113.9", "connection_limit"],
  ])("%s", (_name, first, second, code) => {
    const { limits } = rigOf({ settings: { ...settings, connectionsPerAddress: 1 } });
    limits.enter(ANYBODY, first);
    expect(outcomeOf(() => limits.enter(ANYBODY, second)).code).toBe(code);
  });

  it.each([
    ["of loopback has no limits", "remote", "127.0.0.1", ""],
    ["of IPv6 loopback has none", "remote", "0000:0000:0000:0000:0000:0000:0000:0001", ""],
    ["of loopback has them where all have", "all", "127.0.0.1", "connection_limit"],
    ["has none where limits are off", "off", ADDRESS, ""],
  ] as const)("%s", (_name, addressLimits, address, code) => {
    const { limits } = rigOf({ settings: { ...settings, connectionsPerAddress: 1, addressLimits } });
    limits.enter(ANYBODY, address);
    expect(outcomeOf(() => limits.enter(ANYBODY, address)).code).toBe(code);
  });

  it("does not count for a static key, whose numbers are its own, but for tokens", () => {
    const { limits } = rigOf({ settings: { ...settings, connectionsPerAddress: 1 } });
    const server = new Caller(keyOf("server"));
    limits.enter(server, ADDRESS);
    expect(outcomeOf(() => limits.enter(server, ADDRESS)).code).toBe("");
    limits.enter(tokenCaller(), ADDRESS);
    expect(outcomeOf(() => limits.enter(tokenCaller({}, { subject: "bob" }), ADDRESS)).code).toBe(
      "connection_limit",
    );
  });
});

describe("a key", () => {
  const bounded = keyOf("app", {
    limits: { connections: 2, opens_per_second: 1, sessions: 1, utterances: 1 },
  });
  const byKey = new Caller(bounded);

  it("has its connections, sessions and utterances at once together with all its tokens", () => {
    const { limits } = rigOf({ settings: { addressLimits: "off" } });
    const ann = tokenCaller({}, { key: bounded });
    const bob = tokenCaller({}, { key: bounded, subject: "bob" });
    limits.enter(ann, ADDRESS);
    limits.enter(bob, ADDRESS);
    expect(outcomeOf(() => limits.enter(byKey, ADDRESS)).code).toBe("connection_limit");
    limits.openSession(ann, ADDRESS);
    expect(outcomeOf(() => limits.openSession(bob, ADDRESS)).code).toBe("session_limit");
    const end = limits.beginUtterance(ann);
    expect(outcomeOf(() => limits.beginUtterance(bob)).code).toBe("rate_limited");
    end();
    expect(outcomeOf(() => limits.beginUtterance(bob)).code).toBe("");
  });

  it("opens no faster than it may", () => {
    const { limits } = rigOf();
    const quick = new Caller(keyOf("q", { limits: { opens_per_second: 1 } }));
    for (let count = 0; count < 5; count += 1) limits.enter(quick, ADDRESS);
    expect(outcomeOf(() => limits.enter(quick, ADDRESS))).toEqual({
      code: "rate_limited",
      retryAfterMs: 1000,
    });
  });

  it("has the smaller number of its limits and its grants", () => {
    const { limits } = rigOf();
    const key = keyOf("k", {
      limits: { connections: 5, characters_per_minute: 500 },
      grants: { connections: 1, characters_per_minute: 150, utterances_per_minute: 10 },
    });
    const caller = new Caller(key);
    limits.enter(caller, ADDRESS);
    expect(outcomeOf(() => limits.enter(caller, ADDRESS)).code).toBe("connection_limit");
    limits.spend(caller, MANY);
    expect(outcomeOf(() => limits.spend(caller, MANY))).toEqual({
      code: "rate_limited",
      retryAfterMs: 20_000,
    });
  });

  it("has no number of its own: then nothing is counted of it", () => {
    const { limits } = rigOf();
    const caller = new Caller(keyOf("free"));
    for (let count = 0; count < 1000; count += 1) limits.enter(caller, ADDRESS);
    limits.spend(caller, { characters: 1_000_000, utterances: 1000 });
    expect(limits.sizes).toEqual({ callers: 0, addresses: 0 });
  });
});

describe("a tenant", () => {
  it("has its numbers for all of its keys and tokens", () => {
    const { limits } = rigOf({ tenants: { acme: { connections: 2, characters_per_minute: 150 } } });
    const one = new Caller({ ...keyOf("one"), tenant: "acme" });
    const other = tokenCaller({ tenant: "acme" }, { key: keyOf("two") });
    limits.enter(one, ADDRESS);
    limits.enter(other, ADDRESS);
    expect(outcomeOf(() => limits.enter(one, ADDRESS)).code).toBe("connection_limit");
    limits.spend(one, MANY);
    expect(outcomeOf(() => limits.spend(other, MANY)).code).toBe("rate_limited");
    expect(outcomeOf(() => limits.enter(tokenCaller({ tenant: "other" }), ADDRESS)).code).toBe("");
  });
});

describe("a body that streams", () => {
  const never = (): void => undefined;

  it("waits while its client is over its rate, together with others that stream, and no other body for it", () => {
    const { limits, clock } = rigOf({ settings: { bytesPerSecond: 1000 } });
    const upload = limits.body(ANYBODY, ADDRESS, never);
    const other = limits.body(ANYBODY, ADDRESS, never);
    expect([upload.pass(16_000), other.pass(2000), upload.pass(500)]).toEqual([0, 2000, 2500]);
    expect(outcomeOf(() => limits.body(ANYBODY, ADDRESS, never).begin()).code).toBe("");
    clock.advance(2500);
    expect(upload.pass(0)).toBe(0);
  });

  it("waits half a minute at most for one piece, and for the slowest of its caller's numbers", () => {
    const { limits } = rigOf({ settings: { bytesPerSecond: 1000 } });
    const key = keyOf("app", { limits: { bytes_per_second: 100 } });
    expect(limits.body(tokenCaller({}, { key }), ADDRESS, never).pass(2600)).toBe(10_000);
    expect(limits.body(new Caller(key), ADDRESS, never).pass(1_000_000)).toBe(30_000);
    expect(limits.body(ANYBODY, "127.0.0.1", never).pass(1_000_000)).toBe(0);
  });
});

describe("a subject", () => {
  it("has the settings' connections, sessions and characters, also with a new token", () => {
    const { limits, clock } = rigOf({
      settings: { connectionsPerSubject: 1, sessionsPerSubject: 1, charactersPerMinute: 120 },
    });
    const first = tokenCaller();
    const next = tokenCaller({}, { id: "t2" });
    limits.enter(first, ADDRESS);
    expect(outcomeOf(() => limits.enter(next, ADDRESS)).code).toBe("connection_limit");
    expect(outcomeOf(() => limits.enter(tokenCaller({}, { subject: "bob" }), ADDRESS)).code).toBe("");
    limits.openSession(first, ADDRESS);
    expect(outcomeOf(() => limits.openSession(next, ADDRESS)).code).toBe("session_limit");
    limits.spend(first, MANY);
    expect(outcomeOf(() => limits.spend(next, MANY)).code).toBe("rate_limited");
    clock.advance(60_000);
    expect(outcomeOf(() => limits.spend(next, MANY)).code).toBe("");
  });

  it("has the numbers of its token where that names them", () => {
    const { limits } = rigOf({ settings: { connectionsPerSubject: 1, charactersPerMinute: 10 } });
    const caller = tokenCaller({ connections: 2, characters_per_minute: 1000, utterances_per_minute: 2 });
    limits.enter(caller, ADDRESS);
    limits.enter(caller, ADDRESS);
    expect(outcomeOf(() => limits.enter(caller, ADDRESS)).code).toBe("connection_limit");
    limits.spend(caller, MANY);
    limits.spend(caller, MANY);
    expect(outcomeOf(() => limits.spend(caller, MANY))).toEqual({
      code: "rate_limited",
      retryAfterMs: 30_000,
    });
  });

  it("a text that no minute has room for is refused as too long", () => {
    const { limits } = rigOf({ settings: { charactersPerMinute: 50 } });
    expect(outcomeOf(() => limits.spend(tokenCaller(), MANY)).code).toBe("text_too_long");
  });
});

describe("a budget of characters", () => {
  it("is spent once, whole or not at all, by all that the token does", () => {
    const { limits, clock } = rigOf();
    const caller = tokenCaller({ characters: 150 });
    limits.spend(caller, MANY);
    expect(outcomeOf(() => limits.spend(caller, MANY))).toEqual({ code: "budget_exhausted" });
    limits.spend(caller, { characters: 50, utterances: 1 });
    clock.advance(59_000);
    expect(outcomeOf(() => limits.spend(caller, { characters: 1, utterances: 0 })).code).toBe(
      "budget_exhausted",
    );
    const other = tokenCaller({ characters: 150 }, { id: "t2" });
    expect(outcomeOf(() => limits.spend(other, MANY)).code).toBe("");
  });

  it("the budget of a key is spent by its tokens, too", () => {
    const { limits } = rigOf();
    const key = keyOf("app", { grants: { characters: 150 } });
    limits.spend(tokenCaller({}, { key }), MANY);
    expect(outcomeOf(() => limits.spend(new Caller(key), MANY)).code).toBe("budget_exhausted");
  });

  it("gets back what a text cost that was refused after all", () => {
    const { limits } = rigOf();
    const caller = tokenCaller({ characters: 100, characters_per_minute: 100, utterances_per_minute: 1 });
    const budget = limits.speechBudget(() => caller);
    budget.begin(100).undo();
    budget.begin(90).end();
    expect(outcomeOf(() => budget.begin(5)).code).toBe("rate_limited");
    budget.add(10);
    expect(outcomeOf(() => budget.add(1)).code).toBe("budget_exhausted");
  });

  it("goes over to the token that a connection goes on with", () => {
    const { limits } = rigOf();
    let caller = tokenCaller({ characters: 100 });
    const budget = limits.speechBudget(() => caller);
    budget.add(100);
    expect(outcomeOf(() => budget.add(1)).code).toBe("budget_exhausted");
    caller = tokenCaller({ characters: 100 }, { id: "t2" });
    expect(outcomeOf(() => budget.add(1)).code).toBe("");
  });

  it("lets several that may cost more than it has run one after the other, and those that it has room for at once", () => {
    const { limits } = rigOf();
    const caller = tokenCaller({ characters: 100 });
    const begin = (most: number) => {
      const speech = limits.reserveSpeech(caller, 1);
      try {
        speech.open(most);
      } catch (thrown) {
        speech.settle(0);
        throw thrown;
      }
      return speech;
    };
    const first = begin(5000);
    expect(outcomeOf(() => begin(1))).toMatchObject({ code: "rate_limited" });
    expect(outcomeOf(() => limits.spend(caller, { characters: 9, utterances: 0 })).code).toBe("");
    first.settle(30);
    first.settle(30);
    // 61 are left, and one is reserved for each.
    const both = [begin(29), begin(29)];
    expect(outcomeOf(() => begin(2)).code).toBe("rate_limited");
    for (const speech of both) speech.settle(30);
    expect(outcomeOf(() => limits.spend(caller, { characters: 2, utterances: 0 })).code).toBe(
      "budget_exhausted",
    );
    expect(outcomeOf(() => limits.spend(caller, { characters: 1, utterances: 0 })).code).toBe("");
  });

  it("gives the utterances' places back when a key's utterances exceed it", () => {
    const { limits } = rigOf();
    const key = keyOf("app", { limits: { utterances: 1 }, grants: { characters: 10 } });
    const budget = limits.speechBudget(() => new Caller(key));
    expect(outcomeOf(() => budget.begin(11)).code).toBe("budget_exhausted");
    expect(outcomeOf(() => budget.begin(10)).code).toBe("");
    expect(outcomeOf(() => budget.begin(0)).code).toBe("rate_limited");
  });
});

describe("what is left", () => {
  it("is that of the bound that is nearest", () => {
    const { limits, clock } = rigOf({ settings: { charactersPerMinute: 1000 } });
    const key = keyOf("app", { limits: { characters_per_minute: 400, utterances: 4 } });
    const caller = tokenCaller({}, { key });
    limits.spend(caller, MANY);
    limits.beginUtterance(caller);
    expect(limits.rateOf(caller, "characters_per_minute")).toEqual({
      limit: 400,
      remaining: 300,
      resetMs: 15_000,
    });
    expect(limits.countOf(caller, "utterances")).toEqual({ count: 1, limit: 4 });
    clock.advance(15_000);
    expect(limits.rateOf(caller, "characters_per_minute")).toEqual({
      limit: 400,
      remaining: 400,
      resetMs: 0,
    });
    expect(limits.rateOf(new Caller(keyOf("free")), "opens")).toBeNull();
  });
});

describe("memory", () => {
  it("is freed of addresses that nothing is counted for", () => {
    const { limits, clock } = rigOf();
    for (let host = 0; host < 200; host += 1) limits.enter(ANYBODY, `203.0.113.${host}`)();
    const stays = limits.enter(ANYBODY, "198.51.100.1");
    expect(limits.sizes.addresses).toBe(201);
    clock.advance(60_000);
    for (let host = 0; host < 200; host += 1) limits.enter(ANYBODY, `203.0.112.${host}`)();
    expect(limits.sizes.addresses).toBeLessThanOrEqual(202);
    stays();
  });

  it("has a bound: rates are forgotten rather than somebody refused, connections and budgets never", () => {
    const meters = new Meters(3);
    meters.of("held", 0)?.add("connections", 1);
    const spent = meters.of("spent", 0);
    if (spent !== null) Object.assign(spent, { spent: 5, keptUntilMs: 1000 });
    meters.of("rated", 0)?.take("opens", { count: 1, rate: { burst: 1, perMs: 1 }, nowMs: 0 });
    expect(meters.of("new", 0)).not.toBeNull();
    expect(["held", "spent", "rated"].map((id) => meters.find(id) !== undefined)).toEqual([
      true,
      true,
      false,
    ]);
    meters.of("new", 0)?.add("sessions", 1);
    expect(meters.of("one more", 0)).toBeNull();
    expect(meters.of("one more", 1000)).not.toBeNull();
    expect(meters.size).toBe(3);
  });

  it("a budget is remembered until nobody can speak by its token any more", () => {
    const { limits, clock } = rigOf();
    const caller = tokenCaller({ characters: 100 });
    limits.spend(caller, MANY);
    const others = (): void => {
      for (let count = 0; count < 100; count += 1) {
        limits.spend(tokenCaller({ characters: 1 }, { id: `${clock.nowMs()} ${count}` }), {
          characters: 1,
          utterances: 0,
        });
      }
    };
    // It expires after 60 s; clocks may differ by 60 s, and its last connection stands for 60 s.
    clock.advance(175_000);
    others();
    expect(outcomeOf(() => limits.spend(caller, MANY)).code).toBe("budget_exhausted");
    const before = limits.sizes.callers;
    clock.advance(200_000);
    others();
    expect(limits.sizes.callers).toBeLessThanOrEqual(before);
  });
});

describe("traffic of a connection", () => {
  it("is refused above its messages and bytes a second, with what may come at once", () => {
    const traffic = new Traffic({ messagesPerSecond: 2, bytesPerSecond: 10 });
    for (let count = 0; count < 50; count += 1) traffic.take(1, 0);
    expect(outcomeOf(() => traffic.take(1, 0))).toEqual({ code: "rate_limited", retryAfterMs: 500 });
    expect(outcomeOf(() => traffic.take(1, 500)).code).toBe("");
    const heavy = new Traffic({ messagesPerSecond: 2, bytesPerSecond: 10 });
    heavy.take(160, 0);
    expect(outcomeOf(() => heavy.take(20, 0))).toEqual({ code: "rate_limited", retryAfterMs: 2000 });
    expect(outcomeOf(() => heavy.take(20, 2000)).code).toBe("");
  });

  it("above its rate for five seconds is a flood, and in one burst is not", () => {
    const traffic = new Traffic({ messagesPerSecond: 2, bytesPerSecond: 0 });
    const send = (nowMs: number): void => {
      for (let count = 0; count < 60; count += 1) outcomeOf(() => traffic.take(1, nowMs));
    };
    send(0);
    expect(traffic.isFlooding(4999)).toBe(false);
    send(2000);
    expect(traffic.isFlooding(5000)).toBe(true);
    traffic.take(1, 20_000);
    expect(traffic.isFlooding(20_000)).toBe(false);
  });

  it("traffic of loopback has no bound without a key, and has one with a key", () => {
    const { limits } = rigOf();
    expect(limits.traffic(ANYBODY, "127.0.0.1")).toBeNull();
    expect(limits.traffic(ANYBODY, ADDRESS)).not.toBeNull();
    const slow = limits.traffic(new Caller(keyOf("k", { limits: { bytes_per_second: 1 } })), "127.0.0.1");
    slow?.take(16, 0);
    expect(outcomeOf(() => slow?.take(1, 0)).code).toBe("rate_limited");
  });
});
