/** One RTP call over real sockets of loopback, on a clock that is turned by hand: what a peer has to do to be sent to. */

import type { NetworkInterfaceInfo } from "node:os";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { Pacer } from "../../../src/delivery/pacer.ts";
import { RefusalCounts } from "../../../src/kit/refusal-counts.ts";
import { PeerRule, readPeerList } from "../../../src/server/carriers/rtp-networks.ts";
import { type RtpCall, RtpPort } from "../../../src/server/carriers/rtp-port.ts";
import { Calls } from "../../../src/telephony/calls.ts";
import { ANY_CALL } from "../../helpers/open-door.ts";
import { createRig } from "../../helpers/session-rig.ts";
import { until } from "../../helpers/until.ts";
import { watchedLog } from "../../helpers/watched-log.ts";
import { RtpPhone } from "../../kit/rtp-phone.ts";

const HOST = "127.0.0.1";
const ALLOWED_MS = 5000;

interface Over extends Partial<RtpCall> {
  /** Setting `rtp-peers`. */
  readonly peers?: string;
  readonly host?: string;
  /** How many addresses the machine has. */
  readonly addresses?: number;
}

async function startCall(peer: RtpPhone | null, over: Over = {}) {
  const { peers = "private", host = HOST, addresses = 1, ...facts } = over;
  const rig = createRig();
  const { clock } = rig;
  const { listener } = rig.join("role=speaker&format=none&events=call,dtmf&caller=ulaw_8000");
  const calls = new Calls({
    sessions: rig.sessions,
    clock,
    log: watchedLog,
    maxCalls: 2,
    refusals: new RefusalCounts(),
  });
  let isClosed = false;
  const port = new RtpPort({
    call: {
      callId: "c",
      parameters: { session: "s" },
      format: "ulaw_8000",
      peer: peer === null ? null : { address: HOST, port: peer.port },
      isListenOnly: false,
      eventType: 101,
      rights: ANY_CALL,
      ...facts,
    },
    calls,
    pacer: new Pacer(clock),
    clock,
    log: watchedLog,
    host,
    rule: new PeerRule({ list: readPeerList(peers), host, own: ownAddresses(addresses) }),
    onClosed: () => {
      isClosed = true;
    },
  });
  const number = await port.bind(0);
  const stats = calls.stats.of("rtp");
  return {
    port,
    number,
    stats,
    clock,
    isClosed: () => isClosed,
    /** How the call ended. */
    reason: () => listener.eventsOf("call").find(({ state }) => state === "ended")?.reason,
    /** First bytes of the caller's frames. */
    heard: () => listener.frames.map((frame) => frame[0]),
    /** Lets time pass, and what is sent meanwhile arrive. */
    pass: async (ms: number) => {
      for (let leftMs = ms; leftMs > 0; leftMs -= 1000) {
        clock.advance(Math.min(leftMs, 1000));
        if (peer === null) await turn();
        else await peer.settled();
      }
    },
    [Symbol.dispose]: () => port.close(),
  };
}

function ownAddresses(count: number): NetworkInterfaceInfo[] {
  return Array.from({ length: count }, (_, index) => ({
    address: `192.168.${index}.1`,
    cidr: `192.168.${index}.1/24`,
    netmask: "255.255.255.0",
    family: "IPv4",
    mac: "00:00:00:00:00:00",
    internal: false,
  }));
}

