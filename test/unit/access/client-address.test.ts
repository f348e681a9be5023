/** Whose word about a client's address counts: src/access/client-address.ts. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { clientAddress, readProxyTrust } from "../../../src/access/client-address.ts";

interface Request {
  readonly peer: string;
  readonly forwarded?: string;
  readonly proxied?: string;
}

function addressFor(
  { peer, forwarded = "", proxied = "" }: Request,
  settings: { readonly trustedProxies?: string; readonly proxyProtocol?: boolean } = {},
): string {
  const trust = readProxyTrust({ trustedProxies: "", proxyProtocol: false, ...settings });
  return clientAddress({ peer, proxied: () => proxied, forwardedFor: () => forwarded }, trust);
}

const TRUSTED = { trustedProxies: "10.0.0.0/8, 2001:db8:1::/48,127.0.0.1" };

describe("X-Forwarded-For", () => {
  it("counts for nothing where no proxy is trusted", () => {
    expect(addressFor({ peer: "127.0.0.1", forwarded: "1.1.1.1" })).toBe("127.0.0.1");
  });

  it.each([
    ["counts for nothing from a stranger", { peer: "192.0.2.9", forwarded: "1.1.1.1" }, "192.0.2.9"],
    ["says whom a trusted proxy serves", { peer: "10.1.2.3", forwarded: "1.1.1.1" }, "1.1.1.1"],
    [
      "is read from the right: what the client wrote is further left",
      { peer: "10.1.2.3", forwarded: "6.6.6.6, 1.1.1.1" },
      "1.1.1.1",
    ],
    [
      "is followed through several trusted proxies",
      { peer: "127.0.0.1", forwarded: "6.6.6.6,1.1.1.1 ,10.9.9.9, 10.1.1.1" },
      "1.1.1.1",
    ],
    ["may hold trusted proxies alone", { peer: "127.0.0.1", forwarded: "10.9.9.9" }, "10.9.9.9"],
    ["may be missing", { peer: "10.1.2.3" }, "10.1.2.3"],
    ["may end with a port", { peer: "10.1.2.3", forwarded: "1.1.1.1:5060" }, "1.1.1.1"],
    ["may have an IPv6 address", { peer: "2001:db8:1::7", forwarded: "2001:DB8:0:0::7" }, "2001:db8::7"],
    ["may have brackets and a port", { peer: "10.1.2.3", forwarded: "[2001:db8::7]:443" }, "2001:db8::7"],
    [
      "of an IPv4 proxy that is written as IPv6",
      { peer: "::ffff:10.1.2.3", forwarded: "1.1.1.1" },
      "1.1.1.1",
    ],
    ["names an IPv4 client as itself", { peer: "10.1.2.3", forwarded: "::ffff:1.1.1.1" }, "1.1.1.1"],
    ["a word ends it", { peer: "10.1.2.3", forwarded: "1.1.1.1, unknown" }, "10.1.2.3"],
    ["an empty entry ends it", { peer: "10.1.2.3", forwarded: "1.1.1.1," }, "10.1.2.3"],
    ["a link-local zone ends it", { peer: "10.1.2.3", forwarded: "fe80::1%eth0" }, "10.1.2.3"],
    ["half an address ends it", { peer: "10.1.2.3", forwarded: "1.1.1" }, "10.1.2.3"],
  ])("%s", (_name, request, expected) => {
    expect(addressFor(request, TRUSTED)).toBe(expected);
  });

  it("whatever a client puts in front of it, the address that the proxy saw is the one", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 300 }), fc.ipV4(), (lie, seen) => {
        fc.pre(!seen.startsWith("10.") && seen !== "127.0.0.1");
        expect(addressFor({ peer: "10.1.2.3", forwarded: `${lie}, ${seen}` }, TRUSTED)).toBe(seen);
      }),
    );
  });
});

describe("the PROXY protocol", () => {
  const on = { ...TRUSTED, proxyProtocol: true };

  it("counts for nothing until it is turned on, though the server reads it", () => {
    expect(addressFor({ peer: "10.1.2.3", proxied: "1.1.1.1" }, TRUSTED)).toBe("10.1.2.3");
  });

  it("says whom a trusted proxy serves, and counts for nothing from a stranger", () => {
    expect(addressFor({ peer: "10.1.2.3", proxied: "1.1.1.1" }, on)).toBe("1.1.1.1");
    expect(addressFor({ peer: "192.0.2.9", proxied: "1.1.1.1" }, on)).toBe("192.0.2.9");
    expect(addressFor({ peer: "10.1.2.3", proxied: "0000:0000:0000:0000:0000:ffff:0101:0101" }, on)).toBe(
      "1.1.1.1",
    );
  });

  it("a client behind it can't go on with a header of its own, a trusted proxy can", () => {
    const forwarded = "2.2.2.2";
    expect(addressFor({ peer: "10.1.2.3", proxied: "1.1.1.1", forwarded }, on)).toBe("1.1.1.1");
    expect(addressFor({ peer: "10.1.2.3", proxied: "10.5.5.5", forwarded }, on)).toBe("2.2.2.2");
  });

  it("a check of the proxy's own, which has no client, is the proxy's", () => {
    expect(addressFor({ peer: "10.1.2.3", proxied: "" }, on)).toBe("10.1.2.3");
  });
});

describe("readProxyTrust", () => {
  it.each(["10.0.0.0/33", "proxy.lan", "10.0.0.0/8;10.1.1.1", "*"])("refuses %s", (trustedProxies) => {
    expect(() => readProxyTrust({ trustedProxies, proxyProtocol: false })).toThrow(
      expect.objectContaining({ code: "invalid_config", field: "trusted-proxies" }),
    );
  });

  it("refuses the PROXY protocol where nobody may speak it", () => {
    expect(() => readProxyTrust({ trustedProxies: " ", proxyProtocol: true })).toThrow(
      expect.objectContaining({ code: "invalid_config", field: "proxy-protocol" }),
    );
  });
});
