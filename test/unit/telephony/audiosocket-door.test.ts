/** Who may bring a call over AudioSocket: its UUID is a ticket where the gateway has keys. On a clock that is turned by hand. */

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { createDoor } from "../../../src/access/door.ts";
import { Pacer } from "../../../src/delivery/pacer.ts";
import { systemClock } from "../../../src/kit/clock.ts";
import { RefusalCounts } from "../../../src/kit/refusal-counts.ts";
import { startAudioSocket } from "../../../src/server/carriers/audiosocket.ts";
import { AudioSocketTickets } from "../../../src/server/carriers/audiosocket-tickets.ts";
import { CallerRights } from "../../../src/server/carriers/caller-rights.ts";
import { CarrierAuth } from "../../../src/server/carriers/carrier-auth.ts";
import { type CarrierSettings, readCarrierRules } from "../../../src/server/carriers/carrier-rules.ts";
import { readNetworks } from "../../../src/server/carriers/rtp-networks.ts";
import { Calls } from "../../../src/telephony/calls.ts";
import { TestKeys, tokenFor } from "../../helpers/key-file.ts";
import { createRig } from "../../helpers/session-rig.ts";
import { DEFAULTS, TEST_WATCH_MS } from "../../helpers/start-gateway.ts";
import { until } from "../../helpers/until.ts";
import { watchedLog } from "../../helpers/watched-log.ts";

const HANG_UP = Buffer.of(0, 0, 0);
const STRANGER = "01234567-89ab-cdef-0123-456789abcdef";
const CALLER = { sessions: ["call-17"], allow: ["call"] };

interface Over {
  readonly hasKeys?: boolean;
  readonly rules?: Partial<CarrierSettings>;
  /** Setting `audiosocket-allow`. */
  readonly allow?: string;
  readonly maxCalls?: number;
}

async function startStand({ hasKeys = true, rules = {}, allow = "", maxCalls = 2 }: Over = {}) {
  const keys = new TestKeys();
  const keysFile = hasKeys ? keys.path : "";
  const door = createDoor({
    ...DEFAULTS,
    keysFile,
    log: watchedLog,
    clock: systemClock,
    watchMs: TEST_WATCH_MS,
  });
  const { clock, sessions } = createRig();
  const pacer = new Pacer(clock);
  const shared = { clock, log: watchedLog, host: "127.0.0.1", maxMessageBytes: 1024 };
  const calls = new Calls({ ...shared, sessions, maxCalls, refusals: new RefusalCounts() });
  const none = { carriers: "", twilioAuthToken: "", carrierToken: "", publicUrl: "" };
  const carrierAuth = new CarrierAuth({ rules: readCarrierRules({ ...none, ...rules }), door, clock });
  const tickets = new AudioSocketTickets({ ...shared, carrierAuth, port: 9092, maxTickets: 2 });
  const server = await startAudioSocket({
    ...shared,
    calls,
    pacer,
    door,
    tickets,
    carrierAuth,
    allow: readNetworks(allow, "audiosocket-allow"),
    port: 0,
  });
  const sockets: Socket[] = [];
  const identify = () => {
    const credential = hasKeys ? tokenFor(CALLER, { claims: { jti: "t-1" } }) : "";
    return door.access.identify({ credential, place: "header", origin: "" });
  };
  return {
    keys,
    door,
    clock,
    sessions,
    calls,
    stats: calls.stats.of("audiosocket"),
    identify,
    /** The UUID of a call that was announced. */
    announce: (): string => {
      const rights = new CallerRights({ door, caller: identify(), surface: "test", address: "" });
      return tickets.announce({ session: "call-17" }, rights).uuid;
    },
    dial: async (uuid: string) => {
      const asterisk = await dial(server.port);
      sockets.push(asterisk.socket);
      asterisk.socket.write(nameOf(uuid));
      return asterisk;
    },
    dialSilently: async () => {
      const asterisk = await dial(server.port);
      sockets.push(asterisk.socket);
      return asterisk;
    },
    [Symbol.dispose]: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      pacer.close();
      door.close();
      keys[Symbol.dispose]();
    },
  };
}

/** One end of a connection, and what came on it. */
async function dial(port: number) {
  const socket = connect(port, "127.0.0.1");
  const received: Buffer[] = [];
  const asterisk = { socket, received, isClosed: false };
  socket.on("error", () => undefined);
  socket.on("data", (bytes) => received.push(bytes));
  socket.on("close", () => {
    asterisk.isClosed = true;
  });
  await once(socket, "connect");
  return asterisk;
}

function nameOf(uuid: string): Buffer {
  return Buffer.concat([Buffer.of(1, 0, 16), Buffer.from(uuid.replaceAll("-", ""), "hex")]);
}

/** A frame of silence: with it the call begins. */
const FRAME = Buffer.concat([Buffer.of(0x10, 1, 64), Buffer.alloc(320)]);

