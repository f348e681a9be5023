/**
 * Where spans go and which are kept, from the variables that OpenTelemetry has for it (OTLP exporter and SDK environment
 * specification). Only `otlp-endpoint` is a setting of ours, too.
 */
import { GatewayError } from "../errors.ts";
import { createSampler, type Sampler } from "./sampler.ts";
import type { Attributes } from "./span.ts";

export interface TracingSettings {
  /** URL of the collector, with its path. */
  readonly url: string;
  /** May hold its key: never logged. */
  readonly headers: Readonly<Record<string, string>>;
  /** What the process is. */
  readonly resource: Attributes;
  readonly sampler: Sampler;
  /** Longest wait for the collector's answer. */
  readonly timeoutMs: number;
  /** Longest wait of a span that has ended. */
  readonly delayMs: number;
  /** Spans that wait at most. */
  readonly maxQueued: number;
  /** Spans of one request at most. */
  readonly maxBatch: number;
}

type Env = Readonly<Record<string, string | undefined>>;

const DEFAULT_SAMPLER = "parentbased_always_on";
const TRACES_PATH = "v1/traces";

/** `endpoint`: base URL of the collector, "" where none is set. null: nothing is traced. Throws invalid_config. */
export function tracingSettings(endpoint: string, env: Env): TracingSettings | null {
  const own = textOf(env, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  if ((endpoint === "" && own === undefined) || textOf(env, "OTEL_SDK_DISABLED")?.toLowerCase() === "true")
    return null;
  if (textOf(env, "OTEL_TRACES_EXPORTER") === "none") return null;
  checkProtocol(env);
  const wanted = { ...pairsOf(env, "OTEL_RESOURCE_ATTRIBUTES") };
  const name = textOf(env, "OTEL_SERVICE_NAME") ?? wanted["service.name"] ?? "voicewire";
  return {
    url: own === undefined ? tracesUrl(endpoint) : checkedUrl(own, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").href,
    headers: {
      ...pairsOf(env, "OTEL_EXPORTER_OTLP_HEADERS"),
      ...pairsOf(env, "OTEL_EXPORTER_OTLP_TRACES_HEADERS"),
    },
    resource: { ...wanted, "service.name": name },
    sampler: createSampler(
      textOf(env, "OTEL_TRACES_SAMPLER") ?? DEFAULT_SAMPLER,
      textOf(env, "OTEL_TRACES_SAMPLER_ARG"),
    ),
    timeoutMs: countOf(env, ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"], 10_000),
    delayMs: countOf(env, ["OTEL_BSP_SCHEDULE_DELAY"], 5000),
    maxQueued: countOf(env, ["OTEL_BSP_MAX_QUEUE_SIZE"], 2048),
    maxBatch: countOf(env, ["OTEL_BSP_MAX_EXPORT_BATCH_SIZE"], 512),
  };
}

/** We speak JSON alone. A collector's HTTP port takes protobuf and JSON, its gRPC port neither of ours. */
function checkProtocol(env: Env): void {
  const name = "OTEL_EXPORTER_OTLP_PROTOCOL";
  const protocol = textOf(env, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") ?? textOf(env, name) ?? "http/json";
  if (protocol !== "grpc") return;
  const what = "spans go over HTTP as JSON, expected http/json and the collector's HTTP port (4318)";
  throw new GatewayError("invalid_config", `${name}: "grpc", but ${what}`, { field: name });
}

function tracesUrl(endpoint: string): string {
  const url = checkedUrl(endpoint, "otlp-endpoint");
  url.pathname = `${url.pathname.replace(/\/$/, "")}/${TRACES_PATH}`;
  return url.href;
}

/** A URL can hold a password, and is not repeated. */
function checkedUrl(text: string, field: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && /^https?:$/.test(url.protocol)) return url;
  const what = "no http(s) URL, expected the collector's, e.g. http://127.0.0.1:4318";
  throw new GatewayError("invalid_config", `${field}: ${what}`, { field });
}

/** `key=value,key=value`, percent-encoded (W3C Baggage). The values may be secret, and are not repeated. */
function pairsOf(env: Env, name: string): Record<string, string> {
  const entries = (textOf(env, name) ?? "").split(",").filter((entry) => entry.trim() !== "");
  return Object.fromEntries(
    entries.map((entry, index) => {
      const at = entry.indexOf("=");
      const pair = at < 1 ? null : decoded(entry.slice(0, at), entry.slice(at + 1));
      if (pair !== null) return pair;
      const what = `${name}: entry ${index + 1} can't be read, expected key=value with commas, percent-encoded`;
      throw new GatewayError("invalid_config", what, { field: name });
    }),
  );
}

function decoded(key: string, value: string): [string, string] | null {
  try {
    return [decodeURIComponent(key.trim()), decodeURIComponent(value.trim())];
  } catch (thrown) {
    if (thrown instanceof URIError) return null;
    throw thrown;
  }
}

/** The first that is set. */
function countOf(env: Env, names: readonly string[], otherwise: number): number {
  const name = names.find((each) => textOf(env, each) !== undefined);
  if (name === undefined) return otherwise;
  const count = Number(textOf(env, name));
  if (Number.isSafeInteger(count) && count > 0) return count;
  throw new GatewayError("invalid_config", `${name}: expected a whole number above 0`, { field: name });
}

/** An empty variable counts as unset. */
function textOf(env: Env, name: string): string | undefined {
  const text = env[name]?.trim();
  return text === "" ? undefined : text;
}
