/** The span of one HTTP request that is answered with speech or passed on, and where those of a socket stand. */
import type { HttpRequest } from "uWebSockets.js";
import type { Clock } from "../kit/clock.ts";
import { readTraceparent } from "../kit/traceparent.ts";
import type { Span } from "../tracing/span.ts";
import type { Traced, Tracer } from "../tracing/tracer.ts";

/** So many segments of a path have no ids. */
const NAMED_SEGMENTS = 3;

/** Within what the requests of a socket stand: its handshake says it. undefined: nothing is traced. */
export function tracedBy(req: HttpRequest, tracer: Tracer | undefined): Traced | undefined {
  return tracer?.within(readTraceparent(req.getHeader("traceparent")));
}

/** To be called before the request's handler returns. null: its trace is not kept. */
export function beginHttpSpan(
  req: HttpRequest,
  { tracer, clock }: { readonly tracer?: Tracer | undefined; readonly clock: Clock },
): Span | null {
  if (tracer === undefined) return null;
  const method = req.getMethod().toUpperCase();
  const route = req.getUrl().split("/", NAMED_SEGMENTS).join("/");
  return tracer.begin(readTraceparent(req.getHeader("traceparent")), {
    name: `${method} ${route}`,
    kind: "server",
    startMs: clock.nowMs(),
    attributes: { "http.request.method": method, "http.route": route },
  });
}
