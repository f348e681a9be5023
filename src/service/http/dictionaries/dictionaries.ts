/** Section "Pronunciation dictionaries": made from a file or from rules, listed, shown, renamed and downloaded. */
import type { FastifyInstance } from "fastify";
import { ApiError } from "../../api-error.ts";
import type { UploadedFile } from "../../media/upload.ts";
import type { Dictionary } from "../../store/dictionaries.ts";
import { readPls, writePls } from "../../text/pls.ts";
import type { PronunciationRule } from "../../text/pronunciation.ts";
import { XmlError } from "../../text/xml.ts";
import { bytes, json } from "../answers.ts";
import type { ServiceContext } from "../context.ts";
import { file } from "../form.ts";
import { BOOLEAN, listOf, nullable, record, STRING } from "../json-schema.ts";
import { boolean, enumeration, integer, text } from "../kinds.ts";
import { operation, route } from "../operation.ts";
import { optional, required, type Values, withDefault } from "../schema.ts";
import {
  CREATED,
  createdRecord,
  DESCRIPTION,
  DICTIONARY_ID,
  METADATA,
  metadataRecord,
  NAME,
  notFound,
  PATH,
  RULES,
  requireNames,
  requireRules,
  ruleRecord,
  rulesOf,
  TAG,
  tooMuch,
  versionNotFound,
  WITH_RULES,
  WORKSPACE_ACCESS,
} from "./dictionary-schema.ts";

const MAX_PAGE = 100;
const DEFAULT_PAGE = 30;
const MAX_PLS_BYTES = 1024 ** 2;
const PLS_TYPE = "application/pls+xml";

const FROM_FILE = operation({
  method: "POST",
  url: `${PATH}/add-from-file`,
  id: "create_pronunciation_dictionary_from_file",
  tag: TAG,
  summary: "A dictionary from a PLS file",
  body: {
    kind: "form",
    name: "AddDictionaryFromFileForm",
    shape: {
      name: required(NAME, "For display; not blank."),
      file: optional(
        file(),
        "A lexicon in W3C PLS 1.0, UTF-8, of at most 1 MB; without it there are no rules.",
      ),
      description: DESCRIPTION,
      workspace_access: WORKSPACE_ACCESS,
    },
  },
  errors: [429],
  answer: json(CREATED, "The dictionary."),
});
const FROM_RULES = operation({
  method: "POST",
  url: `${PATH}/add-from-rules`,
  id: "create_pronunciation_dictionary_from_rules",
  tag: TAG,
  summary: "A dictionary from rules",
  body: {
    kind: "json",
    name: "AddDictionaryFromRulesRequest",
    shape: {
      rules: RULES,
      name: required(NAME, "For display; not blank."),
      description: DESCRIPTION,
      workspace_access: WORKSPACE_ACCESS,
    },
  },
  answer: json(CREATED, "The dictionary."),
});
const PAGE = {
  cursor: optional(text(), "The next_cursor of the page before."),
  page_size: withDefault(
    integer({ later: { minimum: 1, maximum: MAX_PAGE } }),
    DEFAULT_PAGE,
    "At most so many.",
  ),
  sort: withDefault(
    enumeration(["creation_time_unix", "name"]),
    "creation_time_unix",
    "What they are sorted by.",
  ),
  sort_direction: withDefault(
    text({ later: { enum: ["ASCENDING", "DESCENDING", "asc", "desc"] } }),
    "DESCENDING",
    "In upper or lower case.",
  ),
  include_archived: withDefault(boolean(), false, "Whether archived ones are listed, too."),
} as const;
const LIST = operation({
  method: "GET",
  url: PATH,
  id: "get_pronunciation_dictionaries",
  tag: TAG,
  summary: "The dictionaries by page, without their rules",
  query: PAGE,
  answer: json(
    record({
      pronunciation_dictionaries: listOf(METADATA),
      next_cursor: nullable(STRING),
      has_more: BOOLEAN,
    }),
    "A page.",
  ),
});
const ONE = operation({
  method: "GET",
  url: `${PATH}/:dictionary_id`,
  id: "get_pronunciation_dictionary",
  tag: TAG,
  summary: "One dictionary with the rules of its latest version",
  params: { dictionary_id: DICTIONARY_ID },
  errors: [404],
  answer: json(WITH_RULES, "The dictionary."),
});
const UPDATE = operation({
  method: "PATCH",
  url: `${PATH}/:dictionary_id`,
  id: "patch_pronunciation_dictionary",
  tag: TAG,
  summary: "Renames or archives a dictionary",
  params: { dictionary_id: DICTIONARY_ID },
  body: {
    kind: "json",
    name: "PatchDictionaryRequest",
    shape: {
      archived: optional(boolean(), "Archived ones are left out of the list; speech may still name them."),
      name: optional(NAME, "For display; not blank."),
    },
  },
  errors: [404],
  answer: json(METADATA, "The dictionary as it is now."),
});
const DOWNLOAD = operation({
  method: "GET",
  url: `${PATH}/:dictionary_id/:version_id/download`,
  id: "get_pronunciation_dictionary_version_pls",
  tag: TAG,
  summary: "A version as a PLS file",
  params: {
    dictionary_id: DICTIONARY_ID,
    version_id: required(text(), "Any other than one of its versions is refused with 404."),
  },
  errors: [404],
  answer: bytes([PLS_TYPE], "The lexicon."),
});

