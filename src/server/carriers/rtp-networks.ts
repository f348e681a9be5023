/**
 * Which addresses may be RTP peers. UDP packets arrive whether somebody wants them or not: a gateway that sends wherever a
 * request says can be used to flood anybody ("voice hammer", RFC 8445 section 19.5.1), its own network included.
 */
import { BlockList, isIP } from "node:net";
import type { NetworkInterfaceInfo } from "node:os";
import { GatewayError } from "../../errors.ts";
import { addNetwork, isIn, networksOf, plainAddress } from "../../kit/networks.ts";

/** The setting `rtp-peers`. */
export interface PeerList {
  /** The private networks that this machine is in belong to it. */
  readonly hasPrivate: boolean;
  readonly networks: BlockList;
  /** No address may be a peer. */
  readonly isNobody: boolean;
}

interface AddressKind {
  readonly what: string;
  readonly networks: BlockList;
}

const NEVER: readonly AddressKind[] = [
  { what: "the unspecified address", networks: networksOf("0.0.0.0/8", "::/128") },
  { what: "a multicast address", networks: networksOf("224.0.0.0/4", "ff00::/8") },
  { what: "a broadcast address", networks: networksOf("255.255.255.255/32") },
  { what: "a link-local address", networks: networksOf("169.254.0.0/16", "fe80::/10") },
];
const LOOPBACK = networksOf("127.0.0.0/8", "::1/128");
/** RFC 1918, RFC 4193. */
const PRIVATE = networksOf("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7");
/** A longer prefix has no broadcast address (RFC 3021). */
const MAX_BROADCAST_PREFIX = 30;

/** `none`, or `private`, addresses and networks with commas. Throws invalid_config. */
export function readPeerList(text: string): PeerList {
  const networks = new BlockList();
  if (text.trim() === "none") return { hasPrivate: false, networks, isNobody: true };
  let hasPrivate = false;
  for (const entry of text.split(",").map((part) => part.trim())) {
    if (entry === "private") hasPrivate = true;
    else if (!addNetwork(networks, entry)) {
      throw new GatewayError(
        "invalid_config",
        `Setting rtp-peers: "${entry}", expected private, an address or a network such as 10.0.0.0/8, several with commas, or none alone`,
        { field: "rtp-peers" },
      );
    }
  }
  return { hasPrivate, networks, isNobody: false };
}

/** Addresses and networks with commas; empty: null. Throws invalid_config. `setting`: its name. */
export function readNetworks(text: string, setting: string): BlockList | null {
  if (text.trim() === "") return null;
  const networks = new BlockList();
  for (const entry of text.split(",").map((part) => part.trim())) {
    if (addNetwork(networks, entry)) continue;
    throw new GatewayError(
      "invalid_config",
      `Setting ${setting}: "${entry}", expected an address or a network such as 10.0.0.0/8, several with commas`,
      { field: setting },
    );
  }
  return networks;
}

/** Whether the address is in one of them, in whichever form it is written. */
export function isInNetworks(networks: BlockList, address: string): boolean {
  return isIn(networks, plainAddress(address));
}

export interface PeerRuleOptions {
  readonly list: PeerList;
  /** Address that RTP ports are bound to. */
  readonly host: string;
  /** Addresses of this machine (`os.networkInterfaces`). */
  readonly own: readonly NetworkInterfaceInfo[];
}

/** For one call: the machine's networks may change from one to the next. */
export class PeerRule {
  readonly #options: PeerRuleOptions;
  readonly #isLoopbackHost: boolean;
  readonly #ownPrivate: BlockList;
  readonly #ownBroadcasts: ReadonlySet<number>;

  constructor(options: PeerRuleOptions) {
    this.#options = options;
    const { host, own } = options;
    this.#isLoopbackHost = host === "localhost" || isIn(LOOPBACK, plainAddress(host));
    const cidrs = own.flatMap(({ address, cidr }) => (isIn(PRIVATE, address) && cidr !== null ? [cidr] : []));
    this.#ownPrivate = networksOf(...cidrs);
    this.#ownBroadcasts = new Set(own.flatMap(broadcastsOf));
  }

  /** Why this address may not be a peer, and what to do; null: it may. */
  refusal(address: string): string | null {
    const shown = plainAddress(address);
    const never = NEVER.find(({ networks }) => isIn(networks, shown));
    if (never !== undefined) return `${shown} is ${never.what}, expected the address of one peer`;
    if (isIP(shown) === 4 && this.#ownBroadcasts.has(bitsOf(shown))) {
      return `${shown} is a broadcast address of this machine's networks, expected the address of one peer`;
    }
    if (isIn(LOOPBACK, shown) && !this.#isLoopbackHost) {
      return `${shown} is a loopback address, allowed only where the setting host is one; expected the peer's address in its network`;
    }
    if (this.#isListed(shown)) return null;
    return `${shown} is outside the networks of the setting rtp-peers; expected one inside, or add it to rtp-peers`;
  }

  /**
   * Whether packets of this peer can come to one address of this machine only. A connected socket gets what comes to the
   * address that it sends from, and nothing else.
   */
  hasOneOwnAddress(peer: string): boolean {
    const { host, own } = this.#options;
    if (!isEveryAddress(host)) return true;
    const family = isIP(plainAddress(peer)) === 4 ? "IPv4" : "IPv6";
    const outside = own.filter(
      (entry) =>
        entry.family === family &&
        !entry.internal &&
        !NEVER.some(({ networks }) => isIn(networks, entry.address)),
    );
    return outside.length === 1;
  }

  #isListed(address: string): boolean {
    const { hasPrivate, networks } = this.#options.list;
    if (isIn(networks, address)) return true;
    if (!hasPrivate) return false;
    // A loopback address is only asked about where the host is one.
    return isIn(LOOPBACK, address) || (isIn(PRIVATE, address) && isIn(this.#ownPrivate, address));
  }
}

function isEveryAddress(host: string): boolean {
  return host === "" || ["0.0.0.0", "::"].includes(plainAddress(host));
}

/** The highest address of the network, and the lowest, which old systems broadcast to (RFC 1122 section 3.3.6). */
function broadcastsOf({ family, address, cidr }: NetworkInterfaceInfo): number[] {
  const prefix = Number(cidr?.split("/")[1] ?? 32);
  if (family !== "IPv4" || prefix > MAX_BROADCAST_PREFIX) return [];
  const size = 2 ** (32 - prefix);
  const lowest = Math.floor(bitsOf(address) / size) * size;
  return [lowest, lowest + size - 1];
}

/** An IPv4 address as a number. */
function bitsOf(address: string): number {
  return address.split(".").reduce((bits, byte) => bits * 256 + Number(byte), 0);
}