describe("a UUID", () => {
  it("that was announced brings the call into its session, once", async () => {
    using stand = await startStand();
    const uuid = stand.announce();
    const asterisk = await stand.dial(uuid);
    asterisk.socket.write(FRAME);
    await until("the call has begun", () => stand.stats.started === 1);
    expect(stand.sessions.get("call-17").connectionCount).toBe(1);
    const second = await stand.dial(uuid);
    await until("the second is closed", () => second.isClosed);
    expect(Buffer.concat(second.received)).toEqual(HANG_UP);
    expect([stand.stats.started, stand.stats.refused]).toEqual([1, 1]);
    expect(asterisk.isClosed).toBe(false);
  });

  it("that was not announced is hung up, and takes no room", async () => {
    using stand = await startStand();
    const stranger = await stand.dial(STRANGER);
    await until("it is closed", () => stranger.isClosed);
    expect(Buffer.concat(stranger.received)).toEqual(HANG_UP);
    expect([stand.stats.opened, stand.stats.refused, stand.sessions.count]).toEqual([0, 1, 0]);
    expect([...stand.door.audit.refusals]).toEqual([["forbidden", 1]]);
  });

  it("is good for a minute", async () => {
    using stand = await startStand();
    const late = stand.announce();
    stand.clock.advance(60_000);
    const asterisk = await stand.dial(late);
    await until("it is closed", () => asterisk.isClosed);
    expect(stand.stats.refused).toBe(1);
  });

  it("is not good any more once the token that announced it was withdrawn", async () => {
    using stand = await startStand();
    const uuid = stand.announce();
    stand.keys.write({ revoked: { tokens: ["t-1"] } });
    await until("the keys are read again", () => {
      try {
        stand.identify();
        return false;
      } catch (thrown) {
        expect(thrown).toMatchObject({ reason: "revoked" });
        return true;
      }
    });
    const asterisk = await stand.dial(uuid);
    asterisk.socket.write(FRAME);
    await until("it is closed", () => asterisk.isClosed);
    expect([stand.stats.started, stand.sessions.count]).toEqual([0, 0]);
  });

  it("may be anyone's where the gateway has no keys; one that was announced has its session there, too", async () => {
    using stand = await startStand({ hasKeys: false });
    const announced = await stand.dial(stand.announce());
    announced.socket.write(FRAME);
    const other = await stand.dial(STRANGER);
    other.socket.write(FRAME);
    await until("both have begun", () => stand.stats.started === 2);
    expect(stand.sessions.get("call-17").connectionCount).toBe(1);
    expect(stand.sessions.get(`audiosocket-${STRANGER}`).connectionCount).toBe(1);
  });
});

describe("a UUID that was not announced, on a gateway without keys", () => {
  it.each([
    ["a check of another carrier is set", { carrierToken: "telnyx=secret" }],
    ["it has a token of its own", { carrierToken: "audiosocket=secret" }],
    ["Twilio's signature is checked", { twilioAuthToken: "secret", publicUrl: "wss://voice.example.com" }],
    ["`carriers` does not name audiosocket", { carriers: "twilio,rtp" }],
  ])("is hung up where %s", async (_name, rules) => {
    using stand = await startStand({ hasKeys: false, rules });
    const stranger = await stand.dial(STRANGER);
    await until("it is closed", () => stranger.isClosed);
    expect(Buffer.concat(stranger.received)).toEqual(HANG_UP);
    expect([...stand.door.audit.refusals]).toEqual([["forbidden", 1]]);
    const announced = await stand.dial(stand.announce());
    announced.socket.write(FRAME);
    await until("the other has begun", () => stand.stats.started === 1);
    expect(stand.sessions.get("call-17").connectionCount).toBe(1);
  });
});

describe("a connection", () => {
  it("that says no UUID within five seconds is closed", async () => {
    using stand = await startStand({ hasKeys: false });
    const silent = await stand.dialSilently();
    silent.socket.write(nameOf(STRANGER).subarray(0, 18));
    await until("the server waits", () => stand.clock.pending > 0);
    stand.clock.advance(4999);
    await turn();
    expect(silent.isClosed).toBe(false);
    stand.clock.advance(1);
    await until("it is closed", () => silent.isClosed);
    expect([stand.stats.opened, stand.sessions.count]).toEqual([0, 0]);
  });

  it.each([
    ["10.0.0.0/8", true],
    ["10.0.0.0/8,127.0.0.1", false],
  ])("from 127.0.0.1 where audiosocket-allow is %s is refused: %s", async (allow, isRefused) => {
    using stand = await startStand({ hasKeys: false, allow });
    const asterisk = await stand.dial(STRANGER);
    asterisk.socket.write(FRAME);
    await until("it has begun or is closed", () => asterisk.isClosed || stand.stats.started === 1);
    expect(asterisk.isClosed).toBe(isRefused);
  });

  it("is one of 256 that may wait beside the calls", async () => {
    using stand = await startStand({ maxCalls: 0 });
    const waiting = await Promise.all(Array.from({ length: 256 }, () => stand.dialSilently()));
    const one = await stand.dialSilently();
    await until("it is closed", () => one.isClosed);
    expect(waiting.filter(({ isClosed }) => isClosed)).toEqual([]);
  });
});
