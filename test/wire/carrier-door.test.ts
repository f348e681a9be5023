/** Who may connect as a carrier, and in which subprotocol: all that is decided before the upgrade, and just behind it. */
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import WebSocket from "ws";
import { CARRIERS } from "../../src/protocol/carrier/carrier.ts";
import { twilioSignature } from "../../src/protocol/carrier/twilio-signature.ts";
import { startCarrierEdge } from "../unit/telephony/carrier-edge.ts";

interface Knocked {
  /** HTTP status where the upgrade was refused, else 101. */
  readonly status: number;
  readonly body: string;
  readonly socket: WebSocket;
}

/** Tries to connect; a socket that was let in is the caller's to close. */
async function knock(
  url: string,
  { headers = {}, protocols = [] }: { headers?: Record<string, string>; protocols?: string[] } = {},
): Promise<Knocked> {
  const socket = new WebSocket(url, protocols, { headers });
  return await new Promise<Knocked>((resolve, reject) => {
    socket.once("open", () => resolve({ status: 101, body: "", socket }));
    socket.once("unexpected-response", (_, response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(parts).toString(), socket }),
      );
    });
    socket.once("error", reject);
  });
}

async function statusOf(...args: Parameters<typeof knock>): Promise<number> {
  const { status, socket } = await knock(...args);
  socket.terminate();
  return status;
}

const basic = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;
const closing = (socket: WebSocket): Promise<unknown[]> => once(socket, "close");

/** Twilio's first message. `id`: one letter of its ids. */
const twilioStart = (id: string): string =>
  JSON.stringify({
    event: "start",
    sequenceNumber: "1",
    streamSid: `MZ${id.repeat(32)}`,
    start: {
      streamSid: `MZ${id.repeat(32)}`,
      callSid: `CA${id.repeat(32)}`,
      accountSid: `AC${"0".repeat(32)}`,
      tracks: ["inbound"],
      customParameters: {},
      mediaFormat: { encoding: "audio/x-mulaw", sampleRate: 8000, channels: 1 },
    },
  });

