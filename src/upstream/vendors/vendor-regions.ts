/** The vendor's regions, and what upstreams are called in metrics and logs. */
import { GatewayError } from "../../errors.ts";

export const REGION_URLS = {
  global: "https://api.elevenlabs.io",
  us: "https://api.us.elevenlabs.io",
  eu: "https://api.eu.residency.elevenlabs.io",
  in: "https://api.in.residency.elevenlabs.io",
  sg: "https://api.sg.residency.elevenlabs.io",
} as const;
type VendorRegion = keyof typeof REGION_URLS;

/** The vendor's base URL of a region. Throws invalid_config for a name that is none. */
export function regionUrl(region: string): string {
  if (Object.hasOwn(REGION_URLS, region)) return REGION_URLS[region as VendorRegion];
  const allowed = Object.keys(REGION_URLS).join(", ");
  throw new GatewayError(
    "invalid_config",
    `Setting upstream-region can't be used: it is ${JSON.stringify(region)}, expected one of ${allowed}`,
    { field: "upstream-region" },
  );
}

/**
 * What each base URL is called: the vendor's region, else its host (and path, where two have one host).
 * Throws invalid_config where one is there twice.
 */
export function regionNames(baseUrls: readonly string[]): string[] {
  const hosts = baseUrls.map((url) => knownName(url) ?? hostOf(url));
  const names = hosts.map((host, index) => {
    const isShared = hosts.indexOf(host) !== hosts.lastIndexOf(host);
    return isShared ? `${host}${pathOf(baseUrls[index] ?? "")}` : host;
  });
  if (new Set(names).size === names.length) return names;
  throw new GatewayError(
    "invalid_config",
    "Setting upstream-url can't be used: a base URL is listed twice, expected each once",
    { field: "upstream-url" },
  );
}

function knownName(baseUrl: string): string | undefined {
  const url = baseUrl.replace(/\/+$/, "");
  return Object.entries(REGION_URLS).find(([, known]) => known === url)?.[0];
}

/** What is no URL is refused where it is used. */
function hostOf(baseUrl: string): string {
  return URL.canParse(baseUrl) ? new URL(baseUrl).host : "";
}

function pathOf(baseUrl: string): string {
  return URL.canParse(baseUrl) ? new URL(baseUrl).pathname.replace(/\/+$/, "") : "";
}
