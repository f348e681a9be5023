/** Calls over RTP that can't begin: what is answered, and that nothing stays open. */
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import WebSocket from "ws";
import { reachablePeer } from "../../../src/server/carriers/rtp-routes.ts";
import { until } from "../../helpers/until.ts";
import { RtpPhone } from "../../kit/rtp-phone.ts";
import { startCarrierEdge } from "./carrier-edge.ts";

/** Is there, and takes what comes: nothing answers for its port. */
let phone: RtpPhone;
beforeAll(async () => {
  phone = await RtpPhone.open();
});
afterAll(() => phone.close());

/** Asks for a port; the peer is named where nothing else is said. */
function take(
  gateway: { readonly url: string },
  session: string,
  peer: { readonly remote?: string; readonly listen_only?: boolean } = { remote: phone.address },
): Promise<Response> {
  return fetch(`${gateway.url}/carrier/rtp`, { method: "POST", body: JSON.stringify({ session, ...peer }) });
}

describe("POST /carrier/rtp for a session that can't be", () => {
  it.each([
    ["named", true],
    ["not named", false],
  ])("is refused where the peer is %s, and no port is taken", async (_, isNamed) => {
    const peer = isNamed ? { remote: phone.address } : {};
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

describe("POST /carrier/rtp with a peer that packets may not go to", () => {
  it.each([
    ["224.0.0.1:4000", "224.0.0.1 is a multicast address"],
    ["255.255.255.255:4000", "255.255.255.255 is a broadcast address"],
    ["127.255.255.255:4000", "127.255.255.255 is a broadcast address of this machine's networks"],
    ["0.0.0.0:4000", "0.0.0.0 is the unspecified address"],
    ["169.254.169.254:80", "169.254.169.254 is a link-local address"],
    ["192.0.2.7:4000", "192.0.2.7 is outside the networks of the setting rtp-peers"],
  ])("%s is refused, and no port is taken", async (remote, reason) => {
    await using gateway = await startCarrierEdge();
    const refused = await take(gateway, "s", { remote });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({
      error: {
        code: "invalid_field",
        field: "remote",
        message: expect.stringContaining(`Field remote can't be used: ${reason}`),
      },
    });
    expect([gateway.rtpPorts.count, gateway.sessions.count]).toEqual([0, 0]);
  });

  it("one that no packet can get to from the gateway's host is refused with the system's reason", async () => {
    await using gateway = await startCarrierEdge({ rtpPeers: "192.0.2.0/24" });
    const refused = await take(gateway, "s", { remote: "192.0.2.7:4000" });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({
      error: {
        code: "invalid_field",
        field: "remote",
        message: expect.stringMatching(/RTP leaves from 127\.0\.0\.1, which can't reach it \(E[A-Z]+\)/),
      },
    });
    expect([gateway.rtpPorts.count, gateway.sessions.count]).toEqual([0, 0]);
  });

  it("every peer is refused where rtp-peers is none, named or not", async () => {
    await using gateway = await startCarrierEdge({ rtpPeers: "none" });
    for (const peer of [{ remote: phone.address }, {}]) {
      const refused = await take(gateway, "s", peer);
      expect(refused.status).toBe(400);
      expect(await refused.json()).toMatchObject({
        error: {
          code: "invalid_field",
          field: "remote",
          message: expect.stringContaining("rtp-peers is none"),
        },
      });
    }
    expect(gateway.rtpPorts.count).toBe(0);
  });
});

describe("POST /carrier/rtp with listen_only", () => {
  it("is refused where rtp-listen-only is off, and taken where it is on", async () => {
    await using gateway = await startCarrierEdge();
    const asked = { remote: phone.address, listen_only: true };
    const refused = await take(gateway, "s", asked);
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({
      error: {
        code: "invalid_field",
        field: "listen_only",
        message: expect.stringContaining("rtp-listen-only"),
      },
    });
    expect(gateway.rtpPorts.count).toBe(0);
    expect((await take(gateway, "s", { ...asked, listen_only: false })).status).toBe(201);
    await using open = await startCarrierEdge({ rtpListenOnly: true });
    expect((await take(open, "s", asked)).status).toBe(201);
  });

  it("is refused without a peer that is named", async () => {
    await using gateway = await startCarrierEdge({ rtpListenOnly: true });
    const refused = await take(gateway, "s", { listen_only: true });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { code: "invalid_field", field: "listen_only" } });
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
    await until("the port is given back, or the call begins", () => {
      phone.say(taken.port, 1);
      return gateway.rtpPorts.count === 0 || gateway.sessions.count > 0;
    });
    other.terminate();
    expect([gateway.rtpPorts.count, gateway.sessions.count]).toEqual([0, 0]);
    expect(gateway.calls.stats.of("rtp").refused).toBe(1);
  });
});
