/** The models that the interface names. All speak with the same engine; their rules differ. */
import { isExpressiveModel } from "../../../protocol/elevenlabs/models.ts";
import { LISTED_LANGUAGES } from "../../voice/engine/languages.ts";
import { BOOLEAN, INTEGER, listOf, NUMBER, named, oneOf, record, STRING } from "../json-schema.ts";

export interface Model {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly canSpeak: boolean;
  readonly canConvert: boolean;
  /** Takes dialogues and `[laughs]`-like audio tags; refuses previous_text and next_text. */
  readonly isExpressive: boolean;
  /** Speaks English alone, and refuses every other language_code. */
  readonly isEnglishOnly: boolean;
  readonly maxCharacters: number;
  /** Billed characters for each character of text. */
  readonly costFactor: number;
  readonly concurrencyGroup: "standard" | "turbo";
}

const SPEAKS = { canSpeak: true, canConvert: false } as const;
const EXPRESSIVE = { ...SPEAKS, costFactor: 1 } as const;
const STANDARD = { ...SPEAKS, costFactor: 1, concurrencyGroup: "standard" } as const;
const FAST = { ...SPEAKS, costFactor: 0.5, concurrencyGroup: "turbo" } as const;
const CONVERTS = { ...STANDARD, canSpeak: false, canConvert: true, maxCharacters: 10_000 } as const;

const ENGLISH_ONLY = { isEnglishOnly: true } as const;

function model(
  id: string,
  name: string,
  rest: Omit<Model, "id" | "name" | "description" | "isExpressive" | "isEnglishOnly">,
  { isEnglishOnly = false }: { readonly isEnglishOnly?: boolean } = {},
): Model {
  const description = `${name}, answered by the embedded eSpeak NG voice.`;
  return { id, name, description, isExpressive: isExpressiveModel(id), isEnglishOnly, ...rest };
}

export const MODELS: readonly Model[] = [
  model("eleven_v3", "Eleven v3", { ...EXPRESSIVE, maxCharacters: 5000, concurrencyGroup: "standard" }),
  model("eleven_v3_conversational", "Eleven v3 Conversational", {
    ...EXPRESSIVE,
    maxCharacters: 5000,
    concurrencyGroup: "standard",
  }),
  model("eleven_v4", "Eleven v4", { ...EXPRESSIVE, maxCharacters: 5000, concurrencyGroup: "standard" }),
  model("eleven_v4_turbo", "Eleven v4 Turbo", {
    ...EXPRESSIVE,
    maxCharacters: 5000,
    concurrencyGroup: "turbo",
  }),
  model("eleven_multilingual_v2", "Eleven Multilingual v2", { ...STANDARD, maxCharacters: 10_000 }),
  model("eleven_flash_v2_5", "Eleven Flash v2.5", { ...FAST, maxCharacters: 40_000 }),
  model("eleven_flash_v2", "Eleven Flash v2", { ...FAST, maxCharacters: 30_000 }, ENGLISH_ONLY),
  model("eleven_turbo_v2_5", "Eleven Turbo v2.5", { ...FAST, maxCharacters: 40_000 }),
  model("eleven_turbo_v2", "Eleven Turbo v2", { ...FAST, maxCharacters: 30_000 }, ENGLISH_ONLY),
  model("eleven_multilingual_v1", "Eleven Multilingual v1", { ...STANDARD, maxCharacters: 10_000 }),
  model("eleven_monolingual_v1", "Eleven English v1", { ...STANDARD, maxCharacters: 10_000 }, ENGLISH_ONLY),
  model("eleven_multilingual_sts_v2", "Eleven Multilingual STS v2", CONVERTS),
  model("eleven_english_sts_v2", "Eleven English STS v2", CONVERTS, ENGLISH_ONLY),
];

const ENGLISH = LISTED_LANGUAGES.filter(({ language_id: code }) => code === "en");

/** The languages that the model speaks. */
export function languagesOf({ isEnglishOnly }: Model): typeof LISTED_LANGUAGES {
  return isEnglishOnly ? ENGLISH : LISTED_LANGUAGES;
}

export function findModel(id: string): Model | undefined {
  return MODELS.find((model) => model.id === id);
}

export const MODEL = named(
  "Model",
  record({
    model_id: STRING,
    name: STRING,
    description: STRING,
    can_be_finetuned: BOOLEAN,
    can_do_text_to_speech: BOOLEAN,
    can_do_voice_conversion: BOOLEAN,
    can_use_style: BOOLEAN,
    can_use_speaker_boost: BOOLEAN,
    serves_pro_voices: BOOLEAN,
    requires_alpha_access: BOOLEAN,
    token_cost_factor: NUMBER,
    maximum_text_length_per_request: INTEGER,
    max_characters_request_free_user: INTEGER,
    max_characters_request_subscribed_user: INTEGER,
    languages: listOf(record({ language_id: STRING, name: STRING })),
    model_rates: record({ character_cost_multiplier: NUMBER }),
    concurrency_group: oneOf(["standard", "turbo"]),
  }),
);

/** The model as GET /v1/models shows it. */
export function modelRecord(model: Model): object {
  return {
    model_id: model.id,
    name: model.name,
    description: model.description,
    can_be_finetuned: false,
    can_do_text_to_speech: model.canSpeak,
    can_do_voice_conversion: model.canConvert,
    can_use_style: true,
    can_use_speaker_boost: true,
    serves_pro_voices: false,
    requires_alpha_access: false,
    token_cost_factor: model.costFactor,
    maximum_text_length_per_request: model.maxCharacters,
    max_characters_request_free_user: model.maxCharacters,
    max_characters_request_subscribed_user: model.maxCharacters,
    languages: languagesOf(model),
    model_rates: { character_cost_multiplier: model.costFactor },
    concurrency_group: model.concurrencyGroup,
  };
}
