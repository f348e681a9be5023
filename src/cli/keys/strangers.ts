/** What somebody without a key may do at a gateway with these settings, and may read on the way to it, in plain words. */
import { type Binding, openWays } from "../../access/binding.ts";
import { isLoopback } from "../../access/origin-rules.ts";
import type { Config } from "../../config.ts";

type AccessSettings = Binding &
  Pick<Config, "allowedOrigins" | "allowedHosts" | "publicUrl" | "wyomingPort" | "wyomingAllow">;

export function strangersMay(settings: AccessSettings): string {
  const { keysFile, allowedOrigins, wyomingPort, wyomingAllow } = settings;
  if (keysFile !== "") {
    // Wyoming has no credentials.
    const isWyomingOpen = wyomingPort !== 0 && wyomingAllow !== "";
    const others = isWyomingOpen ? `but Wyoming clients of ${wyomingAllow} may speak` : "nothing else";
    return `who shows no key or token gets the page, /healthz and /readyz, ${others}`;
  }
  const ways = openWays(settings);
  if (ways.length > 0) return ways.map(({ consequence }) => consequence).join("; ");
  const others = allowedOrigins === "" ? "" : `, and web pages of ${allowedOrigins},`;
  const names = outsideNames(settings);
  const rest =
    names.length === 0 ? "nobody else" : `and whoever a proxy or tunnel brings here as ${names.join(" or ")}`;
  return `programs and web pages of this machine${others} may use the gateway, ${rest}`;
}

/** Names by which a gateway without keys takes requests though no program of this machine needs them. */
export function outsideNames({
  keysFile,
  allowedHosts,
  publicUrl,
}: Pick<AccessSettings, "keysFile" | "allowedHosts" | "publicUrl">): string[] {
  if (keysFile !== "") return [];
  const ofUrl = URL.canParse(publicUrl) ? [new URL(publicUrl).hostname] : [];
  const listed = allowedHosts.split(",").map((name) => name.trim());
  return [...new Set([...ofUrl, ...listed])].filter((name) => name !== "" && !isLoopback(name));
}

type NetworkSettings = Pick<Config, "host" | "keysFile" | "tlsCert" | "trustedProxies">;

export const READABLE_KEYS = "keys, tokens and speech cross the network as plain text";

/** Whether keys come over a network without TLS; where proxies are named, it ends at them. */
export function areKeysReadable({ host, keysFile, tlsCert, trustedProxies }: NetworkSettings): boolean {
  return keysFile !== "" && tlsCert === "" && trustedProxies === "" && !isLoopback(host);
}
