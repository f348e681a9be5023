/** Section "Voices" (contract E1): the catalogue of the embedded voices in both versions of the list. */
import type { FastifyInstance } from "fastify";
import type { Sample } from "../store/voices.ts";
import { VOICES } from "../voice/voices.ts";
import { authorize, queryFields, type ServiceContext } from "./context.ts";
import { MODELS } from "./models-catalogue.ts";
import type { Fields } from "./pydantic.ts";
import { Refusal, type ValidationEntry } from "./refusal.ts";
import { voiceNotFound } from "./speech-request.ts";
import { sampleRecord } from "./voice-samples.ts";

/** 2024-01-01: the voices come with the program, their order is the catalogue's. */
const FIRST_CREATED_UNIX = 1_704_067_200;
const DEFAULT_PAGE = 10;
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

export function registerVoices(app: FastifyInstance, context: ServiceContext): void {
  app.get("/v1/voices", async (request) => {
    const faults: ValidationEntry[] = [];
    queryFields(request, faults).boolean("show_legacy");
    if (faults.length > 0) throw Refusal.invalid(faults);
    authorize(context, request);
    return { voices: allVoices(context).map(voiceRecord) };
  });
  app.get<{ Params: { voice_id: string } }>("/v1/voices/:voice_id", async (request) => {
    const faults: ValidationEntry[] = [];
    queryFields(request, faults).boolean("with_settings");
    if (faults.length > 0) throw Refusal.invalid(faults);
    authorize(context, request);
    const voice = allVoices(context).find((one) => one.id === request.params.voice_id);
    if (voice === undefined) throw voiceNotFound(request.params.voice_id);
    return voiceRecord(voice);
  });
  app.get("/v2/voices", async (request) => {
    const faults: ValidationEntry[] = [];
    const query = readVoiceQuery(queryFields(request, faults));
    if (faults.length > 0) throw Refusal.invalid(faults);
    authorize(context, request);
    return listVoices(query, allVoices(context));
  });
}

function readVoiceQuery(query: Fields) {
  return {
    pageToken: query.text("next_page_token"),
    pageSize: query.integer("page_size") ?? DEFAULT_PAGE,
    search: query.text("search")?.trim().toLowerCase(),
    sort: query.choice("sort", ["created_at_unix", "name"]),
    direction: query.choice("sort_direction", ["asc", "desc"]),
    voiceType: query.choice("voice_type", VOICE_TYPES),
    category: query.choice("category", CATEGORIES),
    tuningState: query.text("fine_tuning_state"),
    collectionId: query.text("collection_id"),
    gender: query.text("gender"),
    age: query.text("age"),
    accent: query.text("accent"),
    languages: query.textList("language"),
    useCases: query.textList("use_cases"),
    wantsCount: query.boolean("include_total_count") ?? true,
    ids: query.textList("voice_ids"),
    noticeDays: query.integer("min_notice_period_days"),
    customRates: query.boolean("include_custom_rates"),
    liveModerated: query.boolean("include_live_moderated"),
    highQuality: query.boolean("high_quality"),
  };
}

type VoiceQuery = ReturnType<typeof readVoiceQuery>;

function listVoices(query: VoiceQuery, voices: readonly ListedVoice[]): object {
  if (query.pageSize < 1 || query.pageSize > MAX_PAGE) {
    const message = `Invalid page_size ${query.pageSize}, expected 1 to ${MAX_PAGE}.`;
    throw Refusal.of({ type: "validation_error", code: "invalid_page_size", message, param: "page_size" });
  }
  if (query.ids !== undefined && query.ids.length > MAX_PAGE) {
    const message = `voice_ids can have at most ${MAX_PAGE} items, but ${query.ids.length} were given.`;
    throw Refusal.of({ type: "validation_error", code: "invalid_parameters", message, param: "voice_ids" });
  }
  const found = sorted(
    voices.filter((voice) => isWanted(voice, query)),
    query,
  );
  const from = readPageToken(query.pageToken, found);
  const page = found.slice(from, from + query.pageSize);
  const hasMore = from + page.length < found.length;
  const last = page.at(-1);
  return {
    voices: page.map(voiceRecord),
    has_more: hasMore,
    total_count: query.wantsCount ? found.length : 0,
    next_page_token: hasMore && last !== undefined ? Buffer.from(last.id).toString("base64url") : null,
  };
}

/** A token names the last voice of the page before. */
function readPageToken(token: string | undefined, found: readonly ListedVoice[]): number {
  if (token === undefined || token === "") return 0;
  const id = Buffer.from(token, "base64url").toString();
  const index = found.findIndex((voice) => voice.id === id);
  if (index >= 0) return index + 1;
  const message = "Invalid next_page_token, expected one that an earlier page gave for the same filters.";
  throw Refusal.of({ type: "validation_error", code: "invalid_cursor", message, param: "next_page_token" });
}

function isWanted(voice: ListedVoice, query: VoiceQuery): boolean {
  const { labels } = voice;
  const text = [voice.id, voice.name, voice.description, ...Object.values(labels)].join(" ").toLowerCase();
  const isOfType = query.voiceType === undefined || TYPES_OF[voice.category].includes(query.voiceType);
  return (
    isOfType &&
    (query.search === undefined || text.includes(query.search)) &&
    (query.category === undefined || query.category === voice.category) &&
    query.tuningState === undefined &&
    query.collectionId === undefined &&
    (query.ids === undefined || query.ids.includes(voice.id)) &&
    isLabel(labels.gender, query.gender) &&
    isLabel(labels.age, query.age) &&
    isLabel(labels.accent, query.accent) &&
    (query.languages === undefined || query.languages.includes(voice.language)) &&
    (query.useCases === undefined || query.useCases.includes(labels.use_case ?? ""))
  );
}

function isLabel(label: string | undefined, wanted: string | undefined): boolean {
  return wanted === undefined || label?.toLowerCase() === wanted.toLowerCase();
}

/** Newest first unless asked otherwise; by name from A. */
function sorted(voices: readonly ListedVoice[], query: VoiceQuery): ListedVoice[] {
  const byName = (a: ListedVoice, b: ListedVoice) => a.name.localeCompare(b.name, "en");
  const byCreation = (a: ListedVoice, b: ListedVoice) => a.createdAtUnix - b.createdAtUnix;
  const isDescending = (query.direction ?? (query.sort === "name" ? "asc" : "desc")) === "desc";
  const order = query.sort === "name" ? byName : byCreation;
  return voices.toSorted((a, b) => (isDescending ? order(b, a) : order(a, b)));
}

/** What the lists tell of a voice, wherever it comes from. */
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

/** Those that were added, newest first, and the catalogue, whose first voice is its newest. */
function allVoices({ store }: ServiceContext): ListedVoice[] {
  const added = store.voices.list().map(
    (voice): ListedVoice => ({
      ...voice,
      language: voice.labels.language ?? "en",
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
  return [...added, ...catalogue];
}

function voiceRecord(voice: ListedVoice): object {
  const speaking = MODELS.filter((model) => model.canSpeak).map((model) => model.id);
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
