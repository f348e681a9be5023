/** What proves to a receiver that a delivery is ours and recent. */
import { createHmac, randomBytes } from "node:crypto";

/** The header's name, as the vendor writes it. */
export const SIGNATURE_HEADER = "ElevenLabs-Signature";

/** 256 bits, behind the prefix that the vendor's secrets have. */
export function newSecret(): string {
  return `wsec_${randomBytes(32).toString("hex")}`;
}

/**
 * `t=<unix seconds>,v0=<hex>` over `<t>.<body>`. Made anew for each try: receivers refuse what is older than 30 minutes, and
 * the last try comes later than that. `timeMs` counts from 1970.
 */
export function sign(body: string, given: { readonly secret: string; readonly timeMs: number }): string {
  const timestamp = Math.floor(given.timeMs / 1000);
  const digest = createHmac("sha256", given.secret).update(`${timestamp}.${body}`, "utf8").digest("hex");
  return `t=${timestamp},v0=${digest}`;
}
