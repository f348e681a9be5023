/** The fields that the endpoints of speech share, and the bounds that are judged later. */
import { OUTPUT_FORMATS, STREAM_FORMATS } from "../../../audio/formats.ts";
import { ApiError } from "../../api-error.ts";
import { MAX_LATENCY_LEVEL } from "../../voice/audio/latency.ts";
import { VOICES } from "../../voice/engine/voices.ts";
import type { JsonSchema } from "../json-schema.ts";
import { boolean, integer, list, literal, number, text } from "../kinds.ts";
import { DEFAULT_FORMAT } from "../output-format.ts";
import { object, optional, required, type Values, withDefault } from "../schema.ts";
import { MODELS, type Model } from "./models-catalogue.ts";

const SEED = { minimum: 0, maximum: 4_294_967_295 } as const;
export const SPEED = { minimum: 0.7, maximum: 1.2 } as const;
export const STYLE = { minimum: 0, maximum: 1 } as const;
export const MAX_LIST = 3;
const EXAMPLE_VOICE = VOICES[0]?.id ?? "";

export const VOICE_ID = required(
  text({ examples: [EXAMPLE_VOICE] }),
  "One of GET /v1/voices; any other is refused with 404.",
);

/** The four ways to be answered, by what follows the path; `how` for the summary. */
export const VARIANTS = [
  { path: "", isStream: false, wantsTiming: false, id: "full", how: "" },
  {
    path: "/with-timestamps",
    isStream: false,
    wantsTiming: true,
    id: "full_with_timestamps",
    how: ", with the times of its characters",
  },
  { path: "/stream", isStream: true, wantsTiming: false, id: "stream", how: ", streamed" },
  {
    path: "/stream/with-timestamps",
    isStream: true,
    wantsTiming: true,
    id: "stream_with_timestamps",
    how: ", streamed, with the times of its characters",
  },
] as const;
export type Variant = (typeof VARIANTS)[number];

/** Only a whole file can be WAV: its header has the length. */
export function outputFormatField(options: { readonly isStream: boolean }) {
  const formats = options.isStream ? STREAM_FORMATS : OUTPUT_FORMATS;
  return withDefault(
    text({ later: { enum: [...formats] } }),
    DEFAULT_FORMAT,
    "codec_sampleRate_bitrate; some need a plan (403). Opus is in Ogg, PCM is 16 bit little-endian, all are mono.",
  );
}

/** A parameter of all operations that make sound. */
export const LOGGING = withDefault(
  boolean(),
  true,
  "False: zero retention, nothing is kept in the history; for the plan enterprise only.",
);
const LATENCY = optional(
  integer({ later: { minimum: 0, maximum: MAX_LATENCY_LEVEL } }),
  "1 to 3 send the audio in smaller pieces, the sooner to be heard; 4 also turns text normalization off.",
  { deprecated: true },
);

/** A parameter of speech and dialogues; authorizeByKeyOrToken looks at it. */
export const TOKEN_QUERY = {
  single_use_token: optional(
    text(),
    "A tts_websocket token of POST /v1/single-use-token, in place of a key: for one request within 15 minutes.",
  ),
} as const;

/** In the interface's order. */
export function speechQuery(options: { readonly isStream: boolean }) {
  return {
    enable_logging: LOGGING,
    optimize_streaming_latency: LATENCY,
    output_format: outputFormatField(options),
  };
}

/** Without the latency, which is no parameter of a dialogue. */
export function dialogueQuery(options: { readonly isStream: boolean }) {
  return { enable_logging: LOGGING, output_format: outputFormatField(options), ...TOKEN_QUERY };
}

const SETTINGS = {
  stability: optional(number({ range: { min: 0, max: 1 } }), "0 varies most; 0.5 where absent."),
  similarity_boost: optional(
    number({ range: { min: 0, max: 1 } }),
    "How bright the voice is; 0.75 where absent.",
  ),
  style: optional(number({ later: STYLE }), "Exaggeration; 0 where absent."),
  use_speaker_boost: optional(boolean(), "False is 4 dB quieter; true where absent."),
  speed: optional(number({ later: SPEED }), "1 where absent."),
} as const;
export const VOICE_SETTINGS = object(SETTINGS);

