/** Section "Voices": the catalogue of the embedded voices in both versions of the list. */
import type { FastifyInstance } from "fastify";
import { ApiError } from "../../api-error.ts";
import { labelledLanguage } from "../../convert/stored-voice.ts";
import type { Sample } from "../../store/voices.ts";
import { VOICES } from "../../voice/engine/voices.ts";
import { json } from "../answers.ts";
import type { ServiceContext } from "../context.ts";
import { BOOLEAN, INTEGER, listOf, nullable, record, STRING } from "../json-schema.ts";
import { boolean, integer, list, literal, text } from "../kinds.ts";
import { operation, route } from "../operation.ts";
import { optional, type Values, withDefault } from "../schema.ts";
import { languagesOf, MODELS } from "../speech/models-catalogue.ts";
import { VOICE_ID } from "../speech/speech-fields.ts";
import { sampleRecord, VOICE } from "./voice-schema.ts";

/** 2024-01-01: the voices come with the program, their order is the catalogue's. */
const FIRST_CREATED_UNIX = 1_704_067_200;
const MAX_PAGE = 100;
const CATEGORIES = ["premade", "cloned", "generated", "professional"] as const;
const VOICE_TYPES = [
  "personal",
  "community",
  "default",
  "workspace",
  "non-default",
  "non-community",
  "saved",
] as const;

const LIST = operation({
  method: "GET",
  url: "/v1/voices",
  id: "get_voices",
  tag: "Voices",
  summary: "Every voice",
  query: { show_legacy: optional(boolean(), "Changes nothing here.") },
  answer: json(record({ voices: listOf(VOICE) }), "The voices."),
});
const ONE = operation({
  method: "GET",
  url: "/v1/voices/:voice_id",
  id: "get_voice_by_id",
  tag: "Voices",
  summary: "One voice",
  params: { voice_id: VOICE_ID },
  query: { with_settings: optional(boolean(), "Changes nothing.", { deprecated: true }) },
  errors: [404],
  answer: json(VOICE, "The voice."),
});
const FILTERS = {
  next_page_token: optional(text({ examples: [""] }), "Of the page before; empty for the first."),
  page_size: withDefault(integer({ later: { minimum: 1, maximum: MAX_PAGE } }), 10, "Voices at most."),
  search: optional(text(), "A part of the id, the name, the description or a label."),
  sort: optional(literal(["created_at_unix", "name"]), "By creation where absent."),
  sort_direction: optional(literal(["asc", "desc"]), "Names rise, dates fall where absent."),
  voice_type: optional(literal(VOICE_TYPES), "The embedded voices are default, the added ones personal."),
  category: optional(literal(CATEGORIES), "The embedded voices are premade, the added ones cloned."),
  fine_tuning_state: optional(text(), "No voice has one."),
  collection_id: optional(text(), "No voice is in one."),
  gender: optional(text(), "Its label."),
  age: optional(text(), "Its label."),
  accent: optional(text(), "Its label."),
  language: optional(list(text()), "Any of these."),
  use_cases: optional(list(text()), "Any of these."),
  include_total_count: withDefault(boolean(), true, "Else the count is 0."),
  voice_ids: optional(list(text(), { later: { maxItems: MAX_PAGE } }), "Any of these."),
  min_notice_period_days: optional(
    integer(),
    "Over 0 lists none: no voice is shared, nor has such a period.",
  ),
  include_custom_rates: optional(boolean(), "Changes nothing here."),
  include_live_moderated: optional(boolean(), "Changes nothing here."),
  high_quality: optional(boolean(), "True lists none: no voice is of that category."),
} as const;
const SEARCH = operation({
  method: "GET",
  url: "/v2/voices",
  id: "get_user_voices_v2",
  tag: "Voices",
  summary: "The voices by page, filter and order",
  query: FILTERS,
  answer: json(
    record({
      voices: listOf(VOICE),
      has_more: BOOLEAN,
      total_count: INTEGER,
      next_page_token: nullable(STRING),
    }),
    "A page.",
  ),
});

