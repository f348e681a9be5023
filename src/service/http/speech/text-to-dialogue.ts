/** Section "Text to dialogue": several voices in one response. */
import type { FastifyInstance } from "fastify";
import { authorizeByKeyOrToken, type ServiceContext } from "../context.ts";
import { boolean, list, number, text } from "../kinds.ts";
import { operation, route } from "../operation.ts";
import { object, optional, required, type Values } from "../schema.ts";
import { AUDIO_EFFECTS } from "./audio-effects.ts";
import { MAX_DIALOGUE_NEIGHBOUR } from "./neighbours.ts";
import { speak } from "./speak.ts";
import { speechAnswer, TIMED_DIALOGUE, TIMED_DIALOGUE_LINE } from "./speech-answers.ts";
import {
  dialogueQuery,
  dictionaryLocators,
  LANGUAGE,
  LOCATORS,
  modelField,
  NORMALIZATION,
  requestIds,
  SEED_FIELD,
  SPEECH_HEADERS,
  SPOKEN_TEXT,
  TIMING_HEADERS,
  VARIANTS,
  type Variant,
  VOICE_ID,
} from "./speech-fields.ts";
import type { SpeechShape } from "./speech-request.ts";

const INPUT = object({ text: required(SPOKEN_TEXT, "What this voice says."), voice_id: VOICE_ID });

const NEIGHBOUR = { maxLength: MAX_DIALOGUE_NEIGHBOUR } as const;

/** In the interface's order; the newer fields last: they are read for their types. */
const BODY = {
  inputs: required(
    list(INPUT, { later: { minItems: 1 } }),
    "One after the other, with at most ten different voices; the limit of the text is for all together.",
  ),
  model_id: modelField("eleven_v3", (model) => model.isExpressive),
  language_code: LANGUAGE,
  settings: optional(
    object({
      stability: optional(number({ range: { min: 0, max: 1 } }), "0 varies most; 0.5 where absent."),
      similarity: optional(
        number({ range: { min: 0, max: 1 } }),
        "How bright the voices are; 0.75 where absent.",
      ),
    }),
    "For this request only.",
  ),
  pronunciation_dictionary_locators: LOCATORS,
  seed: SEED_FIELD,
  apply_text_normalization: NORMALIZATION,
  use_pvc_as_ivc: optional(boolean(), "Changes nothing here.", { deprecated: true }),
  // A dialogue takes previous_text where speech with the same model does not.
  previous_text: optional(text({ later: NEIGHBOUR }), "What was said before."),
  future_text: optional(text({ later: NEIGHBOUR }), "What is said next."),
  previous_request_ids: requestIds("come before"),
  next_request_ids: requestIds("come after"),
  audio_effects: AUDIO_EFFECTS,
} as const;

/** POST /v1/text-to-dialogue, and its /stream, /with-timestamps and /stream/with-timestamps. */
export function registerTextToDialogue(app: FastifyInstance, context: ServiceContext): void {
  for (const variant of VARIANTS) {
    const { isStream, wantsTiming } = variant;
    route(
      app,
      context,
      declaration(variant),
      async ({ request, reply, beganMs, query, body }) => {
        const { output_format: outputFormat, enable_logging: isLogged } = query;
        await speak(
          context,
          { request, reply, beganMs },
          {
            shape: { ...dialogueShape(body), outputFormat, isLogged, latencyLevel: undefined },
            kind: { isDialogue: true, isStream, wantsTiming },
          },
        );
      },
      { authorize: authorizeByKeyOrToken },
    );
  }
}

function declaration({ path, isStream, wantsTiming, id, how }: Variant) {
  const timed = isStream ? TIMED_DIALOGUE_LINE : TIMED_DIALOGUE;
  return operation({
    method: "POST",
    url: `/v1/text-to-dialogue${path}`,
    id: `text_to_dialogue_${id}`,
    tag: "Text to dialogue",
    summary: `Several voices in one answer${how}`,
    query: dialogueQuery({ isStream }),
    body: { kind: "json", name: "TextToDialogueRequest", shape: BODY },
    headers: wantsTiming ? TIMING_HEADERS : SPEECH_HEADERS,
    errors: [403, 404, 429],
    answer: speechAnswer({ isStream, timed: wantsTiming ? timed : null }),
  });
}

function dialogueShape(
  body: Values<typeof BODY>,
): Omit<SpeechShape, "outputFormat" | "isLogged" | "latencyLevel"> {
  return {
    inputs: body.inputs.map(({ text, voice_id }) => ({ text, voiceId: voice_id })),
    modelId: body.model_id,
    languageCode: body.language_code,
    stability: body.settings?.stability,
    style: undefined,
    speed: undefined,
    similarity: body.settings?.similarity,
    speakerBoost: undefined,
    dictionaries: dictionaryLocators(body.pronunciation_dictionary_locators),
    seed: body.seed,
    previousText: body.previous_text,
    nextText: body.future_text,
    previousRequestIds: body.previous_request_ids ?? [],
    nextRequestIds: body.next_request_ids ?? [],
    normalization: body.apply_text_normalization,
    effects: body.audio_effects,
    readsJapanese: false,
  };
}
