/** Reads JSON that comes from outside. Errors name the field, and never what stands in it. */
import type { z } from "zod";
import { GatewayError } from "../errors.ts";

/** `what`: how an error calls the text. Throws malformed_json. */
export function parseJson(json: string, what: string): unknown {
  try {
    return JSON.parse(json);
  } catch (cause) {
    throw new GatewayError("malformed_json", `${what} is not JSON, expected one JSON object`, { cause });
  }
}

/** Throws malformed_json, and invalid_field with the field. */
export function readJson<T>(json: string, schema: z.ZodType<T>, what: string): T {
  return readValue(parseJson(json, what), schema, what);
}

/** Throws invalid_field with the field. */
export function readValue<T>(value: unknown, schema: z.ZodType<T>, what: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const field = (issue?.path ?? []).join(".");
  const subject = field === "" ? what : `Field '${field}'`;
  const message = `${subject} is not valid: ${reasonOf(issue)}`;
  throw new GatewayError("invalid_field", message, field === "" ? {} : { field });
}

/** How zod begins what it says of a kind that there is not. */
const KINDS = "Invalid discriminator value. Expected ";

export function reasonOf(issue: z.core.$ZodIssue | undefined): string {
  const message = issue?.message ?? "unknown reason";
  if (message.startsWith(KINDS)) {
    const kinds = message.slice(KINDS.length).replaceAll("'", "").replaceAll(" | ", ", ");
    return `expected one of ${kinds}`;
  }
  const missing = /^Invalid input: expected (.+), received undefined$/.exec(message);
  return missing === null
    ? message.replace(/^Invalid input: /, "")
    : `it is missing, expected a ${missing[1]}`;
}
