/** Section "Sound generation" (service-interface.md 4.4, contract A6): sound effects from a prompt; not kept in the history. */
import { randomBytes } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { deliverSound } from "../sound/delivery.ts";
import type { SoundSpec } from "../sound/plan.ts";
import { SoundQueue } from "../sound/queue.ts";
import { readBody } from "./body.ts";
import {
  authorize,
  CORS_HEADERS,
  queryFields,
  type ServiceContext,
  TRACE_HEADER,
  traceIdOf,
} from "./context.ts";
import { findModel } from "./models-catalogue.ts";
import { audioTypeOf, DEFAULT_FORMAT, requireFormat } from "./output-format.ts";
import type { Fields } from "./pydantic.ts";
import { Refusal, type ValidationEntry } from "./refusal.ts";

/** In the interface's order. */
const BODY_FIELDS = ["text", "loop", "duration_seconds", "prompt_influence", "model_id"] as const;
const MODEL = "eleven_text_to_sound_v2";
const DURATION_SECONDS = { min: 0.5, max: 30 } as const;
const DEFAULT_INFLUENCE = 0.3;
/** Code points; the vendor names this limit in its error, not in its schema. */
const MAX_CHARACTERS = 450;
/** Characters billed where the duration is left open, and for each second where it is not: an approximation. */
const OPEN_COST = 100;
const COST_PER_SECOND = 20;
const LIMITS = { making: 4, waiting: 64, open: 256 } as const;

interface SoundShape {
  readonly outputFormat: string;
  readonly modelId: string;
  readonly spec: SoundSpec;
}

export function registerSoundGeneration(app: FastifyInstance, context: ServiceContext): void {
  const queue = new SoundQueue(LIMITS);
  app.post("/v1/sound-generation", async (request, reply) => {
    const faults: ValidationEntry[] = [];
    const outputFormat = queryFields(request, faults).text("output_format") ?? DEFAULT_FORMAT;
    const raw = {
      contentType: request.headers["content-type"],
      bytes: request.body as Uint8Array | undefined,
    };
    const shape = { ...readSound(readBody(raw, { names: BODY_FIELDS, faults })), outputFormat };
    if (faults.length > 0) throw Refusal.invalid(faults);
    authorize(context, request);
    requireSound(shape, context);
    const place = queue.enter();
    if (place === undefined) throw systemBusy();
    const headers = {
      ...CORS_HEADERS,
      [TRACE_HEADER]: traceIdOf(reply),
      "content-type": audioTypeOf(outputFormat),
      "request-id": randomBytes(10).toString("hex"),
      "character-cost": String(costOf(shape.spec)),
      "x-region": "local",
    };
    await deliverSound({ spec: shape.spec, outputFormat, response: reply.raw, headers, place });
    // The raw response was written: only a fault before the first byte is left to Fastify.
    if (reply.raw.headersSent || reply.raw.destroyed) reply.hijack();
  });
}

function readSound(body: Fields): Omit<SoundShape, "outputFormat"> {
  const text = body.requiredText("text");
  const isLooped = body.boolean("loop") ?? false;
  const durationSeconds = body.number("duration_seconds", DURATION_SECONDS) ?? null;
  const influence = body.number("prompt_influence", { min: 0, max: 1 }) ?? DEFAULT_INFLUENCE;
  const modelId = body.text("model_id") ?? MODEL;
  return { modelId, spec: { text, durationSeconds, influence, isLooped } };
}

/** Throws the Refusal of the first thing that is not in order. */
function requireSound({ outputFormat, modelId, spec }: SoundShape, context: ServiceContext): void {
  // A response of unknown length: Set A, as everywhere where audio is streamed.
  requireFormat(outputFormat, { isStream: true, tier: context.tier });
  if (spec.isLooped && modelId !== MODEL) {
    throw invalid("unsupported_model", `loop is only supported with the '${MODEL}' model.`, {
      param: "loop",
    });
  }
  if (modelId !== MODEL) throw wrongModel(modelId);
  if (spec.text.trim() === "") {
    throw invalid("empty_text", "The text is empty, expected a sound to make.", { param: "text" });
  }
  const characters = [...spec.text].length;
  if (characters > MAX_CHARACTERS) {
    const message = `The text has ${characters} characters, which exceeds the maximum of ${MAX_CHARACTERS} characters.`;
    throw invalid("text_too_long", message, { status: "max_character_limit_exceeded", param: "text" });
  }
}

function wrongModel(id: string): Refusal {
  const isKnown = findModel(id) !== undefined;
  const message = isKnown
    ? `Model '${id}' can not be used for sound generation.`
    : `A model with model ID ${id.slice(0, 64)} does not exist.`;
  return invalid("unsupported_model", message, {
    ...(isKnown ? {} : { status: "model_not_found" }),
    param: "model_id",
  });
}

function invalid(
  code: string,
  message: string,
  more: { readonly status?: string; readonly param: string },
): Refusal {
  return Refusal.of({ type: "validation_error", code, message, ...more });
}

function systemBusy(): Refusal {
  const message = "The system is busy, try again later.";
  return Refusal.of({ type: "rate_limit_error", code: "system_busy", message });
}

function costOf({ durationSeconds }: SoundSpec): number {
  return durationSeconds === null ? OPEN_COST : Math.ceil(durationSeconds * COST_PER_SECOND);
}
