import type { LookupAddress } from "node:dns";
import { describe, expect, it } from "vitest";
import {
  checkedLookup,
  hostOf,
  isPublicAddress,
  parseTarget,
  TargetRefused,
} from "../../../../src/service/webhooks/target.ts";

const parse = (url: string) => parseTarget(url, { allowPrivate: false });

describe("the URL of a webhook", () => {
  it.each([
    "https://example.com/hook",
    "https://example.com:8443/hook?token=a#b",
    "https://xn--bcher-kva.example/",
    "https://bücher.example/",
    "https://8.8.8.8/",
    "https://[2606:4700:4700::1111]/",
    "https://localhost.example.com/",
    "https://mylocalhost.com/",
  ])("may be %s", (url) => {
    expect(parse(url).protocol).toBe("https:");
  });

  it.each([
    ["plain HTTP", "http://example.com/"],
    ["another scheme", "ftp://example.com/"],
    ["a file", "file:///etc/passwd"],
    ["script", "javascript:alert(1)"],
    ["no URL", "example.com/hook"],
    ["nothing", ""],
    ["no host", "https://"],
    ["a user", "https://user@example.com/"],
    ["a password", "https://:secret@example.com/"],
    ["a URL without end", `https://example.com/${"a".repeat(2048)}`],
    ["localhost", "https://localhost/"],
    ["localhost, in capitals and with a dot", "https://LOCALHOST.:8443/"],
    ["a name below localhost", "https://a.localhost/"],
    ["localhost in other letters", "https://ⓛocalhost/"],
    ["a metadata name", "https://metadata.google.internal/computeMetadata/v1/"],
    ["a printer", "https://printer.local/"],
    ["dotted IPv4", "https://127.0.0.1/"],
    ["dotted IPv4 with a dot behind", "https://127.0.0.1./"],
    ["short IPv4", "https://127.1/"],
    ["decimal IPv4", "https://2130706433/"],
    ["hex IPv4", "https://0x7f000001/"],
    ["hex IPv4 in parts", "https://0x7f.0.0.0x1/"],
    ["octal IPv4", "https://0177.0.0.1/"],
    ["full-width IPv4", "https://１２７.0.0.1/"],
    ["percent-encoded IPv4", "https://%31%32%37.0.0.1/"],
    ["zero", "https://0/"],
    ["metadata", "https://169.254.169.254/latest/meta-data/"],
    ["metadata in decimal", "https://2852039166/"],
    ["IPv6 loopback", "https://[::1]/"],
    ["IPv6 loopback, long", "https://[0:0:0:0:0:0:0:1]/"],
    ["IPv6-mapped", "https://[::ffff:127.0.0.1]/"],
    ["IPv6-mapped in hex", "https://[::ffff:7f00:1]/"],
    ["IPv6-mapped private", "https://[::ffff:10.0.0.1]/"],
    ["NAT64", "https://[64:ff9b::7f00:1]/"],
    ["6to4", "https://[2002:7f00:1::]/"],
    ["IPv4-compatible", "https://[::7f00:1]/"],
    ["ULA metadata", "https://[fd00:ec2::254]/"],
  ])("can't be %s", (_what, url) => {
    expect(() => parse(url)).toThrow(TargetRefused);
  });

  it("may be private and plain where that is allowed, but never hold credentials or another scheme", () => {
    const parsePrivate = (url: string) => parseTarget(url, { allowPrivate: true });
    expect(hostOf(parsePrivate("http://[::1]:8080/"))).toBe("::1");
    expect(hostOf(parsePrivate("https://localhost/"))).toBe("localhost");
    expect(() => parsePrivate("http://a:b@localhost/")).toThrow(TargetRefused);
    expect(() => parsePrivate("ftp://localhost/")).toThrow(TargetRefused);
  });

  it("is not repeated when it is refused", () => {
    expect(() => parse("https://user:hunter2@example.com/")).not.toThrow(/hunter2/);
  });
});

describe("addresses", () => {
  it.each([
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:192.168.0.1",
    "64:ff9b::808:808",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:808:808::1",
    "3fff::1",
    "fc00::1",
    "fdff::1",
    "fe80::1",
    "fe80::1%lo",
    "fec0::1",
    "ff02::1",
    "example.com",
    "",
  ])("%s is not an address of the public internet", (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  it.each([
    "1.1.1.1",
    "8.8.8.8",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "223.255.255.255",
    "::ffff:8.8.8.8",
    "2606:4700:4700::1111",
    "2a00:1450:4001:800::200e",
  ])("%s is one of it", (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });
});

describe("lookups", () => {
  /** What a connection would get. */
  function look(addresses: readonly string[] | Error, { allowPrivate = false, all = true } = {}) {
    const found = async (): Promise<LookupAddress[]> => {
      if (addresses instanceof Error) throw addresses;
      return addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    };
    return new Promise<unknown>((resolve, reject) => {
      checkedLookup(allowPrivate, found)("name", { all }, (error, address) =>
        error === null ? resolve(address) : reject(error),
      );
    });
  }

  it("give the addresses that were looked at", async () => {
    expect(await look(["8.8.8.8", "2606:4700::1"])).toEqual([
      { address: "8.8.8.8", family: 4 },
      { address: "2606:4700::1", family: 6 },
    ]);
    expect(await look(["8.8.8.8", "1.1.1.1"], { all: false })).toBe("8.8.8.8");
  });

  it("refuse a name that has a private address, also as the last of several", async () => {
    await expect(look(["127.0.0.1"])).rejects.toThrow(TargetRefused);
    await expect(look(["8.8.8.8", "::1"])).rejects.toThrow(TargetRefused);
    await expect(look(["8.8.8.8", "10.0.0.1"], { all: false })).rejects.toThrow(TargetRefused);
    expect(await look(["127.0.0.1"], { allowPrivate: true, all: false })).toBe("127.0.0.1");
  });

  it("fail as the resolver does, and for a name without addresses", async () => {
    await expect(look(new Error("ENOTFOUND"))).rejects.toThrow("ENOTFOUND");
    await expect(look([])).rejects.toThrow(/no address/);
  });
});
