/** What somebody without a key may do at a gateway with these settings, and may read on the way to it, in plain words. */
import { isInsecure } from "../../access/binding.ts";
import { isLoopback } from "../../access/origin-rules.ts";
import type { Config } from "../../config.ts";

type AccessSettings = Pick<Config, "host" | "keysFile" | "allowedOrigins">;

export function strangersMay({ host, keysFile, allowedOrigins }: AccessSettings): string {
  if (keysFile !== "") return "who shows no key or token gets the page, /healthz and /readyz, nothing else";
  if (isInsecure({ host, keysFile })) {
    return `whoever reaches ${host} may listen to every session, speak, and spend the upstream's key`;
  }
  const others = allowedOrigins === "" ? "" : `, and web pages of ${allowedOrigins},`;
  return `programs and web pages of this machine${others} may use the gateway, nobody else`;
}

type NetworkSettings = Pick<Config, "host" | "keysFile" | "tlsCert" | "trustedProxies">;

export const READABLE_KEYS = "keys, tokens and speech cross the network as plain text";

/** Whether keys come over a network without TLS; where proxies are named, it ends at them. */
export function areKeysReadable({ host, keysFile, tlsCert, trustedProxies }: NetworkSettings): boolean {
  return keysFile !== "" && tlsCert === "" && trustedProxies === "" && !isLoopback(host);
}
