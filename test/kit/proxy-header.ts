/** The header of the PROXY protocol, version 2, as haproxy's `send-proxy-v2` writes it in front of a connection. */

const SIGNATURE = Buffer.from("0d0a0d0a000d0a515549540a", "hex");
/** Version 2, command PROXY. */
const VERSION_AND_COMMAND = 0x21;
const TCP_OVER_IPV4 = 0x11;
const ADDRESSES_BYTES = 12;

/** For a client at this IPv4 address, from port 12345 to 127.0.0.1:443. */
export function proxyHeader(client: string): Buffer {
  const addresses = Buffer.alloc(ADDRESSES_BYTES);
  addresses.set(client.split(".").map(Number), 0);
  addresses.set([127, 0, 0, 1], 4);
  addresses.writeUInt16BE(12_345, 8);
  addresses.writeUInt16BE(443, 10);
  const head = Buffer.from([VERSION_AND_COMMAND, TCP_OVER_IPV4, 0, ADDRESSES_BYTES]);
  return Buffer.concat([SIGNATURE, head, addresses]);
}
