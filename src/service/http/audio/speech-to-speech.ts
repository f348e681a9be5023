/**
 * Section "Speech to speech": somebody's recording in another voice, whole or
 * streamed. What is done to it: src/service/convert/transformer.ts.
 */
import { randomBytes } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { GatewayError } from "../../../errors.ts";
import { ApiError } from "../../api-error.ts";
import { clientSignal } from "../../convert/client-signal.ts";
import { conversionOpener, conversionSpec } from "../../convert/conversion.ts";
import { type ConversionPool, conversionPoolOf } from "../../convert/conversion-pool.ts";
import { type ConversionTarget, findTarget } from "../../convert/conversion-target.ts";
import type { Manner } from "../../convert/messages.ts";
import { delayOrRefuse, withFaults } from "../../faults/apply.ts";
import { nextFaults } from "../../faults/board.ts";
import { FAULT_HEADER } from "../../faults/fault.ts";
import { decodeUpload, FILE_FORMATS, type FileFormat, uploadSeconds } from "../../media/decode-upload.ts";
import type { UploadedFile } from "../../media/upload.ts";
import { type NewHistoryItem, newHistoryId } from "../../store/history.ts";
import type { ServiceContext } from "../context.ts";
import { asApiError } from "../failure.ts";
import { file } from "../form.ts";
import { boolean, jsonText, literal } from "../kinds.ts";
import { type Call, operation, route } from "../operation.ts";
import { commonHeaders } from "../origins.ts";
import { audioTypeOf, requireFormat } from "../output-format.ts";
import { optional, required, type Values, withDefault } from "../schema.ts";
import { deliverStream, deliverWhole } from "../speech/delivery.ts";
import { findModel, type Model } from "../speech/models-catalogue.ts";
import { recordingOpener } from "../speech/recorder.ts";
import { speechAnswer } from "../speech/speech-answers.ts";
import {
  FAULT_HEADERS,
  modelField,
  requireLatencyLevel,
  requireSeed,
  SEED_FIELD,
  SPEED,
  STYLE,
  speechQuery,
  VOICE_ID,
  VOICE_SETTINGS,
} from "../speech/speech-fields.ts";
import { requireBound } from "../speech/speech-request.ts";
import { concurrencyHeaders, requireLoggable } from "../tiers.ts";

/** An approximation: what the vendor bills is not published. */
const CHARACTERS_A_MINUTE = 1000;

/** In the interface's order. */
const FORM = {
  audio: required(
    file(),
    "The recording, in any format that the service decodes, of at most 100 MB; its name and type do not matter.",
  ),
  model_id: modelField("eleven_english_sts_v2", (model) => model.canConvert),
  voice_settings: optional(jsonText(VOICE_SETTINGS), "JSON; for this request only, kept with the item."),
  seed: SEED_FIELD,
  remove_background_noise: withDefault(boolean(), false, "As isolation does, before the conversion."),
  file_format: withDefault(literal(FILE_FORMATS), "other", "pcm_s16le_16: raw samples, 16 kHz, mono."),
} as const;

interface ConversionRequest {
  readonly voiceId: string;
  readonly isStream: boolean;
  readonly outputFormat: string;
  readonly isLogged: boolean;
  readonly latencyLevel: number | undefined;
  readonly modelId: string;
  readonly settings: Partial<NonNullable<Values<typeof FORM>["voice_settings"]>>;
  readonly seed: number | undefined;
  readonly removesNoise: boolean;
  readonly fileFormat: FileFormat;
}

interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly beganMs: number;
}

/** POST /v1/speech-to-speech/{voice_id} and its /stream. */
export function registerSpeechToSpeech(app: FastifyInstance, context: ServiceContext): void {
  const pool = conversionPoolOf(app, context.voices);
  app.register(async (scope) => {
    await context.uploads.register(scope);
    for (const isStream of [false, true]) {
      route(scope, context, declaration(isStream), (call) =>
        convert({ context, pool }, call, { asked: requestOf(call, isStream), file: call.body.audio }),
      );
    }
  });
}

function declaration(isStream: boolean) {
  return operation({
    method: "POST",
    url: `/v1/speech-to-speech/:voice_id${isStream ? "/stream" : ""}`,
    id: `speech_to_speech_${isStream ? "stream" : "full"}`,
    tag: "Speech to speech",
    summary: `A recording in another voice${isStream ? ", streamed" : ""}`,
    params: { voice_id: VOICE_ID },
    query: speechQuery({ isStream }),
    body: { kind: "form", name: "SpeechToSpeechForm", shape: FORM },
    headers: FAULT_HEADERS,
    errors: [403, 404, 429],
    answer: speechAnswer({ isStream, timed: null }),
  });
}

type Declared = ReturnType<typeof declaration>;
type ConversionCall = Call<Declared["params"], Declared["query"], typeof FORM>;

function requestOf({ params, query, body }: ConversionCall, isStream: boolean): ConversionRequest {
  return {
    voiceId: params.voice_id,
    isStream,
    outputFormat: query.output_format,
    isLogged: query.enable_logging,
    latencyLevel: query.optimize_streaming_latency,
    modelId: body.model_id,
    settings: body.voice_settings ?? {},
    seed: body.seed,
    removesNoise: body.remove_background_noise,
    fileFormat: body.file_format,
  };
}

