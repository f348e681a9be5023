import { describe, expect, it } from "vitest";
import { ClientLimit, clientOf } from "../../../src/kit/client-limit.ts";

describe("ClientLimit", () => {
  it("bounds each client, and all together", () => {
    const limit = new ClientLimit({ maxTotal: 5, maxPerClient: 2 });
    const first = limit.acquire("192.0.2.1");
    expect([first, limit.acquire("192.0.2.1")]).not.toContain(null);
    expect(limit.acquire("192.0.2.1")).toBeNull();
    expect([
      limit.acquire("192.0.2.2"),
      limit.acquire("192.0.2.2"),
      limit.acquire("192.0.2.3"),
    ]).not.toContain(null);
    expect(limit.acquire("192.0.2.4")).toBeNull();
    first?.();
    // Once only, however often it is returned.
    first?.();
    expect(limit.acquire("192.0.2.1")).not.toBeNull();
    expect(limit.acquire("192.0.2.4")).toBeNull();
  });

  it("counts the addresses of one IPv6 network as one client", () => {
    const limit = new ClientLimit({ maxTotal: Number.POSITIVE_INFINITY, maxPerClient: 1 });
    expect(limit.acquire("2001:db8:1:2::1")).not.toBeNull();
    expect(limit.acquire("2001:db8:1:2:ffff::9")).toBeNull();
    expect(limit.acquire("2001:db8:1:3::1")).not.toBeNull();
  });
});

describe("clientOf", () => {
  it.each([
    ["192.0.2.7", "192.0.2.7"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["0000:0000:0000:0000:0000:ffff:c000:0207", "192.0.2.7"],
    ["2001:0db8:0000:0002:0000:0000:0000:0001", "2001:db8:0:2"],
    ["2001:db8:0:2::1", "2001:db8:0:2"],
    ["2001:db8::1:2:3:4:5", "2001:db8:0:1"],
    ["2001:db8::", "2001:db8:0:0"],
    ["fe80::1%eth0", "fe80:0:0:0"],
    ["::1", "0:0:0:0"],
    ["", ""],
    ["a socket's name", "a socket's name"],
  ])("%s is %s", (address, client) => {
    expect(clientOf(address)).toBe(client);
  });
});
