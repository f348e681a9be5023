/**
 * Where a webhook may lead: to the public internet over HTTPS, and nowhere near this machine. Looked at twice: the URL when
 * it is given, and each address that its name has when something is delivered.
 */
import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { BlockList, isIP, type LookupFunction } from "node:net";

/** Characters of a URL. */
export const MAX_URL_LENGTH = 2048;

/** Addresses of one name that are looked at; no honest name has more. */
const MAX_ADDRESSES = 32;

/** Thrown where a webhook may not lead; the message is for the caller and holds no part of the URL. */
export class TargetRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = "TargetRefused";
  }
}

/** Everything but globally reachable unicast (IANA special-purpose registries), and Azure's metadata in public space. */
const CLOSED_V4 = subnets("ipv4", [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
]);
const MAPPED_V4 = subnets("ipv6", [["::ffff:0:0", 96]]);
/** Global unicast; loopback, ULA, link-local, multicast and the NAT64 prefixes lie outside. */
const OPEN_V6 = subnets("ipv6", [["2000::", 3]]);
/** Within it: protocol assignments with Teredo, documentation, and 6to4, which would carry an IPv4 address along. */
const CLOSED_V6 = subnets("ipv6", [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
]);
/** Names that never mean a host of the public internet. */
const PRIVATE_NAME = /(?:^|\.)(?:localhost|localdomain|local|internal|intranet|lan|home\.arpa)$/;

function subnets(family: "ipv4" | "ipv6", list: readonly (readonly [string, number])[]): BlockList {
  const block = new BlockList();
  for (const [net, prefix] of list) block.addSubnet(net, prefix, family);
  return block;
}

/** Whether this literal address is one of the public internet; false for what is no address. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !CLOSED_V4.check(address, "ipv4");
  if (family !== 6 || address.includes("%")) return false;
  // A mapped address is held against the IPv4 rules.
  if (MAPPED_V4.check(address, "ipv6")) return !CLOSED_V4.check(address, "ipv6");
  return OPEN_V6.check(address, "ipv6") && !CLOSED_V6.check(address, "ipv6");
}

/**
 * The URL, if a webhook may lead there as far as its text says. `allowPrivate`, for tests and use on premises, lets private
 * addresses and plain HTTP pass. Throws TargetRefused.
 */
export function parseTarget(text: string, options: { readonly allowPrivate: boolean }): URL {
  if (text.length > MAX_URL_LENGTH) throw new TargetRefused(`is longer than ${MAX_URL_LENGTH} characters`);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || url.hostname === "") throw new TargetRefused("is no absolute URL");
  const isSecure = url.protocol === "https:";
  if (!isSecure && !(options.allowPrivate && url.protocol === "http:")) {
    throw new TargetRefused("is not an HTTPS URL");
  }
  if (url.username !== "" || url.password !== "") throw new TargetRefused("has a user name or a password");
  if (options.allowPrivate) return url;
  // The URL parser has already turned every notation of an IPv4 address (decimal, hex, octal, full-width) into dotted.
  const host = hostOf(url);
  const isPrivate = isIP(host) === 0 ? PRIVATE_NAME.test(host.replace(/\.$/, "")) : !isPublicAddress(host);
  if (isPrivate) throw new TargetRefused("leads to a private or local address");
  return url;
}

/** The host without the brackets of an IPv6 address. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1");
}

/** How a name becomes addresses. */
export type Resolve = (host: string) => Promise<readonly LookupAddress[]>;

const resolveBySystem: Resolve = (host) => lookup(host, { all: true, verbatim: true });

/**
 * For a request's `lookup`: what it gives is what is connected to, so no second answer of the name can lead elsewhere. One
 * private address among several is enough to refuse: TargetRefused comes as the request's error.
 */
export function checkedLookup(allowPrivate: boolean, resolve: Resolve = resolveBySystem): LookupFunction {
  return (host, options, callback) => {
    resolve(host).then(
      (all) => {
        const found = all.slice(0, MAX_ADDRESSES);
        const first = found[0];
        if (first === undefined) return callback(new Error("The name has no address"), "");
        if (!allowPrivate && found.some(({ address }) => !isPublicAddress(address))) {
          return callback(new TargetRefused("resolves to a private or local address"), "");
        }
        if (options.all === true) return callback(null, found);
        return callback(null, first.address, first.family);
      },
      (thrown: unknown) => callback(thrown instanceof Error ? thrown : new Error("The lookup failed"), ""),
    );
  };
}
