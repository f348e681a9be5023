/** Who counts as one client, and how many of one thing each client may have at once. */
import { isIPv6 } from "node:net";

/** `Infinity`: no limit. */
export interface ClientLimitOptions {
  /** For all clients together. */
  readonly maxTotal: number;
  readonly maxPerClient: number;
}

/** Holds an entry for each client that has something now: `maxTotal` bounds it, or what the callers can have open. */
export class ClientLimit {
  readonly #maxTotal: number;
  readonly #maxPerClient: number;
  readonly #counts = new Map<string, number>();
  #total = 0;

  constructor({ maxTotal, maxPerClient }: ClientLimitOptions) {
    this.#maxTotal = maxTotal;
    this.#maxPerClient = maxPerClient;
  }

  /** One more for the client at this address: gives what returns it (idempotent), or null where there is no room. */
  acquire(address: string): (() => void) | null {
    const client = clientOf(address);
    const count = this.#counts.get(client) ?? 0;
    if (this.#total >= this.#maxTotal || count >= this.#maxPerClient) return null;
    this.#counts.set(client, count + 1);
    this.#total += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#total -= 1;
      const left = (this.#counts.get(client) ?? 1) - 1;
      if (left > 0) this.#counts.set(client, left);
      else this.#counts.delete(client);
    };
  }
}

const IPV6_GROUPS = 8;
/** The rest is the interface identifier (RFC 4291 section 2.5.1), which a client chooses as it likes. */
const NETWORK_GROUPS = 4;

/**
 * The client behind an IP address in any of its spellings: an IPv4 address itself, also where it is written as IPv6
 * (RFC 4291 section 2.5.5.2), and the /64 network of an IPv6 address. Any other text is itself.
 */
export function clientOf(address: string): string {
  // Asked several times for each connection: IPv4, as most have it, is known at once.
  if (!address.includes(":")) return address;
  const groups = ipv6Groups(address);
  if (groups === null) return address;
  const [, , , , , mark, high = 0, low = 0] = groups;
  if (mark === 0xff_ff && groups.slice(0, 5).every((group) => group === 0)) {
    return [high >> 8, high & 255, low >> 8, low & 255].join(".");
  }
  return groups
    .slice(0, NETWORK_GROUPS)
    .map((group) => group.toString(16))
    .join(":");
}

/** The eight numbers of an IPv6 address, whose last 32 bits may be written as IPv4; null for anything else. */
function ipv6Groups(address: string): number[] | null {
  const bare = address.split("%")[0] ?? "";
  if (!isIPv6(bare)) return null;
  const [front = [], back] = bare.split("::").map(numbersOf);
  if (back === undefined) return front;
  const zeros = new Array<number>(IPV6_GROUPS - front.length - back.length).fill(0);
  return [...front, ...zeros, ...back];
}

function numbersOf(groups: string): number[] {
  if (groups === "") return [];
  return groups.split(":").flatMap((group) => {
    if (!group.includes(".")) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split(".").map(Number);
    return [(a << 8) | b, (c << 8) | d];
  });
}
