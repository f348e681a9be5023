/** What the endpoints of pronunciation dictionaries take and give: rules and records. */

import { ApiError } from "../../api-error.ts";
import type { Dictionary, DictionaryVersion } from "../../store/dictionaries.ts";
import { ALPHABETS, readPronunciation } from "../../text/phonemes.ts";
import { MAX_SAID_LENGTH, MAX_STRING_LENGTH, type PronunciationRule } from "../../text/pronunciation.ts";
import { accountId } from "../account/user.ts";
import type { ServiceContext } from "../context.ts";
import { BOOLEAN, INTEGER, named, nullable, oneOf, record, STRING } from "../json-schema.ts";
import { boolean, enumeration, list, literal, taggedUnion, text } from "../kinds.ts";
import { object, optional, required, type Schema, withDefault } from "../schema.ts";

export const PATH = "/v1/pronunciation-dictionaries";
export const TAG = "Pronunciation dictionaries";
/** Rules that one version may have. */
const MAX_RULES = 5000;
const MAX_NAME_LENGTH = 200;
const MAX_DESCRIPTION_LENGTH = 2000;

export const DICTIONARY_ID = required(text(), "Any other than those of the list is refused with 404.");
export const NAME = text({ later: { minLength: 1, maxLength: MAX_NAME_LENGTH } });
export const DESCRIPTION = optional(text({ later: { maxLength: MAX_DESCRIPTION_LENGTH } }), "For display.");
export const WORKSPACE_ACCESS = optional(
  enumeration(["admin", "editor", "commenter", "viewer"]),
  "Of the others in the workspace. This service has one user, who is its admin.",
);

const REPLACED = {
  string_to_replace: required(
    text({ later: { minLength: 1, maxLength: MAX_STRING_LENGTH } }),
    "What stands in the text.",
  ),
  case_sensitive: withDefault(boolean(), true, "Whether upper and lower case must be the same."),
  word_boundaries: withDefault(boolean(), true, "Whether it must be a whole word."),
};
const ALIAS_RULE = object({
  type: required(literal(["alias"]), "Another spelling."),
  ...REPLACED,
  alias: required(text({ later: { minLength: 1, maxLength: MAX_SAID_LENGTH } }), "What is said instead."),
});
const PHONEME_RULE = object({
  type: required(literal(["phoneme"]), "Its sounds."),
  ...REPLACED,
  phoneme: required(
    text({ later: { minLength: 1, maxLength: MAX_SAID_LENGTH } }),
    "Sounds of English; a symbol that stands for none is refused with 400 and named.",
  ),
  alphabet: required(text({ later: { enum: [...ALPHABETS] } }), "What the phoneme is written in."),
});

/** A rule as it was sent; its bounds are judged by requireRules. */
interface SentRule {
  readonly type: "alias" | "phoneme";
  readonly string_to_replace: string;
  readonly case_sensitive: boolean;
  readonly word_boundaries: boolean;
  readonly alias?: string;
  readonly phoneme?: string;
  readonly alphabet?: string;
}
const RULE: Schema<SentRule> = taggedUnion<SentRule>("type", { alias: ALIAS_RULE, phoneme: PHONEME_RULE });

export const RULES = required(
  list(RULE, { later: { maxItems: MAX_RULES } }),
  "Where several fit at one place of a text, the first is used.",
);

/** Throws the 400 of the first rule that can't be kept. */
export function rulesOf(sent: readonly SentRule[]): PronunciationRule[] {
  const rules = sent.map((rule): PronunciationRule => {
    const base = {
      stringToReplace: rule.string_to_replace,
      caseSensitive: rule.case_sensitive,
      wordBoundaries: rule.word_boundaries,
    };
    if (rule.type === "alias") return { ...base, type: "alias", alias: rule.alias ?? "" };
    const alphabet = ALPHABETS.find((known) => known === rule.alphabet);
    if (alphabet === undefined) {
      throw refused(
        `The alphabet '${(rule.alphabet ?? "").slice(0, 40)}' is none of ${ALPHABETS.join(", ")}.`,
      );
    }
    return { ...base, type: "phoneme", phoneme: rule.phoneme ?? "", alphabet };
  });
  requireRules(rules);
  return rules;
}

/** Throws the 400 of too many rules, and of the first one that is empty, too long or no sounds of the engine's. */
export function requireRules(rules: readonly PronunciationRule[]): void {
  if (rules.length > MAX_RULES) {
    throw refused(`A dictionary can have at most ${MAX_RULES} rules, but ${rules.length} were given.`);
  }
  for (const rule of rules) {
    const shown = `The rule for '${rule.stringToReplace.slice(0, 40)}'`;
    requireLength(shown, "string_to_replace", rule.stringToReplace, MAX_STRING_LENGTH);
    if (rule.type === "alias") requireLength(shown, "alias", rule.alias, MAX_SAID_LENGTH);
    else {
      requireLength(shown, "phoneme", rule.phoneme, MAX_SAID_LENGTH);
      const read = readPronunciation(rule.phoneme, rule.alphabet);
      if ("unknown" in read) {
        throw refused(
          `${shown} has the symbol '${read.unknown.slice(0, 16)}', which is no English sound in ${rule.alphabet}.`,
        );
      }
    }
  }
}

