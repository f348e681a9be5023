/**
 * Options of a client for the service that speaks, passed on as they are: under the upstream's name, beside the fields that the
 * gateway writes. None of these can be changed by them.
 */
import { GatewayError } from "../errors.ts";
import type { VendorOptions } from "../protocol/vendor-options.ts";

/** What the first upstream is called there. */
export const FIRST_UPSTREAM = "elevenlabs";

type Json = Readonly<Record<string, unknown>>;

/** The JSON of a request with the options for this upstream. Throws upstream_invalid with the field where one is taken. */
export function withVendorOptions(body: string, name: string, options: VendorOptions | undefined): string {
  const own = options?.[name];
  if (own === undefined) return body;
  return JSON.stringify(merged(JSON.parse(body) as Json, own, `vendor_options.${name}`));
}

/** Names of options that are not this upstream's, as the client is told of them. */
export function othersOptions(name: string | null, options: VendorOptions | undefined): string[] {
  return Object.keys(options ?? {}).flatMap((other) => (other === name ? [] : [`vendor_options.${other}`]));
}

/** All that is text in them: to be kept out of messages. */
export function textsOfOptions(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsOfOptions) : [];
}

/** The same for the same options, in whatever order they came. */
export function keyOfOptions(options: VendorOptions | undefined): string {
  return options === undefined ? "" : JSON.stringify(sorted(options));
}

function merged(ours: Json, theirs: Json, field: string): Json {
  const all = new Map(Object.entries(ours));
  for (const [key, value] of Object.entries(theirs)) {
    const [own, place] = [all.get(key), `${field}.${key}`];
    if (!all.has(key)) all.set(key, value);
    else if (isObject(own) && isObject(value)) all.set(key, merged(own, value, place));
    else {
      throw new GatewayError(
        "upstream_invalid",
        `Field ${place} is one that the gateway sends itself: expected others`,
        { field: place },
      );
    }
  }
  return Object.fromEntries(all);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.map(([key, inner]) => [key, sorted(inner)]);
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
