/** The headers that a webhook adds to its deliveries: what they may be. */
import { validateHeaderName, validateHeaderValue } from "node:http";

/** Headers of one webhook. */
export const MAX_HEADERS = 20;
/** Bytes of a header's name and value together. */
const MAX_HEADER_BYTES = 1024;

/** Those of one connection, those that frame the body, and those that vouch for it. */
const RESERVED: ReadonlySet<string> = new Set([
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "elevenlabs-signature",
  "expect",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Whether a webhook may not set it, whatever its case. */
export function isReservedHeader(name: string): boolean {
  return RESERVED.has(name.toLowerCase());
}

/** What is wrong with the headers, in words that hold no value of theirs; undefined where nothing is. */
export function faultOfHeaders(headers: Readonly<Record<string, string>>): string | undefined {
  const seen = new Set<string>();
  for (const [name, value] of Object.entries(headers)) {
    const shown = JSON.stringify(name.slice(0, 64));
    if (!isValid(() => validateHeaderName(name))) return `${shown} is no header name`;
    if (isReservedHeader(name)) return `${shown} can't be set, it belongs to the delivery itself`;
    if (seen.has(name.toLowerCase())) return `${shown} comes twice`;
    if (Buffer.byteLength(name) + Buffer.byteLength(value) > MAX_HEADER_BYTES) {
      return `${shown} is longer than ${MAX_HEADER_BYTES} bytes`;
    }
    if (!isValid(() => validateHeaderValue(name, value)))
      return `${shown} has characters that no header can hold`;
    seen.add(name.toLowerCase());
  }
  return undefined;
}

function isValid(check: () => void): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}
