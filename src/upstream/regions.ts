/** Base URLs of the vendor, by region (contract section 1). */
import { GatewayError } from "../errors.ts";

export const REGION_URLS = {
  global: "https://api.elevenlabs.io",
  us: "https://api.us.elevenlabs.io",
  eu: "https://api.eu.residency.elevenlabs.io",
  in: "https://api.in.residency.elevenlabs.io",
  sg: "https://api.sg.residency.elevenlabs.io",
} as const;
export type Region = keyof typeof REGION_URLS;

/** The vendor's base URL of a region. Throws invalid_config for a name that is none. */
export function regionUrl(region: string): string {
  if (Object.hasOwn(REGION_URLS, region)) return REGION_URLS[region as Region];
  const allowed = Object.keys(REGION_URLS).join(", ");
  throw new GatewayError(
    "invalid_config",
    `Setting upstream-region can't be used: it is ${JSON.stringify(region)}, expected one of ${allowed}`,
    { field: "upstream-region" },
  );
}