/** What is asked for (400, 403, 404), then the conversion and its delivery. */
async function convert(
  { context, pool }: { readonly context: ServiceContext; readonly pool: ConversionPool },
  exchange: Exchange,
  { asked, file }: { readonly asked: ConversionRequest; readonly file: UploadedFile },
): Promise<void> {
  const { request, reply } = exchange;
  const { faults } = nextFaults(context.faults, request.headers[FAULT_HEADER]);
  const model = acceptConversion(asked, context);
  const target = findTarget(context, pool, asked.voiceId);
  if (target === undefined) throw noTarget(context, asked.voiceId);
  if (faults.length > 0) await delayOrRefuse(faults, reply);
  const client = clientSignal(reply.raw);
  const admission = context.gate.enter(model.concurrencyGroup);
  let release = (): void => undefined;
  let failure: unknown;
  try {
    release = await pool.acquire(client.signal);
    // All of it is decoded before: what it costs, and that none of it is broken, is known before the answer begins.
    const options = { fileFormat: asked.fileFormat };
    const seconds = await uploadSeconds(file, { ...options, signal: client.signal });
    const cost = Math.ceil((seconds * CHARACTERS_A_MINUTE) / 60);
    const profile = await target.profile();
    if (profile === null)
      throw new GatewayError("internal", "Cannot convert: the target voice was not measured");
    client.signal.throwIfAborted();
    const requestId = randomBytes(10).toString("hex");
    const historyItemId = asked.isLogged ? newHistoryId() : null;
    const converting = conversionOpener(pool, {
      source: () => decodeUpload(file, options),
      target: profile,
      removesNoise: asked.removesNoise,
      seed: asked.seed,
      manner: mannerOf(asked.settings),
      latencyLevel: asked.latencyLevel,
      onFailure: (thrown) => {
        failure = thrown;
      },
    });
    const facts = { target, cost, requestId };
    const voices =
      historyItemId === null
        ? converting
        : recordingOpener(converting, { ...context, item: { ...itemOf(asked, facts), id: historyItemId } });
    await (asked.isStream ? deliverStream : deliverWhole)({
      ...withFaults(faults, { voices, response: reply.raw }),
      temporaryFiles: context.temporaryFiles,
      spec: conversionSpec(asked.outputFormat),
      isDialogue: false,
      wantsTiming: false,
      outputFormat: asked.outputFormat,
      headers: () => ({
        ...commonHeaders(reply),
        "content-type": audioTypeOf(asked.outputFormat),
        "request-id": requestId,
        ...(historyItemId === null ? {} : { "history-item-id": historyItemId }),
        "character-cost": String(cost),
        ...concurrencyHeaders(admission),
        "tts-latency-ms": String(Math.round(performance.now() - exchange.beganMs)),
        "x-region": "local",
      }),
    });
  } catch (thrown) {
    // Nobody is there to be told.
    if (!client.signal.aborted) throw failure instanceof ApiError ? failure : asApiError(thrown);
  } finally {
    client.release();
    release();
    admission.release();
  }
  // The raw response was written: only what went wrong before the first byte is left to Fastify.
  if (reply.raw.headersSent || reply.raw.destroyed) reply.hijack();
}

function acceptConversion(asked: ConversionRequest, { tier }: ServiceContext): Model {
  const { modelId } = asked;
  requireLatencyLevel(asked.latencyLevel);
  requireFormat(asked.outputFormat, { isStream: asked.isStream, tier });
  const model = findModel(modelId);
  if (model === undefined || !model.canConvert) {
    const message =
      model === undefined
        ? `A model with model ID ${modelId.slice(0, 64)} does not exist.`
        : `Model '${model.id}' can not be used for voice conversion.`;
    const status = model === undefined ? "model_not_found" : "model_can_not_do_voice_conversion";
    throw ApiError.unfit("unsupported_model", message, { status, param: "model_id" });
  }
  requireLoggable(asked.isLogged, tier);
  requireBound("speed", asked.settings.speed, SPEED);
  requireBound("style", asked.settings.style, STYLE);
  requireSeed(asked.seed);
  return model;
}

function mannerOf(settings: ConversionRequest["settings"]): Manner {
  const { stability = 0.5, style = 0, speed = 1 } = settings;
  return {
    // As in speech (utterance-plan.ts): the extremes are half and 2.25 times the recording's movement.
    melody: (1.5 - stability) * (1 + style / 2),
    speed,
    timbre: { similarity: settings.similarity_boost, speakerBoost: settings.use_speaker_boost },
  };
}

/** What was said is not known: the item has no text. */
function itemOf(
  asked: ConversionRequest,
  facts: { readonly target: ConversionTarget; readonly cost: number; readonly requestId: string },
): Omit<NewHistoryItem, "alignmentsJson"> {
  const { target } = facts;
  const settings = Object.entries(asked.settings).filter(([, value]) => value !== undefined);
  return {
    requestId: facts.requestId,
    voiceId: target.id,
    voiceName: target.name,
    voiceCategory: target.category,
    modelId: asked.modelId,
    text: null,
    dateUnix: Math.floor(Date.now() / 1000),
    characters: facts.cost,
    contentType: audioTypeOf(asked.outputFormat),
    outputFormat: asked.outputFormat,
    source: "STS",
    settings: {
      ...Object.fromEntries(settings),
      ...(asked.seed === undefined ? {} : { seed: asked.seed }),
      ...(asked.removesNoise ? { remove_background_noise: true } : {}),
      ...(asked.fileFormat === "other" ? {} : { file_format: asked.fileFormat }),
      ...(asked.latencyLevel === undefined ? {} : { optimize_streaming_latency: asked.latencyLevel }),
    },
    dialogue: null,
  };
}

function noTarget({ neuralVoices }: ServiceContext, voiceId: string): ApiError {
  if (!neuralVoices.has(voiceId)) return ApiError.notFound("voice", voiceId);
  const message = `Voice '${voiceId}' is of a model, which speaks texts only, expected a voice of another kind.`;
  return ApiError.unfit("invalid_parameters", message, { param: "voice_id" });
}