describe("a carrier at the door", () => {
  it("Twilio is let in by its signature for the public URL, and by nothing else", async () => {
    await using edge = await startCarrierEdge({
      twilioAuthToken: "12345",
      carrierToken: "other",
      publicUrl: "https://example.com/voice/",
    });
    const url = `${edge.wsUrl}/carrier/twilio`;
    const signed = (signature: string): { headers: Record<string, string> } => ({
      headers: { "x-twilio-signature": signature },
    });
    const right = twilioSignature("12345", "wss://example.com/voice/carrier/twilio");
    expect(await statusOf(url, signed(right))).toBe(101);
    for (const wrong of [
      twilioSignature("12346", "wss://example.com/voice/carrier/twilio"),
      twilioSignature("12345", "https://example.com/voice/carrier/twilio"),
      twilioSignature("12345", "wss://example.com/carrier/twilio"),
      right.toLowerCase(),
      "",
    ]) {
      const refused = await knock(url, signed(wrong));
      expect(refused.status).toBe(403);
      expect(JSON.parse(refused.body)).toMatchObject({ error: { code: "carrier_signature" } });
    }
    // The other carriers' token is no signature.
    expect(await statusOf(url, { headers: { authorization: "Bearer other" } })).toBe(403);
    expect(edge.sessions.count).toBe(0);
  });

  it("the others show the token in any of four ways", async () => {
    await using edge = await startCarrierEdge({ carrierToken: "s3cret" });
    const url = `${edge.wsUrl}/carrier/telnyx`;
    expect(await statusOf(url, { headers: { authorization: "Bearer s3cret" } })).toBe(101);
    expect(await statusOf(url, { headers: { authorization: basic("anyone:s3cret") } })).toBe(101);
    expect(await statusOf(url, { headers: { "x-telnyx-streaming-auth-token": "s3cret" } })).toBe(101);
    expect(await statusOf(`${url}?token=s3cret`)).toBe(101);
    for (const authorization of ["Bearer s3cre", "Bearer ", basic("s3cret:"), "s3cret", "Basic ???"]) {
      const refused = await knock(url, { headers: { authorization } });
      expect([refused.status, JSON.parse(refused.body)]).toMatchObject([
        401,
        { error: { code: "carrier_unauthorized", retryable: false } },
      ]);
      expect(refused.body).not.toContain("s3cret");
    }
    expect(await statusOf(url)).toBe(401);
    expect(await statusOf(`${edge.wsUrl}/carrier`)).toBe(401);
  });

  it("one that turns out to be Twilio at the common address has to be signed all the same", async () => {
    await using edge = await startCarrierEdge({
      twilioAuthToken: "12345",
      carrierToken: "telnyx=abc",
      publicUrl: "wss://example.com",
    });
    const url = `${edge.wsUrl}/carrier`;
    expect(await statusOf(url)).toBe(401);
    const unsigned = await knock(url, { headers: { authorization: "Bearer abc" } });
    const closed = closing(unsigned.socket);
    unsigned.socket.send(JSON.stringify({ event: "connected", protocol: "Call", version: "1.0.0" }));
    unsigned.socket.send(twilioStart("0"));
    const [code, reason] = await closed;
    expect([code, String(reason)]).toEqual([1008, "carrier_signature"]);
    expect(edge.sessions.count).toBe(0);

    const headers = { "x-twilio-signature": twilioSignature("12345", "wss://example.com/carrier") };
    const signed = await knock(url, { headers });
    signed.socket.send(twilioStart("0"));
    await expect.poll(() => edge.sessions.count).toBe(1);
    signed.socket.terminate();
    expect(await statusOf(url, { headers: { "x-twilio-signature": "no" } })).toBe(403);
  });

  it("Twilio's signature brings a call once: a replay is closed, another call is not", async () => {
    await using edge = await startCarrierEdge({ twilioAuthToken: "12345", publicUrl: "wss://example.com" });
    const headers = { "x-twilio-signature": twilioSignature("12345", "wss://example.com/carrier/twilio") };
    const call = async (id: string) => {
      const { socket } = await knock(`${edge.wsUrl}/carrier/twilio`, { headers });
      socket.send(twilioStart(id));
      return socket;
    };
    const first = await call("a");
    await expect.poll(() => edge.sessions.count).toBe(1);
    const [code, reason] = await closing(await call("a"));
    expect([code, String(reason)]).toEqual([1008, "carrier_signature"]);
    const other = await call("b");
    await expect.poll(() => edge.sessions.count).toBe(2);
    first.terminate();
    other.terminate();
  });

  it.each([
    ["twilio-auth-token", { twilioAuthToken: "12345", publicUrl: "wss://example.com" }, "twilio"],
    ["a token of Telnyx", { carrierToken: "telnyx=abc" }, "telnyx"],
  ])("%s alone denies every carrier that has no check", async (_, settings, checked) => {
    await using edge = await startCarrierEdge(settings);
    const forbidden = { error: { code: "forbidden" } };
    for (const carrier of CARRIERS.filter((name) => name !== checked)) {
      for (const headers of [{}, { authorization: "Bearer abc" }]) {
        const refused = await knock(`${edge.wsUrl}/carrier/${carrier}`, { headers });
        expect([carrier, refused.status, JSON.parse(refused.body)]).toMatchObject([carrier, 403, forbidden]);
      }
    }
    const common = await knock(`${edge.wsUrl}/carrier`);
    expect([401, 403]).toContain(common.status);
    const speech = await knock(`${edge.wsUrl}/carrier/jambonz/tts?voice=a`);
    expect([speech.status, JSON.parse(speech.body)]).toMatchObject([403, forbidden]);
    for (const [method, path] of [
      ["POST", "/carrier/jambonz/tts"],
      ["POST", "/carrier/rtp"],
      ["DELETE", "/carrier/rtp/x"],
      ["POST", "/carrier/audiosocket"],
    ] as const) {
      const answer = await fetch(`${edge.url}${path}`, { method, body: '{"session":"s"}' });
      expect([path, answer.status, await answer.json()]).toMatchObject([path, 403, forbidden]);
    }
    expect(edge.sessions.count).toBe(0);
  });

  it("a carrier's token is good for that carrier only, at the common address, too", async () => {
    await using edge = await startCarrierEdge({ carrierToken: "telnyx=abc,plivo=def,rtp=ghi" });
    const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
    expect(await statusOf(`${edge.wsUrl}/carrier/telnyx`, bearer("abc"))).toBe(101);
    expect(await statusOf(`${edge.wsUrl}/carrier/telnyx`, bearer("def"))).toBe(401);
    expect(await statusOf(`${edge.wsUrl}/carrier/plivo`, bearer("def"))).toBe(101);
    expect(await statusOf(`${edge.wsUrl}/carrier`, bearer("ghi"))).toBe(401);
    const { socket } = await knock(`${edge.wsUrl}/carrier`, bearer("abc"));
    const closed = closing(socket);
    socket.send(twilioStart("0"));
    const [code, reason] = await closed;
    expect([code, String(reason)]).toEqual([4403, "forbidden"]);
    expect(edge.sessions.count).toBe(0);
    const body = JSON.stringify({ session: "s" });
    const rtp = (token: string) =>
      fetch(`${edge.url}/carrier/rtp`, { method: "POST", body, ...bearer(token) });
    expect([(await rtp("abc")).status, (await rtp("ghi")).status]).toEqual([401, 201]);
  });

  it("carriers that are not named are not served", async () => {
    await using edge = await startCarrierEdge({ carriers: "telnyx" });
    expect(await statusOf(`${edge.wsUrl}/carrier/telnyx`)).toBe(101);
    expect(await statusOf(`${edge.wsUrl}/carrier/vonage`)).toBe(403);
    expect((await fetch(`${edge.url}/carrier/rtp`, { method: "POST", body: "{}" })).status).toBe(403);
  });

  it("strangers hear neither how full the gateway is nor which carriers there are", async () => {
    await using edge = await startCarrierEdge({ carrierToken: "s3cret", maxCalls: 0 });
    const headers = { authorization: "Bearer s3cret" };
    expect(await statusOf(`${edge.wsUrl}/carrier/telnyx`)).toBe(401);
    expect(await statusOf(`${edge.wsUrl}/carrier/telnyx`, { headers })).toBe(503);
    expect(await statusOf(`${edge.wsUrl}/carrier/pigeon`)).toBe(401);
    expect(await statusOf(`${edge.wsUrl}/carrier/pigeon`, { headers })).toBe(404);
  });

  it("no more than max-calls are let in, whether their call has begun or not", async () => {
    await using edge = await startCarrierEdge({ maxCalls: 2 });
    const url = `${edge.wsUrl}/carrier/twilio`;
    const open = [await knock(url), await knock(url)];
    const refused = await knock(url);
    expect([refused.status, JSON.parse(refused.body)]).toMatchObject([
      503,
      { error: { code: "listener_limit" } },
    ]);
    open[0]?.socket.terminate();
    await expect.poll(() => statusOf(url)).toBe(101);
    open[1]?.socket.terminate();
  });

  it("jambonz's speech sockets are bounded by max-calls, and not by the calls that they speak for", async () => {
    await using edge = await startCarrierEdge({ maxCalls: 1 });
    const url = `${edge.wsUrl}/carrier/jambonz/tts?voice=21m00Tcm4TlvDq8ikWAM`;
    const speech = await knock(url);
    expect(speech.status).toBe(101);
    const second = await knock(url);
    expect([second.status, JSON.parse(second.body)]).toMatchObject([
      503,
      { error: { code: "listener_limit", message: expect.stringContaining("1 speech sockets") } },
    ]);
    // It is not counted as a call.
    const call = await knock(`${edge.wsUrl}/carrier/jambonz`);
    expect(call.status).toBe(101);
    const closed = closing(speech.socket);
    speech.socket.terminate();
    await closed;
    await expect.poll(() => statusOf(url)).toBe(101);
    call.socket.terminate();
  });

  it.each(["/carrier/jambonz", "/carrier/jambonz/tts?voice=21m00Tcm4TlvDq8ikWAM"])(
    "%s: max-calls 0 takes nobody, and neither does a gateway that drains",
    async (path) => {
      await using none = await startCarrierEdge({ maxCalls: 0 });
      const full = await knock(none.wsUrl + path);
      expect([full.status, JSON.parse(full.body)]).toMatchObject([
        503,
        { error: { code: "listener_limit", retry_after_ms: 5000 } },
      ]);
      await using draining = await startCarrierEdge();
      expect(await statusOf(draining.wsUrl + path)).toBe(101);
      await draining.sessions.drain(0);
      const late = await knock(draining.wsUrl + path);
      expect([late.status, JSON.parse(late.body)]).toMatchObject([503, { error: { code: "draining" } }]);
    },
  );

  it("an unknown carrier is 404", async () => {
    await using edge = await startCarrierEdge();
    expect(await statusOf(`${edge.wsUrl}/carrier/pigeon`)).toBe(404);
    expect((await fetch(`${edge.url}/carrier/twilio`)).status).toBe(404);
  });

  it.each([
    ["/carrier/asterisk", ["media"], "media"],
    ["/carrier/jambonz", ["audio.jambonz.org"], "audio.jambonz.org"],
    ["/carrier/jambonz", ["audio.drachtio.org"], "audio.drachtio.org"],
    ["/carrier", ["media"], "media"],
    ["/carrier", ["chat", "audio.jambonz.org"], "audio.jambonz.org"],
    ["/carrier/asterisk", [], ""],
    ["/carrier/twilio", [], ""],
  ])("%s offered %j answers %j", async (path, protocols, expected) => {
    await using edge = await startCarrierEdge();
    const { status, socket } = await knock(`${edge.wsUrl}${path}`, { protocols });
    expect([status, socket.protocol]).toEqual([101, expected]);
    socket.terminate();
  });

  it.each([
    ["no JSON", "/carrier/twilio", "{"],
    ["media before start", "/carrier/twilio", '{"event":"media","media":{"payload":"AAAA"}}'],
    ["a binary message where text is due", "/carrier/twilio", Buffer.from([1, 2, 3])],
    ["a message of no carrier", "/carrier", '{"event":"hello"}'],
    ["a message of more than 1 MB", "/carrier/twilio", `{"event":"${"x".repeat(1_100_000)}"}`],
  ])("%s is answered with 1008", async (_, path, message) => {
    await using edge = await startCarrierEdge();
    const { socket } = await knock(`${edge.wsUrl}${path}`);
    const closed = closing(socket);
    socket.send(message);
    const [code, reason] = await closed;
    expect([code, String(reason)]).toEqual([1008, "carrier_protocol"]);
    expect(edge.sessions.count).toBe(0);
  });

  it("the metrics count calls beside the rest", async () => {
    await using edge = await startCarrierEdge();
    const { socket } = await knock(`${edge.wsUrl}/carrier/vonage`);
    const before = await (await fetch(`${edge.opsUrl}/metrics`)).text();
    expect(before).toContain("other_total 1\n");
    expect(before).toContain('voicewire_calls{carrier="unknown"} 1\n');
    socket.terminate();
    await expect
      .poll(async () => (await fetch(`${edge.opsUrl}/metrics`)).text())
      .toContain('voicewire_calls{carrier="unknown"} 0\n');
  });
});
