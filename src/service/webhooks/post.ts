/** One try at one delivery: a POST that is over after a bounded time, whatever the receiver does. */
import { type ClientRequest, type RequestOptions, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { Clock } from "../../kit/clock.ts";
import { isReservedHeader } from "./request-headers.ts";
import { SIGNATURE_HEADER } from "./signature.ts";
import { checkedLookup, hostOf, parseTarget, type Resolve, TargetRefused } from "./target.ts";

/** From the lookup of the name to the end of the answer, ms. */
export const TIMEOUT_MS = 10_000;

/** So much is read of the answer's body, which nobody looks at; a receiver that sends more is cut off. */
const MAX_ANSWER_BYTES = 65_536;

interface Post {
  readonly url: string;
  readonly body: string;
  readonly signature: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface PostOptions {
  readonly clock: Clock;
  readonly allowPrivate: boolean;
  /** Default: the system's. */
  readonly resolve?: Resolve | undefined;
  /** Certificates (PEM) to trust in the place of the well-known ones. */
  readonly certificates?: string | undefined;
}

/** How a try ended. */
export type PostResult =
  | { readonly kind: "answered"; readonly status: number }
  | { readonly kind: "timeout" }
  /** Not connected, cut off, or no HTTP. */
  | { readonly kind: "network" }
  /** The URL leads, or by now resolves, to where no webhook may lead. */
  | { readonly kind: "refused" }
  | { readonly kind: "aborted" };

export interface RunningPost {
  /** Never rejects. The connection is closed when it settles. */
  readonly result: Promise<PostResult>;
  /** Ends it at once; idempotent. */
  abort(): void;
}

/** Redirects are not followed: they are answers like others. */
export function post(given: Post, options: PostOptions): RunningPost {
  let request: ClientRequest;
  try {
    request = openRequest(given, options);
  } catch (thrown) {
    // A URL that was allowed when it was set, by another setting of `allowPrivate`.
    const kind = thrown instanceof TargetRefused ? "refused" : "network";
    return { result: Promise.resolve({ kind }), abort: () => undefined };
  }
  let settle: (result: PostResult) => void = () => undefined;
  const result = new Promise<PostResult>((resolve) => {
    settle = resolve;
  });
  // The first thing that ends it counts, except that a status which has come is the answer, however the rest of it ends.
  let status: number | undefined;
  const end = (kind: "timeout" | "network" | "refused" | "aborted") => {
    timer.cancel();
    settle(status === undefined ? { kind } : { kind: "answered", status });
    request.destroy();
  };
  const timer = options.clock.at(options.clock.nowMs() + TIMEOUT_MS, () => end("timeout"));
  request.on("response", (response) => {
    status = response.statusCode ?? 0;
    let bytes = 0;
    response.on("data", (part: Buffer) => {
      bytes += part.byteLength;
      if (bytes > MAX_ANSWER_BYTES) end("network");
    });
    response.on("end", () => end("network"));
    response.on("error", () => end("network"));
  });
  request.on("error", (thrown) => end(thrown instanceof TargetRefused ? "refused" : "network"));
  request.on("close", () => end("network"));
  request.end(given.body);
  return { result, abort: () => end("aborted") };
}

function openRequest(given: Post, options: PostOptions): ClientRequest {
  const url = parseTarget(given.url, options);
  const isSecure = url.protocol === "https:";
  const request: RequestOptions & { readonly ca?: string | undefined } = {
    method: "POST",
    hostname: hostOf(url),
    port: url.port === "" ? (isSecure ? 443 : 80) : Number(url.port),
    path: `${url.pathname}${url.search}`,
    // A connection of its own: nothing stays open between tries, and each one looks the name up anew.
    agent: false,
    lookup: checkedLookup(options.allowPrivate, options.resolve),
    headers: headersOf(given),
    ...(options.certificates === undefined ? {} : { ca: options.certificates }),
  };
  return isSecure ? requestHttps(request) : requestHttp(request);
}

function headersOf({ headers, signature, body }: Post): Record<string, string | number> {
  const own = Object.entries(headers).filter(([name]) => !isReservedHeader(name));
  const hasAgent = own.some(([name]) => name.toLowerCase() === "user-agent");
  return {
    ...Object.fromEntries(own),
    ...(hasAgent ? {} : { "User-Agent": "voicewire" }),
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(body),
    [SIGNATURE_HEADER]: signature,
  };
}
