/** Which traces are kept: the samplers that OTEL_TRACES_SAMPLER names (OpenTelemetry SDK specification). */
import { GatewayError } from "../errors.ts";
import type { TraceContext } from "../kit/traceparent.ts";

/** Whether a span is kept that begins in this trace; `parent` null: it is the trace's first one. */
export type Sampler = (traceId: string, parent: TraceContext | null) => boolean;

const NAMES = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;
const PARENT_BASED = "parentbased_";

/** `ratio`: of traces that are kept, 0 to 1, as text; default 1. Throws invalid_config. */
export function createSampler(name: string, ratio: string | undefined): Sampler {
  if (!NAMES.some((known) => known === name)) {
    const what = `OTEL_TRACES_SAMPLER: ${JSON.stringify(name)}, expected one of ${NAMES.join(", ")}`;
    throw new GatewayError("invalid_config", what, { field: "OTEL_TRACES_SAMPLER" });
  }
  const isParentBased = name.startsWith(PARENT_BASED);
  const own = rootSampler(isParentBased ? name.slice(PARENT_BASED.length) : name, ratio);
  return (traceId, parent) => (isParentBased && parent !== null ? parent.isSampled : own(traceId));
}

function rootSampler(name: string, ratio: string | undefined): (traceId: string) => boolean {
  if (name !== "traceidratio") return () => name === "always_on";
  const share = ratio === undefined ? 1 : Number(ratio);
  if (!(share >= 0 && share <= 1)) {
    const what = `OTEL_TRACES_SAMPLER_ARG: ${JSON.stringify(ratio)}, expected a number from 0 to 1`;
    throw new GatewayError("invalid_config", what, { field: "OTEL_TRACES_SAMPLER_ARG" });
  }
  // The id's last 7 bytes are random (W3C Trace Context level 2): nodes agree on each trace.
  const bound = share * 2 ** 56;
  return (traceId) => Number.parseInt(traceId.slice(-14), 16) < bound;
}
