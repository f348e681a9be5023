/** Which addresses RTP may be sent to, with the machine's own addresses made up. */
import type { NetworkInterfaceInfo } from "node:os";
import { describe, expect, it } from "vitest";
import { PeerRule, readPeerList } from "../../../src/server/carriers/rtp-networks.ts";

function own(cidr: string): NetworkInterfaceInfo {
  const [address = ""] = cidr.split("/");
  const shared = { address, cidr, mac: "00:00:00:00:00:00", internal: /^127\.|^::1$/.test(address) };
  return address.includes(":")
    ? { ...shared, family: "IPv6", netmask: "", scopeid: 0 }
    : { ...shared, family: "IPv4", netmask: "" };
}

const LOOPBACK = [own("127.0.0.1/8"), own("::1/128")];
const MACHINE = [
  ...LOOPBACK,
  own("192.168.7.20/24"),
  own("203.0.113.20/24"),
  own("fd12:3456::20/64"),
  own("2001:db8::20/64"),
  own("fe80::1/64"),
];

function rule(over: { list?: string; host?: string; own?: readonly NetworkInterfaceInfo[] } = {}): PeerRule {
  const { list = "private", host = "0.0.0.0", own: addresses = MACHINE } = over;
  return new PeerRule({ list: readPeerList(list), host, own: addresses });
}

const EVERYBODY = "0.0.0.0/0,::/0,private";

describe("an address that no packet may go to, whatever the setting allows", () => {
  it.each([
    ["224.0.0.1", "a multicast address"],
    ["239.255.255.250", "a multicast address"],
    ["ff02::1", "a multicast address"],
    ["::ffff:224.0.0.1", "a multicast address"],
    ["255.255.255.255", "a broadcast address"],
    ["::ffff:255.255.255.255", "a broadcast address"],
    ["192.168.7.255", "a broadcast address of this machine's networks"],
    ["192.168.7.0", "a broadcast address of this machine's networks"],
    ["203.0.113.255", "a broadcast address of this machine's networks"],
    ["::ffff:192.168.7.255", "a broadcast address of this machine's networks"],
    ["0.0.0.0", "the unspecified address"],
    ["0.1.2.3", "the unspecified address"],
    ["::", "the unspecified address"],
    ["::ffff:0.0.0.0", "the unspecified address"],
    ["169.254.169.254", "a link-local address"],
    ["fe80::99", "a link-local address"],
    ["fe80::99%eth0", "a link-local address"],
    ["::ffff:a9fe:a9fe", "a link-local address"],
    ["127.0.0.1", "a loopback address"],
    ["127.8.9.10", "a loopback address"],
    ["::1", "a loopback address"],
    ["::ffff:7f00:1", "a loopback address"],
  ])("%s: %s", (address, what) => {
    expect(rule({ list: EVERYBODY }).refusal(address)).toContain(`is ${what}`);
  });

  it("a network of two addresses has no broadcast address", () => {
    const pair = [own("10.9.9.8/31")];
    expect(rule({ own: pair }).refusal("10.9.9.9")).toBeNull();
  });
});

describe("a loopback address", () => {
  it.each(["127.0.0.1", "127.0.0.9", "localhost", "::1", "::ffff:127.0.0.1"])(
    "is a peer where the host is %s",
    (host) => {
      expect([rule({ host }).refusal("127.0.0.1"), rule({ host }).refusal("::1")]).toEqual([null, null]);
    },
  );

  it("is refused where the list leaves it out, and the broadcast address of its network always", () => {
    expect(rule({ host: "127.0.0.1", list: "10.0.0.0/8" }).refusal("127.0.0.1")).toContain("rtp-peers");
    expect(rule({ host: "127.0.0.1" }).refusal("127.255.255.255")).toContain("broadcast");
  });

  it("is refused elsewhere, and the error says what to do", () => {
    expect(rule().refusal("127.0.0.1")).toBe(
      "127.0.0.1 is a loopback address, allowed only where the setting host is one; expected the peer's address in its network",
    );
  });
});

describe("rtp-peers", () => {
  it.each([
    ["192.168.7.99", null],
    ["::ffff:192.168.7.99", null],
    ["fd12:3456::99", null],
    ["192.168.8.99", "outside"],
    ["10.0.0.1", "outside"],
    ["203.0.113.99", "outside"],
    ["fd12:3456:0:1::99", "outside"],
    ["2001:db8::99", "outside"],
    ["64:ff9b::c0a8:763", "outside"],
  ])("private: the networks of this machine that are private, %s: %s", (address, expected) => {
    const reason = rule().refusal(address);
    if (expected === null) expect(reason).toBeNull();
    else
      expect(reason).toBe(
        `${address} is outside the networks of the setting rtp-peers; expected one inside, or add it to rtp-peers`,
      );
  });

  it("private: a network that reaches beyond the private range allows its private part only", () => {
    const wide = rule({ own: [own("172.16.0.5/8")] });
    expect(wide.refusal("172.31.0.9")).toBeNull();
    expect(wide.refusal("172.32.0.9")).toContain("outside");
  });

  it("is a list of networks and addresses, with blanks or without", () => {
    const listed = rule({ list: "198.51.100.0/24, 192.0.2.7,2001:db8:1::/48" });
    for (const inside of ["198.51.100.9", "192.0.2.7", "::ffff:192.0.2.7", "2001:db8:1:2::3"])
      expect(listed.refusal(inside)).toBeNull();
    for (const outside of ["198.51.101.9", "192.0.2.8", "2001:db8:2::3", "192.168.7.99"])
      expect(listed.refusal(outside)).toContain("outside");
    expect(rule({ list: "private,192.0.2.7" }).refusal("192.168.7.99")).toBeNull();
  });

  it("none is nobody", () => {
    expect(readPeerList("none").isNobody).toBe(true);
    expect(rule({ list: "none" }).refusal("192.168.7.99")).toContain("outside");
  });

  it.each([
    "",
    "privat",
    "10.0.0.0/33",
    "2001:db8::/129",
    "10.0.0/8",
    "example.com",
    "10.0.0.0/8;10.1.0.0",
    "none,private",
  ])("refuses %j at the start", (text) => {
    expect(() => readPeerList(text)).toThrow(
      expect.objectContaining({ code: "invalid_config", field: "rtp-peers" }),
    );
  });
});

describe("whether a peer can reach this machine at one address only", () => {
  const onlyOne = [...LOOPBACK, own("192.168.7.20/24"), own("fe80::1/64"), own("fd12:3456::20/64")];
  it.each([
    ["bound to one address", "192.168.7.20", MACHINE, "192.168.7.99", true],
    ["bound to all of one", "0.0.0.0", onlyOne, "192.168.7.99", true],
    ["bound to all of several", "0.0.0.0", MACHINE, "192.168.7.99", false],
    ["an IPv6 peer, one such address", "::", onlyOne, "fd12:3456::99", true],
    ["an IPv6 peer, several", "::", MACHINE, "fd12:3456::99", false],
    ["an IPv4 peer of an IPv6 port", "::", onlyOne, "::ffff:192.168.7.99", true],
  ])("%s", (_, host, addresses, peer, expected) => {
    expect(rule({ host, own: addresses }).hasOneOwnAddress(peer)).toBe(expected);
  });
});
