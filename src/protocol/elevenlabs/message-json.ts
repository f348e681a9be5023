/**
 * What the messages of all vendor sockets have in common: one JSON object, null as good as absent. Unknown keys are
 * ignored, as by the vendor, and named.
 */
import { z } from "zod";
import { readJson } from "../read-json.ts";

/** At most three in a request, applied in order. */
export interface DictionaryLocator {
  readonly pronunciation_dictionary_id: string;
  readonly version_id?: string;
}

const MAX_LOCATORS = 3;
const MAX_ID_CHARS = 256;

const flag = z.boolean().nullish();

export const shared = {
  context_id: z.string().max(MAX_ID_CHARS).nullish(),
  contextId: z.string().max(MAX_ID_CHARS).nullish(),
  flush: flag,
  close_context: flag,
  close_socket: flag,
  pronunciation_dictionary_locators: z
    .array(
      z.object({
        pronunciation_dictionary_id: z.string().min(1).max(MAX_ID_CHARS),
        version_id: z.string().max(MAX_ID_CHARS).nullish(),
      }),
    )
    .max(MAX_LOCATORS)
    .nullish(),
};

/** The first message may have them. */
export const credentials = z.object({
  xi_api_key: z.string().nullish(),
  "xi-api-key": z.string().nullish(),
  single_use_token: z.string().nullish(),
  authorization: z.string().nullish(),
});

/** Names of what nothing is done of in a value that fits the schema, such as `voice_settings.volume`. */
export function ignoredIn(value: unknown, schema: z.ZodType, place = ""): string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) {
    return ignoredIn(value, schema.unwrap() as z.ZodType, place);
  }
  if (schema instanceof z.ZodArray && Array.isArray(value)) {
    return value.flatMap((item, at) => ignoredIn(item, schema.element as z.ZodType, `${place}${at}.`));
  }
  if (!(schema instanceof z.ZodObject) || typeof value !== "object" || value === null) return [];
  const shape = schema.shape as Readonly<Record<string, z.ZodType>>;
  return Object.entries(value).flatMap(([name, inner]) => {
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
    return field === undefined ? [`${place}${name}`] : ignoredIn(inner, field, `${place}${name}.`);
  });
}

export function locatorsOf(
  given:
    | readonly { pronunciation_dictionary_id: string; version_id?: string | null | undefined }[]
    | null
    | undefined,
): readonly DictionaryLocator[] | undefined {
  if (given === null || given === undefined || given.length === 0) return undefined;
  return given.map(({ pronunciation_dictionary_id, version_id }) => ({
    pronunciation_dictionary_id,
    ...(version_id ? { version_id } : {}),
  }));
}

/** Who a client says it is in its first message. */
export interface MessageCredentials {
  /** Keys and tokens; none where there is none. */
  readonly keys: readonly string[];
  /** As a header of that name has it; possibly empty. */
  readonly authorization: string;
}

/** Throws GatewayError "malformed_json" or "invalid_field". */
export function messageCredentials(json: string): MessageCredentials {
  const { authorization, ...keys } = readJson(json, credentials, "Message");
  return {
    keys: Object.values(keys).filter((key) => typeof key === "string"),
    authorization: authorization ?? "",
  };
}

/** The object without null and absent fields; undefined where nothing is left. */
export function stripped<T extends object>(
  given: T | null | undefined,
): { [K in keyof T]?: NonNullable<T[K]> } | undefined {
  const entries = Object.entries(given ?? {}).filter(([, value]) => value !== null && value !== undefined);
  return entries.length === 0
    ? undefined
    : (Object.fromEntries(entries) as { [K in keyof T]?: NonNullable<T[K]> });
}
