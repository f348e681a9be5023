/** What somebody without a key may do at a gateway with these settings, in plain words. */
import { isInsecure } from "../../access/binding.ts";
import type { Config } from "../../config.ts";

type AccessSettings = Pick<Config, "host" | "keysFile" | "allowedOrigins">;

export function strangersMay({ host, keysFile, allowedOrigins }: AccessSettings): string {
  if (keysFile !== "")
    return "without a key or a token: the page's files, /healthz and /readyz, nothing else";
  if (isInsecure({ host, keysFile })) {
    return `whoever reaches ${host} may listen to every session, speak, and spend the upstream's key`;
  }
  const pages =
    allowedOrigins === ""
      ? "web pages of this machine"
      : `web pages of this machine and of ${allowedOrigins}`;
  return `programs of this machine and ${pages} may use the gateway, no others`;
}
