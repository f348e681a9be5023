/** The settings that make up an upstream's address, checked before anything is asked of it. */
import { GatewayError } from "../../errors.ts";

/** What an address begins with, and how it is written out. */
export const SCHEMES = {
  http: { protocols: ["http:", "https:"], expected: "http(s)://host[:port][/prefix]" },
  ws: { protocols: ["ws:", "wss:"], expected: "ws(s)://host[:port][/prefix]" },
  wyoming: { protocols: ["wyoming:"], expected: "wyoming://host[:port]" },
} as const satisfies Record<string, { readonly protocols: readonly string[]; readonly expected: string }>;

export type Scheme = keyof typeof SCHEMES;

/** Throws invalid_config where it is no plain URL of the scheme; a path is kept as a prefix. `setting`: what says it. */
export function parseBaseUrl(baseUrl: string, setting = "upstream-url", scheme: Scheme = "http"): URL {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  const { protocols, expected }: (typeof SCHEMES)[Scheme] = SCHEMES[scheme];
  if (
    url !== null &&
    url.host !== "" &&
    protocols.some((protocol) => protocol === url.protocol) &&
    url.username === "" &&
    url.password === "" &&
    url.search === "" &&
    url.hash === ""
  ) {
    return url;
  }
  throw new GatewayError(
    "invalid_config",
    `Setting ${setting} can't be used: ${describeUrl(url, protocols)}, expected ${expected}`,
    { field: fieldOf(setting) },
  );
}

/** What is wrong with it, without repeating it: it may hold a password. */
function describeUrl(url: URL | null, protocols: readonly string[]): string {
  if (url === null) return "it is not a URL";
  if (!protocols.includes(url.protocol)) return `its scheme is ${url.protocol}`;
  if (url.host === "") return "it names no host";
  return url.username === "" && url.password === ""
    ? "it has a query or fragment"
    : "it has a user name or password";
}

/** Throws invalid_config where no header can carry it. */
export function checkedKey(key: string, setting = "upstream-key"): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new GatewayError(
    "invalid_config",
    `Setting ${setting} can't be used: it has blanks or characters that a header can't carry, expected visible ASCII`,
    { field: fieldOf(setting) },
  );
}

/** `upstreams` of `upstreams, entry cartesia, url`. */
function fieldOf(setting: string): string {
  return setting.split(",")[0] ?? setting;
}
