/** A form's field that holds JSON, as pydantic reads one. */
import { isRecord } from "../http/pydantic.ts";
import { findJsonFault } from "../http/python-json.ts";
import type { ValidationEntry } from "../http/refusal.ts";

/** Characters of a wrong input that the answer repeats. */
const MAX_SHOWN = 200;

/** The object that the field holds; undefined where the field is absent, null, or at fault, which is then added to `faults`. */
export function jsonObject(
  text: string | undefined,
  options: { readonly name: string; readonly faults: ValidationEntry[] },
): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined) return undefined;
  const { name, faults } = options;
  const loc = ["body", name];
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const { message } = findJsonFault(text);
    const input = text.slice(0, MAX_SHOWN);
    faults.push({
      type: "json_invalid",
      loc,
      msg: `Invalid JSON: ${message}`,
      input,
      ctx: { error: message },
    });
    return undefined;
  }
  if (value === null) return undefined;
  if (isRecord(value)) return value;
  faults.push({
    type: "dict_type",
    loc,
    msg: "Input should be a valid dictionary",
    input: text.slice(0, MAX_SHOWN),
  });
  return undefined;
}
