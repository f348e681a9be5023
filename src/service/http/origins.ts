/** Which web pages may use the service: by Host, Origin and Sec-Fetch-Site (src/access/origin-rules.ts), and its CORS headers. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { GatewayError } from "../../errors.ts";
import { ApiError } from "../api-error.ts";
import type { ServiceContext } from "./context.ts";

/** Messages of 403 and 421, in the interface's shape; the interface shows none of its own. */
const MESSAGES: Readonly<Record<string, string>> = {
  host_not_allowed:
    "The Host header names no host of this service: expected localhost, its address, or one that allowed-hosts lists.",
  origin_not_allowed: "A page of another origin may not use this service; allow-origin lets it in.",
};
const CORS_HEADERS: Readonly<Record<string, string>> = {
  "access-control-allow-headers": "*",
  "access-control-allow-methods": "POST, PATCH, OPTIONS, DELETE, GET, PUT",
  "access-control-max-age": "600",
  "access-control-expose-headers":
    "request-id, history-item-id, character-cost, regeneration-count, generation-info, " +
    "current-concurrent-requests, maximum-concurrent-requests, collect-preference, x-not-understood, x-left-out-tags, x-ignored-fields, x-voicewire-timing",
};

/**
 * Lets the page of an allowed origin read the answer. Throws the ApiError of a host or an origin that is not allowed (421,
 * 403). The child of a gateway asks for its key instead, which no page has.
 */
export function requireOrigin(context: ServiceContext, request: FastifyRequest, reply: FastifyReply): void {
  if (context.gatewayKey !== undefined) return;
  reply.header("vary", "origin");
  const origin = checkedOrigin(context, request);
  if (origin === null) return;
  reply.headers({ ...CORS_HEADERS, "access-control-allow-origin": origin });
}

/** Null where the request comes from no other origin. */
function checkedOrigin({ origins }: ServiceContext, { method, headers }: FastifyRequest): string | null {
  try {
    return origins.check({
      method,
      host: headers.host ?? "",
      origin: headers.origin ?? "",
      fetchSite: textOf(headers["sec-fetch-site"]),
      fetchMode: textOf(headers["sec-fetch-mode"]),
    });
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    const { code } = thrown;
    const status = code === "host_not_allowed" ? 421 : 403;
    throw ApiError.of({ type: "authorization_error", code, message: MESSAGES[code] ?? "" }, status);
  }
}

function textOf(header: string | readonly string[] | undefined): string {
  return typeof header === "string" ? header : (header?.join() ?? "");
}

/** What every answer has: for those that are written without Fastify. */
export function commonHeaders(reply: FastifyReply): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(reply.getHeaders()).flatMap(([name, value]) =>
      typeof value === "string" ? [[name, value]] : [],
    ),
  );
}
