/** Calls over RTP that can't begin: what is answered, and that nothing stays open. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { describe, expect, it, vi } from "vitest";
import WebSocket from "ws";
import { RtpPacketizer } from "../../../src/audio/rtp.ts";
import { reachablePeer } from "../../../src/edge/rtp-peer.ts";
import { until } from "../../helpers/until.ts";
import { startCarrierEdge } from "./carrier-edge.ts";

/** Asks for a port; the peer is named where nothing else is said. */
function take(
  gateway: { readonly url: string },
  session: string,
  peer: { readonly remote?: string } = { remote: "127.0.0.1:9" },
): Promise<Response> {
  return fetch(`${gateway.url}/carrier/rtp`, { method: "POST", body: JSON.stringify({ session, ...peer }) });
}

describe("POST /carrier/rtp for a session that can't be", () => {
  it.each([
    ["named", { remote: "127.0.0.1:9" }],
    ["not named", {}],
  ])("is refused where the peer is %s, and no port is taken", async (_, peer) => {
    await using gateway = await startCarrierEdge({ maxCalls: 1 });
    const refused = await take(gateway, "not a session", peer);
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({
      error: {
        code: "invalid_field",
        field: "session",
        message: expect.stringMatching(/^Session id is not valid: expected/),
      },
    });
    expect([gateway.rtpPorts.count, gateway.sessions.count]).toEqual([0, 0]);
    // There is room for one.
    expect((await take(gateway, "call-17", peer)).status).toBe(201);
    // What is wrong with the request is said where the gateway is full, too.
    expect((await take(gateway, "not a session", peer)).status).toBe(400);
  });
});

describe("POST /carrier/rtp with a peer that is named", () => {
  it("a call that its session refuses is answered with that error, and its port is given back", async () => {
    await using gateway = await startCarrierEdge();
    // As many sessions as there may be.
    for (const session of ["one", "two"]) expect((await take(gateway, session)).status).toBe(201);
    const refused = await take(gateway, "three");
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
    expect(await refused.json()).toMatchObject({
      error: {
        code: "session_limit",
        message: "Gateway is full: 2 sessions, which is the limit",
        retry_after_ms: 5000,
      },
    });
    expect([gateway.rtpPorts.count, gateway.sessions.count]).toEqual([2, 2]);
    expect((await take(gateway, "two")).status).toBe(201);
  });

  it("is answered like every other where the gateway has filled up while the port was taken", async () => {
    await using gateway = await startCarrierEdge({ maxCalls: 1 });
    const other = new WebSocket(`${gateway.wsUrl}/carrier/twilio`);
    await once(other, "open");
    // There still was room when the request came.
    vi.spyOn(gateway.calls, "mustHaveRoom").mockImplementationOnce(() => undefined);
    const refused = await take(gateway, "late");
    other.terminate();
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
    expect(await refused.json()).toMatchObject({
      error: {
        code: "listener_limit",
        message: "Gateway is full: 1 calls, which is the limit",
        retry_after_ms: 5000,
      },
    });
    expect([gateway.rtpPorts.count, gateway.sessions.count]).toEqual([0, 0]);
    expect(gateway.calls.stats.of("rtp").refused).toBe(1);
  });
});

describe("POST /carrier/rtp with a peer of another IP version than the gateway's host", () => {
  it("is refused, and no port is taken", async () => {
    await using gateway = await startCarrierEdge({ maxCalls: 1 });
    const refused = await take(gateway, "s", { remote: "[::1]:4000" });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({
      error: { code: "invalid_field", field: "remote", message: expect.stringContaining("IPv4") },
    });
    expect(gateway.sessions.count).toBe(0);
    expect((await take(gateway, "s")).status).toBe(201);
  });

  it.each(["::", "::1"])("IPv4 is refused where the host is %s", (host) => {
    expect(() => reachablePeer({ address: "192.0.2.1", port: 4000 }, host)).toThrow(
      "expected an IPv6 address",
    );
  });

  it("an IPv6 address is known as packets name it, however it was written", () => {
    const peer = reachablePeer({ address: "2001:DB8:0::0001", port: 4000 }, "::");
    expect(peer).toEqual({ address: "2001:db8::1", port: 4000 });
  });
});

describe("a call that begins with its peer's first packet", () => {
  it("is refused where the gateway has filled up since, and its port is given back", async () => {
    await using gateway = await startCarrierEdge({ maxCalls: 1 });
    const answer = await take(gateway, "late", {});
    const taken = (await answer.json()) as { call_id: string; port: number };
    expect(answer.status).toBe(201);
    const other = new WebSocket(`${gateway.wsUrl}/carrier/twilio`);
    await once(other, "open");
    const phone = createSocket("udp4");
    const packets = new RtpPacketizer({
      payloadType: 0,
      samplesPerFrame: 160,
      ssrc: 1,
      sequence: 1,
      timestamp: 1,
    });
    await until("the port is given back, or the call begins", () => {
      phone.send(packets.wrap(new Uint8Array(160), false), taken.port, "127.0.0.1");
      return gateway.rtpPorts.count === 0 || gateway.sessions.count > 0;
    });
    phone.close();
    other.terminate();
    expect([gateway.rtpPorts.count, gateway.sessions.count]).toEqual([0, 0]);
    expect(gateway.calls.stats.of("rtp").refused).toBe(1);
  });
});