/** GET /v1/voices, GET /v1/voices/{voice_id} and GET /v2/voices. */
export function registerVoices(app: FastifyInstance, context: ServiceContext): void {
  route(app, context, LIST, async () => ({ voices: allVoices(context).map(voiceRecord) }));
  route(app, context, ONE, async ({ params }) => {
    const voice = allVoices(context).find((one) => one.id === params.voice_id);
    if (voice === undefined) throw ApiError.notFound("voice", params.voice_id);
    return voiceRecord(voice);
  });
  route(app, context, SEARCH, async ({ query }) => listVoices(query, allVoices(context)));
}

type VoiceQuery = Values<typeof FILTERS>;

function listVoices(query: VoiceQuery, voices: readonly ListedVoice[]): object {
  if (query.page_size < 1 || query.page_size > MAX_PAGE) {
    const message = `Invalid page_size ${query.page_size}, expected 1 to ${MAX_PAGE}.`;
    throw ApiError.unfit("invalid_page_size", message, { param: "page_size" });
  }
  if (query.voice_ids !== undefined && query.voice_ids.length > MAX_PAGE) {
    const message = `voice_ids can have at most ${MAX_PAGE} items, but ${query.voice_ids.length} were given.`;
    throw ApiError.unfit("invalid_parameters", message, { param: "voice_ids" });
  }
  const isDescending = (query.sort_direction ?? (query.sort === "name" ? "asc" : "desc")) === "desc";
  const inOrder = (a: Place, b: Place) => (isDescending ? comparePlaces(b, a) : comparePlaces(a, b));
  const placeOf = (voice: ListedVoice): Place => [
    query.sort === "name" ? voice.name : voice.createdAtUnix,
    voice.id,
  ];
  const found = voices
    .filter((voice) => isWanted(voice, query))
    .toSorted((a, b) => inOrder(placeOf(a), placeOf(b)));
  const order = `${query.sort === "name" ? "name" : "created_at_unix"} ${isDescending ? "desc" : "asc"}`;
  const after = readPageToken(query.next_page_token, order);
  const rest = after === null ? found : found.filter((voice) => inOrder(placeOf(voice), after) > 0);
  const page = rest.slice(0, query.page_size);
  const hasMore = page.length < rest.length;
  const last = page.at(-1);
  return {
    voices: page.map(voiceRecord),
    has_more: hasMore,
    total_count: query.include_total_count ? found.length : 0,
    next_page_token: hasMore && last !== undefined ? pageToken(placeOf(last), order) : null,
  };
}

/** What the voices are ordered by, and the id where two are alike in it. */
type Place = readonly [key: string | number, id: string];

function comparePlaces([keyA, idA]: Place, [keyB, idB]: Place): number {
  const order =
    typeof keyA === "number" ? keyA - Number(keyB) : String(keyA).localeCompare(String(keyB), "en");
  return order !== 0 ? order : Number(idA > idB) - Number(idA < idB);
}

/** The place of the last voice of the page: paging goes on behind it, also where the voice was deleted. */
function pageToken(place: Place, order: string): string {
  return Buffer.from(JSON.stringify([...place, order])).toString("base64url");
}

/** Null for the first page. */
function readPageToken(token: string | undefined, order: string): Place | null {
  if (token === undefined || token === "") return null;
  try {
    const [key, id, given]: readonly unknown[] = JSON.parse(Buffer.from(token, "base64url").toString());
    const isKey = order.startsWith("name") ? typeof key === "string" : Number.isFinite(key);
    if (isKey && typeof id === "string" && given === order) return [key as Place[0], id];
  } catch {
    // It is neither JSON nor a list: it is refused below, like every wrong token.
  }
  const message = "Invalid next_page_token, expected one that an earlier page gave for the same order.";
  throw ApiError.unfit("invalid_cursor", message, { param: "next_page_token" });
}