function requireLength(shown: string, name: string, value: string, most: number): void {
  if (value.trim() !== "" && value.length <= most) return;
  throw refused(`${shown} has a ${name} of ${value.length} characters, expected 1 to ${most}, not blank.`);
}

function refused(message: string): ApiError {
  return ApiError.unfit("invalid_parameters", message, { param: "rules" });
}

/** Throws the 400 of a name or description that is blank or too long. */
export function requireNames(given: {
  readonly name?: string | undefined;
  readonly description?: string | undefined;
}): void {
  const { name, description = "" } = given;
  if (name !== undefined && (name.trim() === "" || name.length > MAX_NAME_LENGTH)) {
    const message = `The name has ${name.length} characters, expected 1 to ${MAX_NAME_LENGTH}, not blank.`;
    throw ApiError.unfit("invalid_parameters", message, { param: "name" });
  }
  if (description.length > MAX_DESCRIPTION_LENGTH) {
    const message = `The description is longer than ${MAX_DESCRIPTION_LENGTH} characters.`;
    throw ApiError.unfit("invalid_parameters", message, { param: "description" });
  }
}

export function notFound(id: string): ApiError {
  return ApiError.notFound("pronunciation_dictionary", id);
}

/** For a dictionary that is there. */
export function versionNotFound(versionId: string): ApiError {
  const message = `The pronunciation dictionary has no version with version_id '${versionId.slice(0, 64)}'.`;
  const code = "pronunciation_dictionary_not_found";
  return ApiError.of({ type: "not_found", code, message, param: "version_id" });
}

/** More dictionaries or rules than the service keeps. */
export function tooMuch(): ApiError {
  const message = "The service keeps as many pronunciation dictionaries and rules as it can.";
  return ApiError.unfit("dictionary_limit_reached", message);
}

const PERMISSION = nullable(oneOf(["admin", "editor", "commenter", "viewer"]));
export const CREATED = named(
  "AddedDictionary",
  record({
    id: STRING,
    name: STRING,
    created_by: STRING,
    creation_time_unix: INTEGER,
    version_id: STRING,
    version_rules_num: INTEGER,
    description: nullable(STRING),
    permission_on_resource: PERMISSION,
  }),
);
const METADATA_FIELDS = {
  id: STRING,
  latest_version_id: STRING,
  latest_version_rules_num: INTEGER,
  name: STRING,
  permission_on_resource: PERMISSION,
  created_by: STRING,
  creation_time_unix: INTEGER,
  archived_time_unix: nullable(INTEGER),
  description: nullable(STRING),
};
export const METADATA = named("Dictionary", record(METADATA_FIELDS));
const RULE_FIELDS = { string_to_replace: STRING, case_sensitive: BOOLEAN, word_boundaries: BOOLEAN };
const KEPT_RULE = named("DictionaryRule", {
  oneOf: [
    record({ type: { ...STRING, const: "alias" }, ...RULE_FIELDS, alias: STRING }),
    record({
      type: { ...STRING, const: "phoneme" },
      ...RULE_FIELDS,
      phoneme: STRING,
      alphabet: oneOf(ALPHABETS),
    }),
  ],
});
export const WITH_RULES = named(
  "DictionaryWithRules",
  record({ ...METADATA_FIELDS, rules: { type: "array", items: KEPT_RULE } }),
);
export const VERSION = named(
  "DictionaryVersion",
  record({ id: STRING, version_id: STRING, version_rules_num: INTEGER }),
);

export function createdRecord(context: ServiceContext, dictionary: Dictionary): object {
  return {
    id: dictionary.id,
    name: dictionary.name,
    created_by: accountId("user", context.key),
    creation_time_unix: dictionary.createdAtUnix,
    version_id: dictionary.latest.id,
    version_rules_num: dictionary.latest.rulesCount,
    description: dictionary.description,
    permission_on_resource: "admin",
  };
}

export function metadataRecord(context: ServiceContext, dictionary: Dictionary): object {
  return {
    id: dictionary.id,
    latest_version_id: dictionary.latest.id,
    latest_version_rules_num: dictionary.latest.rulesCount,
    name: dictionary.name,
    permission_on_resource: "admin",
    created_by: accountId("user", context.key),
    creation_time_unix: dictionary.createdAtUnix,
    archived_time_unix: dictionary.archivedAtUnix,
    description: dictionary.description,
  };
}

export function ruleRecord(rule: PronunciationRule): object {
  const base = {
    type: rule.type,
    string_to_replace: rule.stringToReplace,
    case_sensitive: rule.caseSensitive,
    word_boundaries: rule.wordBoundaries,
  };
  if (rule.type === "alias") return { ...base, alias: rule.alias };
  return { ...base, phoneme: rule.phoneme, alphabet: rule.alphabet };
}

export function versionRecord(dictionaryId: string, version: DictionaryVersion): object {
  return { id: dictionaryId, version_id: version.id, version_rules_num: version.rulesCount };
}
