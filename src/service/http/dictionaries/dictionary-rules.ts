/** Section "Pronunciation dictionaries": each change of rules makes a version. */
import { isDeepStrictEqual } from "node:util";
import type { FastifyInstance } from "fastify";
import type { PronunciationRule } from "../../text/pronunciation.ts";
import { json } from "../answers.ts";
import type { ServiceContext } from "../context.ts";
import { list, text } from "../kinds.ts";
import { operation, route } from "../operation.ts";
import { required } from "../schema.ts";
import {
  DICTIONARY_ID,
  notFound,
  PATH,
  RULES,
  requireRules,
  rulesOf,
  TAG,
  tooMuch,
  VERSION,
  versionRecord,
} from "./dictionary-schema.ts";

const COMMON = {
  method: "POST",
  tag: TAG,
  params: { dictionary_id: DICTIONARY_ID },
  errors: [404],
  answer: json(VERSION, "The new version, or the latest where nothing has changed."),
} as const;
const ADD = operation({
  ...COMMON,
  url: `${PATH}/:dictionary_id/add-rules`,
  id: "add_rules",
  summary: "Adds rules; one for the same string is replaced",
  body: { kind: "json", name: "AddRulesRequest", shape: { rules: RULES } },
});
const SET = operation({
  ...COMMON,
  url: `${PATH}/:dictionary_id/set-rules`,
  id: "set_rules",
  summary: "Replaces all rules",
  body: { kind: "json", name: "SetRulesRequest", shape: { rules: RULES } },
});
const REMOVE = operation({
  ...COMMON,
  url: `${PATH}/:dictionary_id/remove-rules`,
  id: "remove_rules",
  summary: "Removes the rules for some strings",
  body: {
    kind: "json",
    name: "RemoveRulesRequest",
    shape: {
      rule_strings: required(
        list(text()),
        "The string_to_replace of each; one that has no rule changes nothing.",
      ),
    },
  },
});

/** POST /v1/pronunciation-dictionaries/{dictionary_id}/add-rules, /set-rules and /remove-rules. */
export function registerDictionaryRules(app: FastifyInstance, context: ServiceContext): void {
  const { dictionaries } = context.store;
  const change = (
    id: string,
    changed: (rules: readonly PronunciationRule[]) => readonly PronunciationRule[],
  ) => {
    const before = dictionaries.rules(id, undefined);
    if (before === undefined) throw notFound(id);
    const rules = changed(before);
    requireRules(rules);
    const dictionary = dictionaries.get(id);
    if (dictionary !== undefined && isDeepStrictEqual(rules, before))
      return versionRecord(id, dictionary.latest);
    const version = dictionaries.addVersion(id, rules);
    if (version === undefined) throw tooMuch();
    return versionRecord(id, version);
  };
  route(app, context, ADD, async ({ params, body }) =>
    change(params.dictionary_id, (rules) => {
      const added = rulesOf(body.rules);
      return [
        ...without(
          rules,
          added.map(({ stringToReplace }) => stringToReplace),
        ),
        ...added,
      ];
    }),
  );
  route(app, context, SET, async ({ params, body }) =>
    change(params.dictionary_id, () => rulesOf(body.rules)),
  );
  route(app, context, REMOVE, async ({ params, body }) =>
    change(params.dictionary_id, (rules) => without(rules, body.rule_strings)),
  );
}

/** The rules but those for the strings, which are compared as in a text: in NFC. */
function without(
  rules: readonly PronunciationRule[],
  strings: readonly string[],
): readonly PronunciationRule[] {
  const left = new Set(strings.map((one) => one.normalize("NFC")));
  return rules.filter(({ stringToReplace }) => !left.has(stringToReplace.normalize("NFC")));
}
