/**
 * Whose request it is, where a reverse proxy may stand between. Anybody can write `X-Forwarded-For` or a header of the PROXY
 * protocol: each counts where one of the listed proxies wrote it, and nowhere else.
 */
import { BlockList, isIP } from "node:net";
import { GatewayError } from "../errors.ts";
import { addNetwork, isIn, plainAddress } from "../kit/networks.ts";

/** The settings `trusted-proxies` and `proxy-protocol`. */
export interface ProxyTrust {
  /** null: none. */
  readonly proxies: BlockList | null;
  readonly takesProxyProtocol: boolean;
}

/** Throws invalid_config. */
export function readProxyTrust(settings: {
  readonly trustedProxies: string;
  readonly proxyProtocol: boolean;
}): ProxyTrust {
  const proxies = new BlockList();
  const entries = settings.trustedProxies.split(",").map((entry) => entry.trim());
  const listed = entries.filter((entry) => entry !== "");
  for (const entry of listed) {
    if (addNetwork(proxies, entry)) continue;
    throw new GatewayError(
      "invalid_config",
      `Setting trusted-proxies: "${entry}", expected an address or a network such as 10.0.0.0/8, several with commas`,
      { field: "trusted-proxies" },
    );
  }
  if (settings.proxyProtocol && listed.length === 0) {
    throw new GatewayError(
      "invalid_config",
      "Setting proxy-protocol: no proxy is trusted, expected its address in trusted-proxies",
      { field: "proxy-protocol" },
    );
  }
  return { proxies: listed.length > 0 ? proxies : null, takesProxyProtocol: settings.proxyProtocol };
}

/** What is known of where a request came from. */
interface AddressSource {
  /** The other end of the connection. */
  readonly peer: string;
  /** As a header of the PROXY protocol has it; empty where there was none. */
  readonly proxied: () => string;
  /** All `X-Forwarded-For` headers in their order, with commas: each proxy adds its own peer at the end. */
  readonly forwardedFor: () => string;
}

/** From the connection towards the client, the first address that is no trusted proxy's. */
export function clientAddress(source: AddressSource, { proxies, takesProxyProtocol }: ProxyTrust): string {
  let address = plainAddress(source.peer);
  if (proxies === null || !isIn(proxies, address)) return address;
  const proxied = takesProxyProtocol ? source.proxied() : "";
  if (isIP(proxied) !== 0) address = plainAddress(proxied);
  const forwarded = source.forwardedFor().split(",");
  while (isIn(proxies, address)) {
    const next = addressOf(forwarded.pop() ?? "");
    // No more of them, or a word such as "unknown": the last one who is known.
    if (next === null) break;
    address = plainAddress(next);
  }
  return address;
}

/** Some proxies write a port behind it: `192.0.2.7:1234`, `[2001:db8::7]:1234`. */
function addressOf(entry: string): string | null {
  const text = entry.trim();
  const [, inBrackets, beforePort] = /^(?:\[([^\]]*)\]|([0-9.]+))(?::\d{1,5})?$/.exec(text) ?? [];
  const address = inBrackets ?? beforePort ?? text;
  // A zone ("fe80::1%eth0") names a link of the proxy's machine.
  return isIP(address) === 0 || address.includes("%") ? null : address;
}