/** Everything under /v1/pronunciation-dictionaries but the changes of rules. */
export function registerDictionaries(app: FastifyInstance, context: ServiceContext): void {
  const { dictionaries } = context.store;
  const add = (
    given: { readonly name: string; readonly description: string | undefined },
    rules: readonly PronunciationRule[],
  ): object => {
    const { name, description = null } = given;
    const added = dictionaries.add({ name, description, createdAtUnix: nowUnix() }, rules);
    if (added === undefined) throw tooMuch();
    return createdRecord(context, added);
  };
  app.register(async (scope) => {
    await context.uploads.register(scope);
    route(scope, context, FROM_FILE, async ({ body }) => {
      requireNames(body);
      const rules = body.file === undefined ? [] : rulesOfFile(await readFile(body.file));
      return add(body, rules);
    });
  });
  route(app, context, FROM_RULES, async ({ body }) => {
    requireNames(body);
    return add(body, rulesOf(body.rules));
  });
  route(app, context, LIST, async ({ query }) => listPage(context, query));
  route(app, context, ONE, async ({ params: { dictionary_id: id } }) => ({
    ...metadataRecord(context, requireDictionary(context, id)),
    rules: (dictionaries.rules(id, undefined) ?? []).map(ruleRecord),
  }));
  route(app, context, UPDATE, async ({ params: { dictionary_id: id }, body }) => {
    const { archivedAtUnix } = requireDictionary(context, id);
    requireNames(body);
    const archived = body.archived === true ? (archivedAtUnix ?? nowUnix()) : null;
    dictionaries.update(id, {
      name: body.name,
      archivedAtUnix: body.archived === undefined ? undefined : archived,
    });
    return metadataRecord(context, requireDictionary(context, id));
  });
  route(app, context, DOWNLOAD, async ({ params, reply }) => {
    const { id } = requireDictionary(context, params.dictionary_id);
    const rules = dictionaries.rules(id, params.version_id);
    if (rules === undefined) throw versionNotFound(params.version_id);
    return reply.type(PLS_TYPE).send(writePls(rules));
  });
}

function requireDictionary({ store }: ServiceContext, id: string): Dictionary {
  const dictionary = store.dictionaries.get(id);
  if (dictionary === undefined) throw notFound(id);
  return dictionary;
}

function listPage(context: ServiceContext, query: Values<typeof PAGE>): object {
  const { page_size: count, sort } = query;
  if (count < 1 || count > MAX_PAGE) {
    const message = `Invalid page_size ${count}, expected 1 to ${MAX_PAGE}.`;
    throw ApiError.unfit("invalid_page_size", message, { param: "page_size" });
  }
  const [, direction] = /^(asc|desc)(?:ending)?$/i.exec(query.sort_direction) ?? [];
  if (direction === undefined) {
    const message = "Invalid sort_direction, expected ASCENDING or DESCENDING.";
    throw ApiError.unfit("invalid_parameters", message, { param: "sort_direction" });
  }
  const found = context.store.dictionaries.list({
    sort,
    isDescending: direction.toLowerCase() === "desc",
    includesArchived: query.include_archived,
    after: query.cursor === "" ? undefined : query.cursor,
    // One more says whether there is another page.
    count: count + 1,
  });
  if (found === undefined) {
    const message = "Invalid cursor, expected one that an earlier page gave.";
    throw ApiError.unfit("invalid_cursor", message, { param: "cursor" });
  }
  const page = found.slice(0, count);
  const hasMore = found.length > count;
  return {
    pronunciation_dictionaries: page.map((dictionary) => metadataRecord(context, dictionary)),
    next_cursor: hasMore ? (page.at(-1)?.id ?? null) : null,
    has_more: hasMore,
  };
}

async function readFile(uploaded: UploadedFile): Promise<string> {
  if (uploaded.bytes > MAX_PLS_BYTES) {
    const message = `The file has ${uploaded.bytes} bytes, expected at most ${MAX_PLS_BYTES}.`;
    throw ApiError.of({ type: "invalid_request", code: "request_too_large", message, param: "file" });
  }
  const parts: Uint8Array[] = [];
  for await (const part of uploaded.read()) parts.push(Uint8Array.from(part));
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(parts));
  } catch {
    throw noLexicon("it is not in UTF-8");
  }
}

function rulesOfFile(document: string): PronunciationRule[] {
  let rules: PronunciationRule[];
  try {
    rules = readPls(document);
  } catch (thrown) {
    if (thrown instanceof XmlError) throw noLexicon(thrown.message);
    throw thrown;
  }
  requireRules(rules);
  return rules;
}

function noLexicon(why: string): ApiError {
  const message = `The file is no lexicon in PLS 1.0: ${why}.`;
  return ApiError.unfit("invalid_file_type", message, { param: "file" });
}

function nowUnix(): number {
  return Math.floor(Date.now() / 1000);
}
