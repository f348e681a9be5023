/**
 * Which web pages may use a port. A page of any origin may send requests to a port of the machine that shows it, and open
 * WebSockets to it, which no same-origin policy keeps from it: only the server can refuse (RFC 6455 section 10.2). A
 * name that is bound to this machine's address by its owner (DNS rebinding) makes such a page same-origin: only the
 * Host header shows that.
 */
import { BlockList, isIP } from "node:net";
import { GatewayError } from "../errors.ts";

export interface OriginRulesOptions {
  /** Address that the port is bound to. */
  readonly host: string;
  /** How the port is reached from outside, a URL; empty: as `host`. */
  readonly publicUrl?: string;
  /** The setting `allowed-hosts`: names and addresses with commas, without a port. */
  readonly allowedHosts?: string;
  /** The setting `allow-origin`: origins with commas; `https://*.example.com` stands for all below that name. */
  readonly allowedOrigins?: string;
  /** The port speaks TLS: a page that came without it may be anybody's, and is not the port's own. Default false. */
  readonly isTls?: boolean;
}

/** The headers that say where a request comes from; an empty text where there is none. */
export interface RequestSource {
  readonly method: string;
  readonly host: string;
  readonly origin: string;
  /** `Sec-Fetch-Site` and `Sec-Fetch-Mode` (W3C Fetch Metadata). */
  readonly fetchSite: string;
  readonly fetchMode: string;
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

const WILDCARDS: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);
/** Longer than any that a browser sends: what is longer is not compared. */
const MAX_ORIGIN_CHARS = 300;

/** Whether only programs of this machine reach a port that is bound to this address or name. */
export function isLoopback(host: string): boolean {
  const name = plainHost(host);
  if (name === "localhost") return true;
  const version = isIP(name);
  // Every request asks this, and looking it up in a list costs 7 us. An IPv4 address has one spelling, an IPv6 address many.
  return version === 4 ? name.startsWith("127.") : version === 6 && LOOPBACK.check(name, "ipv6");
}

export class OriginRules {
  readonly #hosts: ReadonlySet<string>;
  readonly #isWildcard: boolean;
  readonly #isTls: boolean;
  readonly #origins: ReadonlySet<string>;
  /** What an origin of `https://*.example.com` begins and ends with. */
  readonly #families: readonly { readonly scheme: string; readonly suffix: string }[];

  /** Throws invalid_config. */
  constructor(options: OriginRulesOptions) {
    const { host, publicUrl = "", allowedHosts = "", allowedOrigins = "" } = options;
    this.#isTls = options.isTls ?? false;
    const listed = entriesOf(allowedHosts);
    for (const entry of listed) checkHost(entry);
    const ofUrl = URL.canParse(publicUrl) ? [new URL(publicUrl).hostname] : [];
    this.#hosts = new Set([host, ...ofUrl, ...listed].map(plainHost));
    this.#isWildcard = WILDCARDS.has(plainHost(host));
    const origins = entriesOf(allowedOrigins).map(checkOrigin);
    this.#origins = new Set(origins.filter((origin) => !origin.includes("*")));
    this.#families = origins
      .filter((origin) => origin.includes("*"))
      .map((origin) => {
        const [scheme = "", suffix = ""] = origin.split("*");
        return { scheme, suffix };
      });
  }

  /** Whether a Host header names this port. */
  takesHost(header: string): boolean {
    const host = hostOfHeader(header);
    if (host === null) return false;
    // A name can be bound to any address by its owner, an address can't.
    return isLoopback(host) || this.#hosts.has(host) || (this.#isWildcard && isIP(host) !== 0);
  }

  /**
   * The origin whose scripts may read the answer, or null where the request comes from no other origin. Throws
   * host_not_allowed, origin_not_allowed.
   */
  check(source: RequestSource): string | null {
    if (!this.takesHost(source.host)) {
      throw new GatewayError(
        "host_not_allowed",
        "Header host: names no host of this gateway, expected localhost, its address, or one that allowed-hosts lists",
        { field: "host" },
      );
    }
    const { origin } = source;
    if (origin === "") {
      // Older browsers leave Sec-Fetch-Site out, but no browser leaves out the Origin of what writes elsewhere.
      const isPageOpened = source.fetchMode === "navigate" && source.method.toLowerCase() === "get";
      if (source.fetchSite === "cross-site" && !isPageOpened) throw originError();
      return null;
    }
    if (this.#isAllowed(origin, source.host)) return origin;
    throw originError();
  }

  #isAllowed(given: string, hostHeader: string): boolean {
    if (given.length > MAX_ORIGIN_CHARS) return false;
    const origin = given.toLowerCase();
    if (this.#origins.has(origin)) return true;
    if (origin === "null" || !URL.canParse(origin)) return false;
    const { protocol, hostname, host } = new URL(origin);
    if (protocol !== "http:" && protocol !== "https:") return false;
    if (isLoopback(hostname)) return true;
    const isOwn = host === hostHeader.trim().toLowerCase();
    if (isOwn && (protocol === "https:" || !this.#isTls)) return true;
    return this.#families.some(({ scheme, suffix }) => {
      return (
        origin.startsWith(scheme) &&
        origin.endsWith(suffix) &&
        isSubdomain(origin.slice(scheme.length, origin.length - suffix.length))
      );
    });
  }
}

/** What stands for `*` in `https://*.example.com`: labels, and nothing else of an origin. */
function isSubdomain(text: string): boolean {
  return /^[a-z0-9-]+$/.test(text.replaceAll(".", "")) && !text.startsWith(".") && !text.endsWith(".");
}

/** The host of a Host header, without its port; null where it is none (RFC 9110 section 7.2). */
export function hostOfHeader(header: string): string | null {
  const text = header.trim();
  const match = /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::\d{1,5})?$/i.exec(text);
  return match?.[1] === undefined ? null : plainHost(match[1]);
}

/** In lower case, without the brackets of an IPv6 address and the dot that ends a full name. */
function plainHost(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
}

function entriesOf(list: string): string[] {
  return list
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}

function checkHost(entry: string): void {
  const host = plainHost(entry);
  if (isIP(host) !== 0 || /^[a-z0-9_.-]+$/.test(host)) return;
  throw new GatewayError(
    "invalid_config",
    `Setting allowed-hosts: "${entry}", expected a name or an address without a port, such as voice.example.com`,
    { field: "allowed-hosts" },
  );
}

/** In lower case. */
function checkOrigin(entry: string): string {
  const origin = entry.toLowerCase();
  if (origin === "null") return origin;
  const plain = origin.replace("://*.", "://");
  if (!plain.includes("*") && URL.canParse(plain) && new URL(plain).origin === plain) return origin;
  const why = origin === "*" ? " for all pages is not taken, also with keys" : "";
  throw new GatewayError(
    "invalid_config",
    `Setting allow-origin: "${entry}"${why}, expected an origin such as https://app.example.com or https://*.example.com`,
    { field: "allow-origin" },
  );
}

function originError(): GatewayError {
  return new GatewayError(
    "origin_not_allowed",
    "A page of another origin may not use this gateway; its operator lets it in with allow-origin",
    { field: "origin" },
  );
}
