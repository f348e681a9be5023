/** Which requests are taken by the Host and Origin that they name: src/access/origin-rules.ts. */
import { describe, expect, it } from "vitest";
import { isLoopback, OriginRules, type OriginRulesOptions } from "../../../src/access/origin-rules.ts";

function answer(
  over: Partial<{
    method: string;
    host: string;
    origin: string;
    fetchSite: string;
    fetchMode: string;
  }>,
  options: Partial<OriginRulesOptions> = {},
): string | null {
  const rules = new OriginRules({ host: "127.0.0.1", ...options });
  const source = {
    method: "post",
    host: "127.0.0.1:8080",
    origin: "",
    fetchSite: "",
    fetchMode: "",
    ...over,
  };
  try {
    return rules.check(source) ?? "no page";
  } catch (thrown) {
    return (thrown as { code: string }).code;
  }
}

describe("OriginRules: Host", () => {
  it.each([
    "localhost",
    "LocalHost:8080",
    "localhost.",
    "127.0.0.1",
    "127.8.9.1:80",
    "[::1]",
    "[::1]:8080",
    "[0:0:0:0:0:0:0:1]:1",
  ])("takes %s on a loopback address", (host) => {
    expect(answer({ host })).toBe("no page");
  });

  it.each([
    "",
    "evil.example",
    "evil.example:8080",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "192.0.2.7",
    "[2001:db8::1]",
    "localhost:8080:80",
    "localhost/",
    "localhost@evil.example",
    "[::1",
    "::1",
    "localhost:port",
    "a".repeat(10_000),
  ])("refuses %j on a loopback address", (host) => {
    expect(answer({ host })).toBe("host_not_allowed");
  });

  it("takes the host of public-url, the bound address and what allowed-hosts lists", () => {
    const options = {
      host: "192.0.2.7",
      publicUrl: "wss://Voice.example.com/calls",
      allowedHosts: "gateway.lan, 2001:db8::7",
    };
    for (const host of ["voice.example.com", "192.0.2.7:8080", "GATEWAY.lan.", "[2001:db8::7]:443"]) {
      expect(answer({ host }, options), host).toBe("no page");
    }
    for (const host of ["example.com", "a.voice.example.com", "192.0.2.8"]) {
      expect(answer({ host }, options), host).toBe("host_not_allowed");
    }
  });

  it("takes any address, and no name, where every interface is listened on", () => {
    for (const host of ["0.0.0.0", "::"]) {
      expect(answer({ host: "198.51.100.7:8080" }, { host })).toBe("no page");
      expect(answer({ host: "evil.example" }, { host })).toBe("host_not_allowed");
    }
  });
});

describe("OriginRules: Origin", () => {
  it.each(["http://localhost:3000", "https://127.0.0.1", "http://[::1]:8080", "HTTP://LOCALHOST"])(
    "takes the loopback page %s",
    (origin) => {
      expect(answer({ origin })).toBe(origin);
    },
  );

  it.each([
    "https://evil.example",
    "http://localhost.evil.example",
    "null",
    "file://",
    "chrome-extension://abc",
    "localhost",
    "http://",
    `https://${"a".repeat(400)}.example`,
  ])("refuses the page %s", (origin) => {
    expect(answer({ origin })).toBe("origin_not_allowed");
    expect(answer({ origin, method: "get" })).toBe("origin_not_allowed");
  });

  it("takes the gateway's own page where it is reached by a listed name", () => {
    const options = { allowedHosts: "voice.example.com" };
    const host = "voice.example.com:8443";
    expect(answer({ host, origin: "https://voice.example.com:8443" }, options)).not.toBe(
      "origin_not_allowed",
    );
    expect(answer({ host, origin: "https://voice.example.com" }, options)).toBe("origin_not_allowed");
  });

  it("takes what allow-origin lists, exactly or below a name", () => {
    const allowedOrigins = "https://app.example.com, https://*.example.org:8443, null";
    const isTaken = (origin: string) => answer({ origin }, { allowedOrigins }) === origin;
    expect(["https://app.example.com", "https://a.b.example.org:8443", "null"].filter(isTaken)).toHaveLength(
      3,
    );
    const refused = [
      "http://app.example.com",
      "https://app.example.com:444",
      "https://example.org:8443",
      "https://.example.org:8443",
      "https://evil.example/.example.org:8443",
      "https://evil@a.example.org:8443",
      "https://a.example.org",
    ];
    expect(refused.filter(isTaken)).toEqual([]);
  });

  it.each(["*", "https://*", "app.example.com", "https://app.example.com/", "https://a*.example.com"])(
    "refuses %j as allow-origin at the start",
    (allowedOrigins) => {
      expect(() => new OriginRules({ host: "127.0.0.1", allowedOrigins })).toThrow(/allow-origin/);
    },
  );

  it("says of an allow-origin for all pages that keys do not help", () => {
    const build = (): OriginRules => new OriginRules({ host: "127.0.0.1", allowedOrigins: "*" });
    expect(build).toThrow('"*" for all pages is not taken, also with keys, expected an origin such as');
  });

  it.each(["voice.example.com:80", "*.example.com", "https://voice.example.com", "a b"])(
    "refuses %j among allowed-hosts at the start",
    (allowedHosts) => {
      expect(() => new OriginRules({ host: "127.0.0.1", allowedHosts })).toThrow(/allowed-hosts/);
    },
  );
});

describe("OriginRules: Sec-Fetch-Site", () => {
  it("refuses what another site's page embeds or writes without naming its origin", () => {
    expect(answer({ fetchSite: "cross-site", fetchMode: "no-cors", method: "get" })).toBe(
      "origin_not_allowed",
    );
    expect(answer({ fetchSite: "cross-site", fetchMode: "navigate" })).toBe("origin_not_allowed");
  });

  it("takes a link to the page, and what the gateway's own page asks for", () => {
    expect(answer({ fetchSite: "cross-site", fetchMode: "navigate", method: "get" })).toBe("no page");
    expect(answer({ fetchSite: "same-origin", fetchMode: "no-cors", method: "get" })).toBe("no page");
  });
});

describe("isLoopback", () => {
  it.each([
    ["127.0.0.1", true],
    ["localhost", true],
    ["::1", true],
    ["0.0.0.0", false],
    ["::", false],
    ["10.0.0.1", false],
    ["gateway.lan", false],
  ])("says of %s: %s", (host, expected) => {
    expect(isLoopback(host)).toBe(expected);
  });
});

describe("OriginRules: the gateway's own page", () => {
  const host = "voice.example.com";
  const options = { allowedHosts: host };

  it.each([
    [false, "http://voice.example.com", "http://voice.example.com"],
    [false, "https://voice.example.com", "https://voice.example.com"],
    [true, "https://voice.example.com", "https://voice.example.com"],
    // Whoever is on the way can put a page there.
    [true, "http://voice.example.com", "origin_not_allowed"],
    [true, "http://localhost:3000", "http://localhost:3000"],
  ])("TLS %s, %s: %s", (isTls, origin, expected) => {
    expect(answer({ host, origin }, { ...options, isTls })).toBe(expected);
  });

  it("without TLS is taken over TLS where it is listed", () => {
    const allowedOrigins = "http://voice.example.com";
    const origin = allowedOrigins;
    expect(answer({ host, origin }, { ...options, allowedOrigins, isTls: true })).toBe(origin);
  });
});
