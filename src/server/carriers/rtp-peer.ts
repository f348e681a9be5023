/** Addresses of RTP peers: which of them a port can send to, and how they are written. */
import { type LookupOptions, lookup as lookUpName } from "node:dns";
import { isIP, SocketAddress } from "node:net";
import { GatewayError } from "../../errors.ts";

export interface RtpPeer {
  /** An IP address as packets that come from it name it. */
  readonly address: string;
  readonly port: number;
}

/** IP version of the ports of a gateway with this host. */
export function rtpFamily(host: string): 4 | 6 {
  return host.includes(":") ? 6 : 4;
}

/** `peer.address` is an IP address. Throws invalid_field where ports on `host` can't send to it. */
export function reachablePeer({ address, port }: RtpPeer, host: string): RtpPeer {
  const family = rtpFamily(host);
  if (isIP(address) === family) {
    // One IPv6 address can be written in several ways, and packets come with the shortest.
    return { address: new SocketAddress({ address, family: `ipv${family}` }).address, port };
  }
  throw new GatewayError(
    "invalid_field",
    `Field remote can't be used: expected an IPv${family} address, as RTP leaves from ${host}`,
    { field: "remote" },
  );
}

/** For `dgram`: a peer is an address already, and what is not looked up leaves at once and not a turn of the loop later. */
export function lookUp(
  name: string,
  options: LookupOptions | number,
  done: (error: NodeJS.ErrnoException | null, address: string, family: number) => void,
): void {
  const family = isIP(name);
  if (family !== 0) done(null, name, family);
  else lookUpName(name, typeof options === "number" ? { family: options } : { ...options, all: false }, done);
}