describe("a named peer that has sent nothing", () => {
  it("gets 250 packets and no more", async () => {
    await using phone = await RtpPhone.open();
    using call = await startCall(phone);
    await call.pass(ALLOWED_MS);
    expect(phone.packets).toHaveLength(250);
    await call.pass(10_000);
    expect(phone.packets).toHaveLength(250);
  });

  it("is sent to again with its first packet, in sequence, with the time that has passed and a marker", async () => {
    await using phone = await RtpPhone.open();
    using call = await startCall(phone);
    await call.pass(ALLOWED_MS + 3000);
    phone.say(call.number, 1);
    await until("it is heard", () => call.heard().length > 0);
    await call.pass(1000);
    expect(phone.packets).toHaveLength(300);
    const [last, next, after] = phone.packets.slice(249);
    expect(next?.sequence).toBe(((last?.sequence ?? 0) + 1) & 0xffff);
    expect(((next?.timestamp ?? 0) - (last?.timestamp ?? 0)) >>> 0).toBe((3000 / 20 + 1) * 160);
    expect([next?.hasMarker, after?.hasMarker]).toEqual([true, false]);
    // And for as long as it is there.
    for (let seconds = 0; seconds < 40; seconds += 20) {
      phone.say(call.number, 1);
      await call.pass(20_000);
    }
    expect(phone.packets).toHaveLength(300 + 2000);
  });

  it("loses its call after 30 s", async () => {
    await using phone = await RtpPhone.open();
    using call = await startCall(phone);
    await call.pass(29_999);
    expect(call.isClosed()).toBe(false);
    await call.pass(1);
    expect([call.isClosed(), call.reason()]).toEqual([true, "peer silent"]);
  });

  it.each([
    ["no RTP", () => "something else"],
    ["RTCP", () => Uint8Array.of(0x80, 201, 0, 1, 0, 0, 0, 9, 0, 0, 0, 9)],
    [
      "its own packets back",
      (ssrc: number) => {
        const packet = Buffer.alloc(172);
        packet.writeUInt8(0x80);
        packet.writeUInt32BE(ssrc, 8);
        return packet;
      },
    ],
  ])("consents by RTP of its own, not by %s", async (_, bytes) => {
    await using phone = await RtpPhone.open();
    using call = await startCall(phone);
    phone.send(call.number, bytes(call.port.ssrc));
    await until("it came", () => call.stats.odd === 1);
    await call.pass(ALLOWED_MS + 1000);
    expect(phone.packets).toHaveLength(250);
  });
});

describe("a peer that has sent", () => {
  it.each(["named", "not named"])("loses its call 30 s after its last packet: %s", async (how) => {
    await using phone = await RtpPhone.open();
    using call = await startCall(how === "named" ? phone : null);
    for (const value of [1, 2, 3]) {
      phone.say(call.number, value);
      await until("it is heard", () => call.heard().length === value);
      await call.pass(20_000);
    }
    await call.pass(9999);
    expect(call.isClosed()).toBe(false);
    await call.pass(1);
    expect([call.isClosed(), call.reason()]).toEqual([true, "peer silent"]);
  });
});

describe("a peer that only listens", () => {
  it("is sent to for as long as the call is there", async () => {
    await using phone = await RtpPhone.open();
    using call = await startCall(phone, { isListenOnly: true });
    await call.pass(120_000);
    expect(call.isClosed()).toBe(false);
    expect(phone.packets).toHaveLength(120 * 50);
  });
});

describe("a peer that is not named", () => {
  it("has a minute for its first packet", async () => {
    await using phone = await RtpPhone.open();
    using call = await startCall(null);
    await call.pass(59_999);
    expect(call.isClosed()).toBe(false);
    phone.say(call.number, 1);
    await until("the call begins", () => call.stats.started === 1);
    using late = await startCall(null);
    await late.pass(60_000);
    expect(late.isClosed()).toBe(true);
  });

  it("has to be in rtp-peers; who is not is counted, and gets nothing", async () => {
    await using phone = await RtpPhone.open();
    using call = await startCall(null, { peers: "10.0.0.0/8" });
    phone.say(call.number, 1);
    phone.say(call.number, 2);
    await until("both have come", () => call.stats.strangers === 2);
    await call.pass(1000);
    await phone.settled();
    expect([call.stats.started, phone.packets.length]).toEqual([0, 0]);
  });

  it("is not found by RTCP", async () => {
    await using other = await RtpPhone.open();
    await using phone = await RtpPhone.open();
    using call = await startCall(null);
    other.send(call.number, Uint8Array.of(0x80, 200, 0, 6, ...new Uint8Array(24)));
    await until("it came", () => call.stats.strangers === 1);
    phone.say(call.number, 7);
    await until("the phone is heard", () => call.heard().length > 0);
    expect(call.heard()).toEqual([7]);
  });
});