export const SEED_FIELD = optional(
  integer({ later: SEED }),
  "With the same seed the same request is answered with the same bytes.",
);

export const LANGUAGE = optional(
  text({ examples: ["en", "fr", "ja"] }),
  "ISO 639-1, with a region whose accent the engine has or without; one that the model does not list is refused with 400.",
);

export const NORMALIZATION = withDefault(
  literal(["auto", "on", "off"]),
  "auto",
  "off: nothing is written out, digits are read one by one. auto: English is written out but for plain numbers. on: all is.",
);

export const LOCATORS = optional(
  list(
    object({
      pronunciation_dictionary_id: required(
        text(),
        "One of GET /v1/pronunciation-dictionaries; any other is refused with 404.",
      ),
      version_id: optional(text(), "One of its versions; the latest where absent."),
    }),
    { later: { maxItems: MAX_LIST }, examples: [[]] },
  ),
  "Pronunciation dictionaries; where rules of several fit at one place, the first dictionary's is used.",
);

/** A version of a dictionary; undefined: the latest. */
export interface DictionaryLocator {
  readonly id: string;
  readonly versionId: string | undefined;
}

export function dictionaryLocators(
  locators: Values<{ readonly locators: typeof LOCATORS }>["locators"],
): readonly DictionaryLocator[] {
  return (locators ?? []).map((one) => ({ id: one.pronunciation_dictionary_id, versionId: one.version_id }));
}

/** `relation` as "come before" or "come after". */
export function requestIds(relation: string) {
  return optional(
    list(text(), { later: { maxItems: MAX_LIST }, examples: [[]] }),
    `The request-ids of answers that ${relation}, of the last two hours; they win over a text.`,
  );
}

/** Not blank; how long it may be is the model's. */
export const SPOKEN_TEXT = text({
  later: { minLength: 1, maxLength: Math.max(...MODELS.map(({ maxCharacters }) => maxCharacters)) },
  examples: ["Hello there.", "One, two."],
});

/** `judge` says which models the endpoint takes. */
export function modelField(fallback: string, judge: (model: Model) => boolean) {
  const ids = MODELS.filter(judge).map(({ id }) => id);
  return withDefault(text({ later: { enum: ids } }), fallback, "One of GET /v1/models.");
}

/** Headers of scripted faults and of true word times: docs/faults.md. */
export const FAULT_HEADERS: Readonly<Record<string, JsonSchema>> = {
  "x-voicewire-fault": {
    type: "string",
    description: "Scripted faults of this request, with --faults: docs/faults.md.",
  },
};
export const SPEECH_HEADERS: Readonly<Record<string, JsonSchema>> = {
  ...FAULT_HEADERS,
  "x-voicewire-ahead-ms": {
    type: "string",
    pattern: "^\\d{1,6}$",
    description: "So long the client has something else to play: what is needed before goes first.",
  },
};
export const TIMING_HEADERS: Readonly<Record<string, JsonSchema>> = {
  ...SPEECH_HEADERS,
  "x-voicewire-truth": { type: "string", enum: ["1"], description: "Adds the engine's own word times." },
};

/** Throws the 400 of a seed out of its range. */
export function requireSeed(seed: number | undefined): void {
  if (seed === undefined || (seed >= SEED.minimum && seed <= SEED.maximum)) return;
  const message = `Invalid seed, expected an integer from ${SEED.minimum} to ${SEED.maximum}.`;
  throw ApiError.unfit("invalid_parameters", message, { param: "seed" });
}

/** Throws the 400 of a level that there is not. */
export function requireLatencyLevel(level: number | undefined): void {
  if (level === undefined || (level >= 0 && level <= MAX_LATENCY_LEVEL)) return;
  const message = `Invalid optimize_streaming_latency ${level}, expected 0 to ${MAX_LATENCY_LEVEL}.`;
  throw ApiError.unfit("invalid_parameters", message, { param: "optimize_streaming_latency" });
}
