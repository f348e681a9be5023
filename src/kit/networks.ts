/** Lists of IP networks, as settings write them, and addresses that are looked up in them. */
import { BlockList, isIP, SocketAddress } from "node:net";

export function networksOf(...cidrs: readonly string[]): BlockList {
  const networks = new BlockList();
  for (const cidr of cidrs) addNetwork(networks, cidr);
  return networks;
}

/** `10.0.0.0/8`; an address alone is a network of one. False: it is neither. */
export function addNetwork(networks: BlockList, text: string): boolean {
  const [, address = "", bits] = /^([0-9a-fA-F.:]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  if (family === 0) return false;
  const longest = family === 4 ? 32 : 128;
  const prefix = bits === undefined ? longest : Number(bits);
  if (prefix > longest) return false;
  networks.addSubnet(address, prefix, family === 4 ? "ipv4" : "ipv6");
  return true;
}

/** False for what is no address. */
export function isIn(networks: BlockList, address: string): boolean {
  const family = isIP(address);
  return family !== 0 && networks.check(address, family === 4 ? "ipv4" : "ipv6");
}

/** As short as it can be written, and the IPv4 address in an IPv4-mapped one (RFC 4291 section 2.5.5.2). */
export function plainAddress(address: string): string {
  if (isIP(address) !== 6) return address;
  const shortest = new SocketAddress({ address, family: "ipv6" }).address;
  return /^::ffff:([0-9.]+)$/.exec(shortest)?.[1] ?? shortest;
}