describe("a second stream of the peer", () => {
  it("is dropped and counted while the first goes on", async () => {
    await using phone = await RtpPhone.open();
    using call = await startCall(phone);
    phone.say(call.number, 1, 99);
    for (let value = 2; value <= 60; value += 1) {
      phone.say(call.number, 200, 666);
      phone.say(call.number, value, 99);
      await until("it is heard", () => call.heard().length === value);
      await call.pass(20);
    }
    expect(call.heard()).not.toContain(200);
    expect(call.stats.odd).toBe(59);
  });

  it("is heard once the first has been silent for half a second", async () => {
    await using phone = await RtpPhone.open();
    using call = await startCall(phone);
    phone.say(call.number, 1, 99);
    await until("it is heard", () => call.heard().length === 1);
    await call.pass(499);
    phone.say(call.number, 200, 100);
    await until("it is dropped", () => call.stats.odd === 1);
    await call.pass(1);
    phone.say(call.number, 2, 100);
    phone.say(call.number, 3, 100);
    await until("it is heard", () => call.heard().length === 3);
    // The first stream is the other one now.
    phone.say(call.number, 200, 99);
    await until("it is dropped", () => call.stats.odd === 2);
    expect(call.heard()).toEqual([1, 2, 3]);
  });
});

describe("a peer whose port is closed (ICMP port unreachable)", () => {
  it.each([false, true])("loses its call at once; listen_only: %s", async (isListenOnly) => {
    const phone = await RtpPhone.open();
    using call = await startCall(phone, { isListenOnly });
    await phone.close();
    call.clock.advance(20);
    await until("the call is over", () => call.isClosed());
    expect(call.reason()).toBe("peer unreachable");
  });

  it("loses its call where several packets leave before the socket is read", async () => {
    const phone = await RtpPhone.open();
    using call = await startCall(phone);
    await phone.close();
    // The error is taken by the second packet, and not by the socket's event.
    call.clock.advance(40);
    await until("the call is over", () => call.isClosed());
    expect(call.reason()).toBe("peer unreachable");
  });

  it("loses its call in the middle, too, where it was not named", async () => {
    const phone = await RtpPhone.open();
    using call = await startCall(null);
    phone.say(call.number, 1);
    await until("the call begins", () => call.stats.started === 1);
    await call.pass(1000);
    await phone.close();
    await call.pass(40);
    await until("the call is over", () => call.isClosed());
    expect(call.reason()).toBe("peer unreachable");
  });
});

describe("a port that is bound to every address of a machine", () => {
  it("with several hears its peer at each of them, and counts strangers", async () => {
    await using phone = await RtpPhone.open();
    await using stranger = await RtpPhone.open();
    using call = await startCall(phone, { host: "0.0.0.0", addresses: 2 });
    phone.say(call.number, 1);
    phone.say(call.number, 2, 99, "127.0.0.2");
    stranger.say(call.number, 200);
    await until("the stranger is counted", () => call.stats.strangers === 1);
    expect(call.heard()).toEqual([1, 2]);
    await call.pass(1000);
    expect([phone.packets.length, stranger.packets.length]).toEqual([50, 0]);
  });

  it("with one leaves strangers to the system, and learns that the peer's port is closed", async () => {
    const phone = await RtpPhone.open();
    await using stranger = await RtpPhone.open();
    using call = await startCall(phone, { host: "0.0.0.0" });
    stranger.say(call.number, 200);
    phone.say(call.number, 1);
    await until("the phone is heard", () => call.heard().length === 1);
    expect([call.heard(), call.stats.strangers]).toEqual([[1], 0]);
    await phone.close();
    call.clock.advance(20);
    await until("the call is over", () => call.isClosed());
  });
});
