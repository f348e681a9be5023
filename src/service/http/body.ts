/** A request's JSON body as its fields, or the answers that FastAPI gives to a body that is no JSON object. */
import { Fields, isRecord } from "./pydantic.ts";
import { findJsonFault } from "./python-json.ts";
import { Refusal, type ValidationEntry } from "./refusal.ts";

export interface RawBody {
  /** The Content-Type header. */
  readonly contentType: string | undefined;
  readonly bytes: Uint8Array | undefined;
}

/**
 * The fields of the body; `names` are all of its fields in the order of the interface. A body that is no object lacks
 * every one of them, optional or not, as live answers show. Throws Refusal 422 for malformed JSON and 400 for bad UTF-8.
 */
export function readBody(
  raw: RawBody,
  options: { readonly names: readonly string[]; readonly faults: ValidationEntry[] },
): Fields {
  const { names, faults } = options;
  if (raw.bytes === undefined || raw.bytes.length === 0) return new Fields({}, { place: ["body"], faults });
  const value = isJson(raw.contentType) ? parse(raw.bytes) : undefined;
  if (isRecord(value)) return new Fields(value, { place: ["body"], faults });
  const none = new Fields({}, { place: ["body"], faults });
  for (const name of names) none.missing(name);
  throw Refusal.invalid(faults);
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
    throw new Refusal(400, "There was an error parsing the body");
  }
  try {
    return JSON.parse(text);
  } catch {
    const { message, position } = findJsonFault(text);
    throw Refusal.invalid([
      {
        type: "json_invalid",
        loc: ["body", position],
        msg: "JSON decode error",
        input: {},
        ctx: { error: message },
      },
    ]);
  }
}
