/**
 * Whom the gateway takes a request to be from, by what counts the clients: with one upload at a time allowed, a second one of
 * the same client is refused.
 */
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import type { Config } from "../../src/config.ts";
import { TestKeys } from "../helpers/key-file.ts";
import { vendor } from "../helpers/scripted-vendor.ts";
import { gatewayAt } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { proxyHeader } from "../kit/proxy-header.ts";

interface Sent {
  /** Address that the connection comes from. */
  readonly from?: string;
  readonly forwardedFor?: readonly string[];
  /** Client in a header of the PROXY protocol. */
  readonly proxied?: string;
}

/** Whether the second upload counts as the first one's client. */
async function areOneClient(settings: Partial<Config>, first: Sent, second: Sent): Promise<boolean> {
  let uploads = 0;
  let refused = false;
  await using upstream = await vendor((req) => {
    req.on("error", () => undefined).resume();
    uploads += 1;
  });
  await using gateway = await gatewayAt(upstream.url, { maxUploadsPerClient: 1, ...settings });
  const begin = ({ from = "127.0.0.1", forwardedFor = [], proxied }: Sent) => {
    const socket = connect({ port: gateway.port, host: "127.0.0.1", localAddress: from });
    socket.on("error", () => undefined);
    if (proxied !== undefined) socket.write(proxyHeader(proxied));
    const forwarded = forwardedFor.map((value) => `x-forwarded-for: ${value}\r\n`).join("");
    socket.write(
      `POST /v1/voices/add HTTP/1.1\r\nhost: 127.0.0.1\r\n${forwarded}` +
        "content-type: multipart/form-data; boundary=xyz\r\ncontent-length: 100\r\n\r\n--xyz",
    );
    return socket;
  };
  const one = begin(first);
  await until("the first upload", () => uploads === 1);
  const two = begin(second);
  two.on("data", (data: Buffer) => {
    refused = data.toString("latin1").includes("upload_limit");
  });
  await until("the second upload, or its refusal", () => uploads === 2 || refused);
  for (const socket of [one, two]) socket.destroy();
  return refused;
}

const ONE = { forwardedFor: ["192.0.2.1"] };
const OTHER = { forwardedFor: ["192.0.2.2"] };

describe("the client's address", () => {
  it("X-Forwarded-For is a stranger's own word, and does not make two clients of one", async () => {
    expect(await areOneClient({}, ONE, OTHER)).toBe(true);
    expect(await areOneClient({ trustedProxies: "127.0.0.9" }, ONE, OTHER)).toBe(true);
  });

  it("X-Forwarded-For of a listed proxy says who the clients are", async () => {
    const trusted = { trustedProxies: "127.0.0.0/8" };
    expect(await areOneClient(trusted, ONE, OTHER)).toBe(false);
    expect(await areOneClient(trusted, ONE, { ...ONE, from: "127.0.0.2" })).toBe(true);
  });

  it("a client's own header in front of the proxy's does not count", async () => {
    const lies = [
      ["1.1.1.1", "192.0.2.1"],
      ["2.2.2.2", "192.0.2.1"],
    ].map((forwardedFor) => ({ forwardedFor }));
    const [first = {}, second = {}] = lies;
    expect(await areOneClient({ trustedProxies: "127.0.0.1" }, first, second)).toBe(true);
  });

  it("a header of the PROXY protocol counts where it is turned on, from a listed proxy", async () => {
    const [one, other] = [{ proxied: "192.0.2.1" }, { proxied: "192.0.2.2" }];
    expect(await areOneClient({}, one, other)).toBe(true);
    expect(await areOneClient({ trustedProxies: "127.0.0.1" }, one, other)).toBe(true);
    const on = { trustedProxies: "127.0.0.1", proxyProtocol: true };
    expect(await areOneClient(on, one, other)).toBe(false);
    expect(await areOneClient(on, one, one)).toBe(true);
    const [stranger, strangerAgain] = [one, other].map((sent) => ({ ...sent, from: "127.0.0.2" }));
    expect(await areOneClient(on, stranger ?? {}, strangerAgain ?? {})).toBe(true);
  });
});

describe("the audit log", () => {
  it.each([
    ["the client behind a listed proxy", "127.0.0.1", "192.0.2.1"],
    ["the other end of the connection where it is no listed proxy", "", "127.0.0.1"],
  ])("names %s", async (_name, trustedProxies, expected) => {
    const addresses: unknown[] = [];
    const auditLog = {
      ...watchedLog,
      warn: (fields: object) => void addresses.push((fields as { address?: unknown }).address),
    };
    using keys = new TestKeys();
    await using upstream = await vendor((_req, res) => res.end());
    await using gateway = await gatewayAt(
      upstream.url,
      { keysFile: keys.path, trustedProxies },
      { auditLog },
    );
    const headers = { "x-forwarded-for": "192.0.2.1" };
    expect((await fetch(`${gateway.url}/v1/voices`, { headers })).status).toBe(401);
    expect(addresses).toEqual([expected]);
  });
});
