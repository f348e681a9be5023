/**
 * Section "Speech to speech" (service-interface.md 4.9, contract A10): somebody's recording in another voice, whole or
 * streamed. What is done to it: src/service/convert/transformer.ts.
 */
import { randomBytes } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { GatewayError } from "../../errors.ts";
import { asRefusal, enterpriseOnly, invalid, refusalOf } from "../convert/answers.ts";
import { clientSignal } from "../convert/client-signal.ts";
import { conversionOpener, conversionSpec, secondsOf } from "../convert/conversion.ts";
import { type ConversionTarget, findTarget } from "../convert/conversion-target.ts";
import { jsonObject } from "../convert/json-field.ts";
import { type Workshop, workshopOf } from "../convert/workshop.ts";
import { delayOrRefuse, withFaults } from "../faults/apply.ts";
import { FAULT_HEADER } from "../faults/fault.ts";
import { decodeUpload, FILE_FORMATS, type FileFormat } from "../media/decode-upload.ts";
import {
  formFields,
  readUpload,
  registerUploads,
  requiredFile,
  type Upload,
  type UploadedFile,
} from "../media/upload.ts";
import { type NewHistoryItem, newHistoryId } from "../store/history.ts";
import {
  authorize,
  CORS_HEADERS,
  queryFields,
  type ServiceContext,
  TRACE_HEADER,
  traceIdOf,
} from "./context.ts";
import { deliverStream, deliverWhole } from "./delivery.ts";
import { findModel, type Model } from "./models-catalogue.ts";
import { audioTypeOf, requireFormat } from "./output-format.ts";
import { Fields } from "./pydantic.ts";
import { recordingOpener } from "./recorder.ts";
import { Refusal, type ValidationEntry } from "./refusal.ts";
import { readQuery, voiceNotFound } from "./speech-request.ts";

const DEFAULT_MODEL = "eleven_english_sts_v2";
const MAX_SEED = 4_294_967_295;
const MAX_LATENCY_LEVEL = 4;
/** An approximation: what the vendor bills is not published. */
const CHARACTERS_A_MINUTE = 1000;

interface ConversionRequest {
  readonly voiceId: string;
  readonly isStream: boolean;
  readonly outputFormat: string;
  readonly isLogged: boolean;
  readonly latency: number | undefined;
  readonly modelId: string;
  readonly settings: Readonly<Record<string, number | boolean | undefined>>;
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
  const workshop = workshopOf(app, context.voices);
  app.register(async (scope) => {
    await registerUploads(scope);
    for (const isStream of [false, true]) {
      scope.post<{ Params: { voice_id: string } }>(
        `/v1/speech-to-speech/:voice_id${isStream ? "/stream" : ""}`,
        async (request, reply) => {
          const exchange = { request, reply, beganMs: performance.now() };
          const stranger = refusalOf(() => authorize(context, request));
          const upload = await readUpload(request, { keepsFiles: stranger === null });
          try {
            const { asked, file } = readRequest(request, upload, isStream);
            if (stranger !== null) throw stranger;
            await convert({ context, workshop }, exchange, { asked, file });
          } finally {
            await upload.close();
          }
        },
      );
    }
  });
}

/** The form's shape (422). */
function readRequest(
  request: FastifyRequest<{ Params: { voice_id: string } }>,
  upload: Upload,
  isStream: boolean,
): { readonly asked: ConversionRequest; readonly file: UploadedFile } {
  const faults: ValidationEntry[] = [];
  const query = readQuery(queryFields(request, faults), { hasLatency: true });
  const file = requiredFile(upload, "audio", faults);
  const form = formFields(upload, faults);
  const modelId = form.text("model_id") ?? DEFAULT_MODEL;
  const settings = readSettings(form.text("voice_settings"), faults);
  const seed = form.integer("seed");
  const removesNoise = form.boolean("remove_background_noise") ?? false;
  const fileFormat = form.choice("file_format", FILE_FORMATS) ?? "other";
  if (faults.length > 0 || file === undefined) throw Refusal.invalid(faults);
  const { voice_id: voiceId } = request.params;
  return { asked: { voiceId, isStream, ...query, modelId, settings, seed, removesNoise, fileFormat }, file };
}

function readSettings(text: string | undefined, faults: ValidationEntry[]): ConversionRequest["settings"] {
  const value = jsonObject(text, { name: "voice_settings", faults });
  if (value === undefined) return {};
  const fields = new Fields(value, { place: ["body", "voice_settings"], faults, missingInput: value });
  return {
    stability: fields.number("stability", { min: 0, max: 1 }),
    similarity_boost: fields.number("similarity_boost", { min: 0, max: 1 }),
    style: fields.number("style"),
    use_speaker_boost: fields.boolean("use_speaker_boost"),
    speed: fields.number("speed"),
  };
}

