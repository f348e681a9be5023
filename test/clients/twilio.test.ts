/** Twilio's own package signs, and the gateway checks; the gateway's rule signs, and Twilio's package checks. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import WebSocket from "ws";
import { twilioSignature } from "../../src/protocol/carrier/twilio-signature.ts";
import { type FakeUpstream, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, type TestGateway } from "../helpers/start-gateway.ts";
import { areInstalled, IF_INSTALLED, load } from "./installed.ts";

interface Twilio {
  getExpectedTwilioSignature(authToken: string, url: string, params: object): string;
  validateRequest(authToken: string, signature: string, url: string, params: object): boolean;
}

const AUTH_TOKEN = "0123456789abcdef0123456789abcdef";
const ORIGIN = "wss://voice.example.com/edge";
const PATHS = [
  "/carrier/twilio",
  "/carrier/twilio?session=call-17",
  "/carrier/twilio?session=call-17&text=It%27s%20here%2C%20Z%C3%BCrich%21&empty=&flag",
  "/carrier/twilio?b=2&a=1&a=0",
  "/carrier?session=any",
] as const;

/** The status of an upgrade: 101 where it was let in. */
async function statusOf(url: string, signature: string): Promise<number> {
  const socket = new WebSocket(url, { headers: { "x-twilio-signature": signature } });
  socket.on("error", () => undefined);
  try {
    return await new Promise<number>((resolve) => {
      socket.once("open", () => resolve(101));
      socket.once("unexpected-response", (_, { statusCode }) => resolve(statusCode ?? 0));
    });
  } finally {
    socket.terminate();
  }
}

describe.skipIf(!areInstalled("twilio"))(`twilio ${IF_INSTALLED}`, () => {
  let twilio: Twilio;
  let upstream: FakeUpstream;
  let gateway: TestGateway;

  beforeAll(async () => {
    twilio = load<Twilio>("twilio");
    upstream = await startFakeUpstream();
    gateway = await gatewayAt(upstream.url, { twilioAuthToken: AUTH_TOKEN, publicUrl: ORIGIN });
  });
  afterAll(async () => {
    await gateway?.close();
    await upstream?.close();
  });

  const signed = (url: string, token = AUTH_TOKEN): string =>
    twilio.getExpectedTwilioSignature(token, url, {});

  it.each(PATHS)("its signature for %s opens the socket", async (path) => {
    const signature = signed(ORIGIN + path);
    expect(await statusOf(gateway.wsUrl + path, signature)).toBe(101);
    const withPort = signed(ORIGIN.replace(".com", ".com:443") + path);
    expect(await statusOf(gateway.wsUrl + path, withPort)).toBe(101);
  });

  it.each(PATHS)("its signature for anything but %s does not", async (path) => {
    const url = ORIGIN + path;
    const { pathname, search } = new URL(url);
    for (const [why, wrong] of [
      ["another token", signed(url, AUTH_TOKEN.replace("0", "1"))],
      ["another scheme", signed(url.replace("wss", "https"))],
      ["another host", signed(url.replace("voice", "video"))],
      ["another path", signed(`${ORIGIN.replace("/edge", "")}${pathname.replace("/edge", "")}${search}`)],
      ["another query", signed(`${url}${search === "" ? "?" : "&"}x=1`)],
      ["another case", signed(url).toUpperCase()],
    ] as const) {
      expect([why, await statusOf(gateway.wsUrl + path, wrong)]).toEqual([why, 403]);
      expect([why, twilio.validateRequest(AUTH_TOKEN, wrong, url, {})]).toEqual([why, false]);
    }
  });

  it("a query that is changed on the way is refused", async () => {
    const signature = signed(`${ORIGIN}/carrier/twilio?session=call-17`);
    for (const query of ["?session=call-18", "?session=call-17&x=1", "?Session=call-17", ""])
      expect(await statusOf(`${gateway.wsUrl}/carrier/twilio${query}`, signature)).toBe(403);
  });

  it.each(PATHS)("it takes what is signed by our rule for %s", (path) => {
    const url = ORIGIN + path;
    expect(twilio.validateRequest(AUTH_TOKEN, twilioSignature(AUTH_TOKEN, url), url, {})).toBe(true);
  });
});
