/** Section "Sound generation": sound effects from a prompt; not kept in the history. */
import { randomBytes } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { STREAM_FORMATS } from "../../../audio/formats.ts";
import { ApiError } from "../../api-error.ts";
import { deliverSound } from "../../sound/delivery.ts";
import { planSound, type SoundSpec } from "../../sound/plan.ts";
import { SoundQueue } from "../../sound/queue.ts";
import { audioOf, SOUND_HEADERS } from "../answers.ts";
import type { ServiceContext } from "../context.ts";
import { STRING } from "../json-schema.ts";
import { boolean, number, text } from "../kinds.ts";
import { operation, route } from "../operation.ts";
import { commonHeaders } from "../origins.ts";
import { audioTypeOf, requireFormat } from "../output-format.ts";
import { optional, required, type Values, withDefault } from "../schema.ts";
import { findModel } from "../speech/models-catalogue.ts";
import { LOGGING, outputFormatField } from "../speech/speech-fields.ts";
import { concurrencyHeaders, requireLoggable } from "../tiers.ts";

const MODEL = "eleven_text_to_sound_v2";
const DURATION_SECONDS = { min: 0.5, max: 30 } as const;
const DEFAULT_INFLUENCE = 0.3;
/** Code points; the vendor names this limit in its error, not in its schema. */
const MAX_CHARACTERS = 450;
/** Characters billed where the duration is left open, and for each second where it is not: an approximation. */
const OPEN_COST = 100;
const COST_PER_SECOND = 20;
const LIMITS = { making: 4, waiting: 64, open: 256 } as const;

/** Not the vendor's: its model reads any text. */
const NOT_UNDERSTOOD = "x-not-understood";
const MAX_WORDS_NAMED = 16;
const MAX_WORD_LENGTH = 24;

interface SoundShape {
  readonly outputFormat: string;
  readonly modelId: string;
  readonly spec: SoundSpec;
}

/** In the interface's order. */
const BODY = {
  text: required(
    text({ later: { minLength: 1, maxLength: MAX_CHARACTERS }, examples: ["rain", "a dog barks"] }),
    "What is to be heard, in English, Spanish, Arabic or Chinese.",
  ),
  loop: withDefault(boolean(), false, "Whether its end leads into its beginning."),
  duration_seconds: optional(number({ range: DURATION_SECONDS }), "Chosen by the prompt where absent."),
  prompt_influence: withDefault(
    number({ range: { min: 0, max: 1 } }),
    DEFAULT_INFLUENCE,
    "How closely the words are followed.",
  ),
  model_id: withDefault(text({ later: { enum: [MODEL] } }), MODEL, "There is one."),
} as const;

const GENERATE = operation({
  method: "POST",
  url: "/v1/sound-generation",
  id: "sound_generation",
  tag: "Sound effects",
  summary: "A sound effect from its description",
  // Its length is not known, so it is never WAV.
  query: { enable_logging: LOGGING, output_format: outputFormatField({ isStream: true }) },
  body: { kind: "json", name: "SoundGenerationRequest", shape: BODY },
  errors: [403, 429],
  answer: {
    ...audioOf(STREAM_FORMATS, "The sound, as it is made."),
    headers: {
      ...SOUND_HEADERS,
      [NOT_UNDERSTOOD]: {
        ...STRING,
        description:
          "Words of the text that changed nothing, percent-encoded, with commas between; absent where all counted.",
      },
    },
  },
});

/** POST /v1/sound-generation. */
export function registerSoundGeneration(app: FastifyInstance, context: ServiceContext): void {
  const queue = new SoundQueue(LIMITS);
  route(app, context, GENERATE, async ({ reply, query, body }) => {
    const { output_format: outputFormat } = query;
    const shape = { outputFormat, modelId: body.model_id, spec: specOf(body) };
    requireSound(shape, context);
    requireLoggable(query.enable_logging, context.tier);
    const plan = planSound(shape.spec);
    if (plan.layers.length === 0) throw notUnderstood(plan.unknownWords);
    const admission = context.gate.enter("standard");
    try {
      const place = queue.enter();
      if (place === undefined) throw ApiError.busy();
      const cost = costOf(shape.spec);
      const headers = {
        ...commonHeaders(reply),
        "content-type": audioTypeOf(outputFormat),
        "request-id": randomBytes(10).toString("hex"),
        "character-cost": String(cost),
        ...concurrencyHeaders(admission),
        ...notUnderstoodHeader(plan.unknownWords),
        "x-region": "local",
      };
      // No row of the history, but billed as speech is: once it is whole, and where counters are kept.
      const onMade = () => {
        if (query.enable_logging) context.store.history.charge(cost);
      };
      await deliverSound({ plan, outputFormat, response: reply.raw, headers, place, onMade });
    } finally {
      admission.release();
    }
    // The raw response was written: only a fault before the first byte is left to Fastify.
    if (reply.raw.headersSent || reply.raw.destroyed) reply.hijack();
  });
}

function specOf(body: Values<typeof BODY>): SoundSpec {
  return {
    text: body.text,
    durationSeconds: body.duration_seconds ?? null,
    influence: body.prompt_influence,
    isLooped: body.loop,
  };
}

/** Throws the ApiError of the first thing that is not in order. */
function requireSound({ outputFormat, modelId, spec }: SoundShape, context: ServiceContext): void {
  requireFormat(outputFormat, { isStream: true, tier: context.tier });
  if (spec.isLooped && modelId !== MODEL) {
    throw ApiError.unfit("unsupported_model", `loop is only supported with the '${MODEL}' model.`, {
      param: "loop",
    });
  }
  if (modelId !== MODEL) throw wrongModel(modelId);
  if (spec.text.trim() === "") {
    throw ApiError.unfit("empty_text", "The text is empty, expected a sound to make.", { param: "text" });
  }
  const characters = [...spec.text].length;
  if (characters > MAX_CHARACTERS) {
    const message = `The text has ${characters} characters, which exceeds the maximum of ${MAX_CHARACTERS} characters.`;
    throw ApiError.unfit("text_too_long", message, { status: "max_character_limit_exceeded", param: "text" });
  }
}

/** Nobody should pay for a sound that has nothing to do with the words. */
function notUnderstood(words: readonly string[]): ApiError {
  const named = words.slice(0, MAX_WORDS_NAMED).map((word) => `'${cut(word)}'`);
  const message =
    named.length === 0
      ? "The text names no sound, expected one of those that docs/service.md lists."
      : `The text names no sound that is known: ${named.join(", ")} was not understood.`;
  return ApiError.unfit("prompt_not_understood", message, { param: "text" });
}

function notUnderstoodHeader(words: readonly string[]): Readonly<Record<string, string>> {
  const named = words.slice(0, MAX_WORDS_NAMED).map((word) => encodeURIComponent(cut(word)));
  return named.length === 0 ? {} : { [NOT_UNDERSTOOD]: named.join(", ") };
}

function cut(word: string): string {
  return [...word].slice(0, MAX_WORD_LENGTH).join("");
}

function wrongModel(id: string): ApiError {
  const isKnown = findModel(id) !== undefined;
  const message = isKnown
    ? `Model '${id}' can not be used for sound generation.`
    : `A model with model ID ${id.slice(0, 64)} does not exist.`;
  return ApiError.unfit("unsupported_model", message, {
    ...(isKnown ? {} : { status: "model_not_found" }),
    param: "model_id",
  });
}

function costOf({ durationSeconds }: SoundSpec): number {
  return durationSeconds === null ? OPEN_COST : Math.ceil(durationSeconds * COST_PER_SECOND);
}
