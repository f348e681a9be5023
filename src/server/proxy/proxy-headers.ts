/**
 * Which headers the proxy passes on, beyond those of one hop (upstream/transport/forward.ts). The upstream must not learn who the
 * client is, nor get another path than the one that was checked. The client's browser must not take orders from
 * the upstream for the gateway's origin.
 */

import { GatewayError } from "../../errors.ts";

type Headers = readonly (readonly [name: string, value: string])[];

/** Asks the embedded service to fail: docs/faults.md. */
const FAULT_HEADER = "x-voicewire-fault";

/** What browsers and proxies say about the client. */
const ABOUT_THE_CLIENT: ReadonlySet<string> = new Set([
  "cookie",
  "cookie2",
  "origin",
  "referer",
  "forwarded",
  "via",
  // The client's traces, and what it says along with them.
  "traceparent",
  "tracestate",
  "baggage",
  "client-ip",
  "x-client-ip",
  "x-real-ip",
  "x-cluster-client-ip",
  "true-client-ip",
  "cf-connecting-ip",
  "fastly-client-ip",
]);
/** Some frameworks take the method or the path from these, which nobody has checked. */
const OTHER_REQUEST: ReadonlySet<string> = new Set([
  "x-http-method",
  "x-http-method-override",
  "x-method-override",
  "x-original-uri",
  "x-original-url",
  "x-rewrite-url",
]);
const PRIVATE_PREFIXES = ["x-forwarded-", "sec-", "x-voicewire-"];

/**
 * Orders to the browser that would hold for the gateway's origin, and addresses of the upstream. The interface has no
 * redirects: one without its `location` is an answer that a client does not follow.
 */
const ORDERS: ReadonlySet<string> = new Set([
  "set-cookie",
  "set-cookie2",
  "clear-site-data",
  "strict-transport-security",
  "public-key-pins",
  "public-key-pins-report-only",
  "expect-ct",
  "alt-svc",
  "nel",
  "report-to",
  "reporting-endpoints",
  "content-security-policy",
  "content-security-policy-report-only",
  "x-content-type-options",
  "referrer-policy",
  "service-worker-allowed",
  "speculation-rules",
  "accept-ch",
  "critical-ch",
  "www-authenticate",
  "location",
  "content-location",
  "refresh",
  "link",
]);

/** What a script of another origin may read. */
const EXPOSED_HEADERS = [
  "request-id",
  "x-trace-id",
  "history-item-id",
  "character-cost",
  "x-not-understood",
  "regeneration-count",
  "generation-info",
  "current-concurrent-requests",
  "maximum-concurrent-requests",
  "collect-preference",
  "x-left-out-tags",
  "x-voicewire-timing",
  "x-ignored-fields",
  "retry-after",
].join(", ");

const OWN_HEADERS: Headers = [["access-control-expose-headers", EXPOSED_HEADERS]];

/** RFC 9110 section 5.5, each byte as one character; undici sends no others. The server decodes what it reads as UTF-8. */
const SENDABLE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Names in lower case. `passesFaults`: the upstream may be asked to fail. Throws invalid_field. */
export function headersForUpstream(
  headers: Headers,
  { passesFaults }: { readonly passesFaults: boolean },
): Headers {
  const passed = headers.filter(([name]) => {
    if (name === FAULT_HEADER) return passesFaults;
    const isPrivate = PRIVATE_PREFIXES.some((prefix) => name.startsWith(prefix));
    return !isPrivate && !ABOUT_THE_CLIENT.has(name) && !OTHER_REQUEST.has(name);
  });
  for (const [name, value] of passed)
    if (!SENDABLE.test(value))
      throw new GatewayError(
        "invalid_field",
        `Header "${name}" has characters that can't be sent on: use ASCII`,
      );
  return passed;
}

/** Names in lower case. */
export function headersForClient(headers: Headers): Headers {
  const passed = headers.filter(([name]) => !ORDERS.has(name) && !name.startsWith("access-control-"));
  return [...passed, ...OWN_HEADERS];
}
