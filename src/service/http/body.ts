/** A request's JSON body as an object, or the answers that FastAPI gives to a body that is none. */
import { ApiError, type ValidationEntry } from "../api-error.ts";
import { allMissing, isRecord, type Shape } from "./schema.ts";

interface RawBody {
  /** The Content-Type header. */
  readonly contentType: string | undefined;
  readonly bytes: Uint8Array | undefined;
}

/**
 * What readShape reads; an empty body has no fields. A body that is no object lacks every one of the shape's, optional or
 * not, as live answers show. Throws ApiError 422, with `faults` before its own, also for malformed JSON (then alone), and
 * 400 for bad UTF-8.
 */
export function jsonSource(
  raw: RawBody,
  options: { readonly shape: Shape; readonly faults: readonly ValidationEntry[] },
): Readonly<Record<string, unknown>> {
  if (raw.bytes === undefined || raw.bytes.length === 0) return {};
  const value = isJson(raw.contentType) ? parse(raw.bytes) : undefined;
  if (isRecord(value)) return value;
  throw ApiError.invalid([...options.faults, ...allMissing(options.shape)]);
}

/** A missing Content-Type counts as JSON. */
function isJson(contentType: string | undefined): boolean {
  if (contentType === undefined || contentType === "") return true;
  const type = contentType.split(";")[0]?.trim().toLowerCase() ?? "";
  return type === "application/json" || (type.startsWith("application/") && type.endsWith("+json"));
}

function parse(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new ApiError(400, "There was an error parsing the body");
  }
  try {
    return JSON.parse(text);
  } catch (thrown) {
    const offset = offsetOf(thrown);
    const loc = offset === undefined ? ["body"] : ["body", offset];
    throw ApiError.invalid([{ type: "json_invalid", loc, msg: "Body is not valid JSON", input: {} }]);
  }
}

/** UTF-16 units before the fault. Undefined where the engine's message has none; it may quote the body, so it is not passed on. */
function offsetOf(thrown: unknown): number | undefined {
  const found = thrown instanceof Error ? /at position (\d+)/.exec(thrown.message) : null;
  return found === null ? undefined : Number(found[1]);
}
