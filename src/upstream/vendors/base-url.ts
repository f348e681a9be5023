/** The settings that make up an upstream's address, checked before anything is asked of it. */
import { GatewayError } from "../../errors.ts";

/** Throws invalid_config where it is no plain http(s) URL; a path is kept as a prefix. `setting`: what says it. */
export function parseBaseUrl(baseUrl: string, setting = "upstream-url"): URL {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  const isHttp = url?.protocol === "http:" || url?.protocol === "https:";
  if (
    url !== null &&
    isHttp &&
    url.username === "" &&
    url.password === "" &&
    url.search === "" &&
    url.hash === ""
  ) {
    return url;
  }
  throw new GatewayError(
    "invalid_config",
    `Setting ${setting} can't be used: ${describeUrl(url)}, expected http(s)://host[:port][/prefix]`,
    { field: fieldOf(setting) },
  );
}

/** What is wrong with it, without repeating it: it may hold a password. */
function describeUrl(url: URL | null): string {
  if (url === null) return "it is not a URL";
  if (url.protocol !== "http:" && url.protocol !== "https:") return `its scheme is ${url.protocol}`;
  return url.username === "" && url.password === ""
    ? "it has a query or fragment"
    : "it has a user name or password";
}

/** Throws invalid_config where no header can carry it. */
export function checkedKey(key: string, setting = "upstream-key"): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new GatewayError(
    "invalid_config",
    `Setting ${setting} can't be used: it has blanks or characters that a header can't carry, expected visible ASCII`,
    { field: fieldOf(setting) },
  );
}

/** `upstreams` of `upstreams, entry cartesia, url`. */
function fieldOf(setting: string): string {
  return setting.split(",")[0] ?? setting;
}