function isWanted(voice: ListedVoice, query: VoiceQuery): boolean {
  const { labels } = voice;
  const voiceIds = filled(query.voice_ids);
  const words = [voice.id, voice.name, voice.description, ...Object.values(labels)].join(" ").toLowerCase();
  const search = query.search?.trim().toLowerCase();
  const isOfType = query.voice_type === undefined || TYPES_OF[voice.category].includes(query.voice_type);
  return (
    isOfType &&
    (search === undefined || words.includes(search)) &&
    (query.category === undefined || query.category === voice.category) &&
    isLabel(undefined, query.fine_tuning_state) &&
    isLabel(undefined, query.collection_id) &&
    (query.min_notice_period_days ?? 0) <= 0 &&
    query.high_quality !== true &&
    (voiceIds.length === 0 || voiceIds.includes(voice.id)) &&
    isLabel(labels.gender, query.gender) &&
    isLabel(labels.age, query.age) &&
    isLabel(labels.accent, query.accent) &&
    (isOneOf(voice.language, query.language) || isOneOf(labels.language ?? "", query.language)) &&
    isOneOf(labels.use_case ?? "", query.use_cases)
  );
}

/** Without empty texts, which ask for nothing: fields of a form that were not filled in. */
function filled(wanted: readonly string[] = []): readonly string[] {
  return wanted.filter((one) => one !== "");
}

function isOneOf(label: string, wanted: readonly string[] | undefined): boolean {
  const words = filled(wanted);
  return words.length === 0 || words.some((one) => one.toLowerCase() === label.toLowerCase());
}

function isLabel(label: string | undefined, wanted: string | undefined): boolean {
  return wanted === undefined || wanted === "" || label?.toLowerCase() === wanted.toLowerCase();
}

/** What the lists say of a voice, wherever it comes from. */
interface ListedVoice {
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
  readonly language: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly category: "premade" | "cloned";
  readonly createdAtUnix: number;
  readonly samples: readonly Sample[] | null;
}

/** The `voice_type`s that a voice is of. */
const TYPES_OF: Readonly<Record<ListedVoice["category"], readonly string[]>> = {
  premade: ["default", "non-community", "saved"],
  cloned: ["personal", "workspace", "non-default", "non-community", "saved"],
};

/** Those that were added, newest first, the catalogue, whose first voice is its newest, and those of models. */
function allVoices({ store, neuralVoices }: ServiceContext): ListedVoice[] {
  const added = store.voices.list().map(
    (voice): ListedVoice => ({
      ...voice,
      language: labelledLanguage(voice.labels)?.code ?? "en",
      category: "cloned",
    }),
  );
  const catalogue = VOICES.map(
    (voice, index): ListedVoice => ({
      ...voice,
      category: "premade",
      createdAtUnix: FIRST_CREATED_UNIX + (VOICES.length - index) * 60,
      samples: null,
    }),
  );
  const ofModels = [...neuralVoices.values()].map(
    (voice, index): ListedVoice => ({
      id: voice.id,
      name: voice.name,
      description: `A neural voice (${voice.family}), by sherpa-onnx.`,
      language: voice.language?.code ?? "en",
      labels: {
        ...(voice.language === null ? {} : { language: voice.language.code }),
        ...(voice.gender === null ? {} : { gender: voice.gender }),
        model: voice.model,
      },
      category: "premade",
      createdAtUnix: FIRST_CREATED_UNIX - index,
      samples: null,
    }),
  );
  return [...added, ...catalogue, ...ofModels];
}

function voiceRecord(voice: ListedVoice): object {
  const speaking = MODELS.filter(
    (model) => model.canSpeak && languagesOf(model).some(({ language_id: code }) => code === voice.language),
  ).map((model) => model.id);
  return {
    voice_id: voice.id,
    name: voice.name,
    samples: voice.samples?.map(sampleRecord) ?? null,
    category: voice.category,
    fine_tuning: null,
    labels: voice.labels,
    description: voice.description,
    preview_url: null,
    available_for_tiers: [],
    settings: null,
    sharing: null,
    high_quality_base_model_ids: speaking,
    verified_languages: speaking.map((model_id) => ({
      language: voice.language,
      model_id,
      accent: voice.labels.accent ?? null,
      locale: null,
      preview_url: null,
    })),
    collection_ids: null,
    safety_control: null,
    voice_verification: null,
    permission_on_resource: null,
    is_owner: voice.category === "cloned",
    is_legacy: false,
    is_mixed: false,
    favorited_at_unix: null,
    created_at_unix: voice.createdAtUnix,
    is_bookmarked: null,
    recording_quality: null,
    labelling_status: null,
    recording_quality_reason: null,
  };
}