/** What is asked for (400, 403, 404), then the conversion and its delivery. */
async function convert(
  { context, workshop }: { readonly context: ServiceContext; readonly workshop: Workshop },
  exchange: Exchange,
  { asked, file }: { readonly asked: ConversionRequest; readonly file: UploadedFile },
): Promise<void> {
  const { request, reply } = exchange;
  const { faults } = context.faults.next(request.headers[FAULT_HEADER]);
  const model = acceptConversion(asked, context);
  const target = findTarget(context, workshop, asked.voiceId);
  if (target === undefined) throw voiceNotFound(asked.voiceId);
  if (faults.length > 0) await delayOrRefuse(faults, reply);
  const client = clientSignal(reply.raw);
  const admission = context.gate.enter(model.concurrencyGroup);
  let leaveSeat = (): void => undefined;
  let failure: unknown;
  try {
    leaveSeat = await workshop.enter(client.signal);
    // All of it is decoded once before: what it costs, and that none of it is broken, is known before the answer begins.
    const seconds = await secondsOf(decodeUpload(file, asked), client.signal);
    const cost = Math.ceil((seconds * CHARACTERS_A_MINUTE) / 60);
    const profile = await target.profile();
    if (profile === null)
      throw new GatewayError("internal", "Cannot convert: the target voice was not measured");
    client.signal.throwIfAborted();
    const requestId = randomBytes(10).toString("hex");
    const historyItemId = asked.isLogged ? newHistoryId() : null;
    const converting = conversionOpener(workshop, {
      source: () => decodeUpload(file, asked),
      target: profile,
      removesNoise: asked.removesNoise,
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
      spec: conversionSpec(asked.outputFormat),
      isDialogue: false,
      wantsTiming: false,
      outputFormat: asked.outputFormat,
      headers: () => ({
        ...CORS_HEADERS,
        [TRACE_HEADER]: traceIdOf(reply),
        "content-type": audioTypeOf(asked.outputFormat),
        "request-id": requestId,
        ...(historyItemId === null ? {} : { "history-item-id": historyItemId }),
        "character-cost": String(cost),
        "current-concurrent-requests": String(admission.current),
        "maximum-concurrent-requests": String(admission.maximum),
        "tts-latency-ms": String(Math.round(performance.now() - exchange.beganMs)),
        "x-region": "local",
      }),
    });
  } catch (thrown) {
    // Nobody is there to be told.
    if (!client.signal.aborted) throw failure instanceof Refusal ? failure : asRefusal(thrown);
  } finally {
    client.release();
    leaveSeat();
    admission.leave();
  }
  // The raw response was written: only what went wrong before the first byte is left to Fastify.
  if (reply.raw.headersSent || reply.raw.destroyed) reply.hijack();
}

function acceptConversion(asked: ConversionRequest, { tier }: ServiceContext): Model {
  const { latency, seed, modelId } = asked;
  if (latency !== undefined && !(latency >= 0 && latency <= MAX_LATENCY_LEVEL)) {
    const message = `Invalid optimize_streaming_latency ${latency}, expected 0 to ${MAX_LATENCY_LEVEL}.`;
    throw invalid("invalid_parameters", message, "optimize_streaming_latency");
  }
  requireFormat(asked.outputFormat, { isStream: asked.isStream, tier });
  const model = findModel(modelId);
  if (model === undefined || !model.canConvert) {
    const message =
      model === undefined
        ? `A model with model ID ${modelId.slice(0, 64)} does not exist.`
        : `Model '${model.id}' can not be used for voice conversion.`;
    const status = model === undefined ? "model_not_found" : "model_can_not_do_voice_conversion";
    const detail = {
      type: "validation_error",
      code: "unsupported_model",
      status,
      message,
      param: "model_id",
    };
    throw Refusal.of(detail);
  }
  if (!asked.isLogged && tier !== "enterprise") {
    const message = "Zero retention mode (enable_logging=false) is only available to enterprise customers.";
    throw enterpriseOnly(message, "enable_logging");
  }
  if (seed !== undefined && !(seed >= 0 && seed <= MAX_SEED)) {
    throw invalid("invalid_parameters", `Invalid seed, expected an integer from 0 to ${MAX_SEED}.`, "seed");
  }
  return model;
}

/** Contract A7. What was said is not known: the item has no text. */
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
    settings: Object.fromEntries(settings),
    dialogue: null,
  };
}
