/** Section "Text to speech": four endpoints that differ in what they answer with. */
import type { FastifyInstance } from "fastify";
import { MAX_LATENCY_LEVEL } from "../../voice/audio/latency.ts";
import { authorizeByKeyOrToken, type ServiceContext } from "../context.ts";
import { boolean, text } from "../kinds.ts";
import { operation, route } from "../operation.ts";
import { optional, required, type Values, withDefault } from "../schema.ts";
import { AUDIO_EFFECTS } from "./audio-effects.ts";
import { speak } from "./speak.ts";
import { speechAnswer, TIMED_LINE, TIMED_SPEECH } from "./speech-answers.ts";
import {
  dictionaryLocators,
  LANGUAGE,
  LOCATORS,
  modelField,
  NORMALIZATION,
  requestIds,
  requireLatencyLevel,
  SEED_FIELD,
  SPEECH_HEADERS,
  SPOKEN_TEXT,
  speechQuery,
  TIMING_HEADERS,
  TOKEN_QUERY,
  VARIANTS,
  type Variant,
  VOICE_ID,
  VOICE_SETTINGS,
} from "./speech-fields.ts";
import type { SpeechShape } from "./speech-request.ts";

/** In the interface's order. */
const BODY = {
  text: required(SPOKEN_TEXT, "What is to be said; some models take less."),
  model_id: modelField("eleven_multilingual_v2", (model) => model.canSpeak),
  language_code: LANGUAGE,
  voice_settings: optional(VOICE_SETTINGS, "For this request only."),
  pronunciation_dictionary_locators: LOCATORS,
  seed: SEED_FIELD,
  previous_text: optional(text(), "What was said before; the expressive models refuse it with 400."),
  next_text: optional(text(), "What is said next; the expressive models refuse it with 400."),
  previous_request_ids: requestIds("come before"),
  next_request_ids: requestIds("come after"),
  use_pvc_as_ivc: optional(boolean(), "Changes nothing here.", { deprecated: true }),
  apply_text_normalization: NORMALIZATION,
  apply_language_text_normalization: withDefault(
    boolean(),
    false,
    "Reads Japanese text in kana: numbers with their counters, and common words. For Japanese only: 400 with another language_code.",
  ),
  audio_effects: AUDIO_EFFECTS,
} as const;

/** POST /v1/text-to-speech/{voice_id}, and its /stream, /with-timestamps and /stream/with-timestamps. */
export function registerTextToSpeech(app: FastifyInstance, context: ServiceContext): void {
  for (const variant of VARIANTS) {
    const { isStream, wantsTiming } = variant;
    route(
      app,
      context,
      declaration(variant),
      async ({ request, reply, beganMs, params, query, body }) => {
        const latencyLevel = query.optimize_streaming_latency;
        requireLatencyLevel(latencyLevel);
        const shape = speechShape(body, params.voice_id);
        await speak(
          context,
          { request, reply, beganMs },
          {
            shape: {
              ...shape,
              latencyLevel,
              normalization: latencyLevel === MAX_LATENCY_LEVEL ? "off" : shape.normalization,
              outputFormat: query.output_format,
              isLogged: query.enable_logging,
            },
            kind: { isDialogue: false, isStream, wantsTiming },
          },
        );
      },
      { authorize: authorizeByKeyOrToken },
    );
  }
}

function declaration({ path, isStream, wantsTiming, id, how }: Variant) {
  return operation({
    method: "POST",
    url: `/v1/text-to-speech/:voice_id${path}`,
    id: `text_to_speech_${id}`,
    tag: "Text to speech",
    summary: `Text to speech${how}`,
    params: { voice_id: VOICE_ID },
    query: { ...speechQuery({ isStream }), ...TOKEN_QUERY },
    body: { kind: "json", name: "TextToSpeechRequest", shape: BODY },
    headers: wantsTiming ? TIMING_HEADERS : SPEECH_HEADERS,
    errors: [403, 404, 429],
    answer: speechAnswer({ isStream, timed: wantsTiming ? (isStream ? TIMED_LINE : TIMED_SPEECH) : null }),
  });
}

function speechShape(
  body: Values<typeof BODY>,
  voiceId: string,
): Omit<SpeechShape, "outputFormat" | "isLogged" | "latencyLevel"> {
  return {
    inputs: [{ text: body.text, voiceId }],
    modelId: body.model_id,
    languageCode: body.language_code,
    stability: body.voice_settings?.stability,
    style: body.voice_settings?.style,
    speed: body.voice_settings?.speed,
    similarity: body.voice_settings?.similarity_boost,
    speakerBoost: body.voice_settings?.use_speaker_boost,
    dictionaries: dictionaryLocators(body.pronunciation_dictionary_locators),
    seed: body.seed,
    previousText: body.previous_text,
    nextText: body.next_text,
    previousRequestIds: body.previous_request_ids ?? [],
    nextRequestIds: body.next_request_ids ?? [],
    normalization: body.apply_text_normalization,
    effects: body.audio_effects,
    readsJapanese: body.apply_language_text_normalization,
  };
}
