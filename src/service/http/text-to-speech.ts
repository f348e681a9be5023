/** Section "Text to speech" (service-interface.md 4.7, contract A2, A3): four endpoints that differ in what they answer with. */
import type { FastifyInstance } from "fastify";
import { readBody } from "./body.ts";
import { authorize, queryFields, type ServiceContext } from "./context.ts";
import type { Fields } from "./pydantic.ts";
import { Refusal, type ValidationEntry } from "./refusal.ts";
import { speak } from "./speak.ts";
import { NORMALIZATIONS, readDictionaryIds, readQuery, type SpeechShape } from "./speech-request.ts";

const ENDPOINTS = [
  { path: "", isStream: false, wantsTiming: false },
  { path: "/with-timestamps", isStream: false, wantsTiming: true },
  { path: "/stream", isStream: true, wantsTiming: false },
  { path: "/stream/with-timestamps", isStream: true, wantsTiming: true },
] as const;

/** In the interface's order. */
const BODY_FIELDS = [
  "text",
  "model_id",
  "language_code",
  "voice_settings",
  "pronunciation_dictionary_locators",
  "seed",
  "previous_text",
  "next_text",
  "previous_request_ids",
  "next_request_ids",
  "use_pvc_as_ivc",
  "apply_text_normalization",
  "apply_language_text_normalization",
] as const;
const DEFAULT_MODEL = "eleven_multilingual_v2";
const MAX_LATENCY_LEVEL = 4;

export function registerTextToSpeech(app: FastifyInstance, context: ServiceContext): void {
  for (const { path, isStream, wantsTiming } of ENDPOINTS) {
    app.post<{ Params: { voice_id: string } }>(
      `/v1/text-to-speech/:voice_id${path}`,
      async (request, reply) => {
        const beganMs = performance.now();
        const faults: ValidationEntry[] = [];
        const query = readQuery(queryFields(request, faults), { hasLatency: true });
        const raw = {
          contentType: request.headers["content-type"],
          bytes: request.body as Uint8Array | undefined,
        };
        const body = readBody(raw, { names: BODY_FIELDS, faults });
        const shape = { ...readSpeech(body, request.params.voice_id), ...query };
        if (faults.length > 0) throw Refusal.invalid(faults);
        authorize(context, request);
        requireLatencyLevel(query.latency);
        // Level 4 turns the text normalizer off (service-interface.md 4.2).
        const normalization = query.latency === MAX_LATENCY_LEVEL ? "off" : shape.normalization;
        const kind = { isDialogue: false, isStream, wantsTiming };
        await speak(context, { request, reply, beganMs }, { shape: { ...shape, normalization }, kind });
      },
    );
  }
}

function readSpeech(body: Fields, voiceId: string): Omit<SpeechShape, "outputFormat" | "isLogged"> {
  const text = body.requiredText("text");
  const modelId = body.text("model_id") ?? DEFAULT_MODEL;
  const languageCode = body.text("language_code");
  const settings = body.object("voice_settings");
  const stability = settings?.number("stability", { min: 0, max: 1 });
  settings?.number("similarity_boost", { min: 0, max: 1 });
  const style = settings?.number("style");
  settings?.boolean("use_speaker_boost");
  const speed = settings?.number("speed");
  const dictionaryIds = readDictionaryIds(body);
  const seed = body.integer("seed");
  const hasPreviousText = (body.text("previous_text") ?? "") !== "";
  const hasNextText = (body.text("next_text") ?? "") !== "";
  const previousRequestIds = body.textList("previous_request_ids") ?? [];
  const nextRequestIds = body.textList("next_request_ids") ?? [];
  body.boolean("use_pvc_as_ivc");
  const normalization = body.choice("apply_text_normalization", NORMALIZATIONS) ?? "auto";
  body.boolean("apply_language_text_normalization");
  return {
    inputs: [{ text, voiceId }],
    modelId,
    languageCode,
    stability,
    style,
    speed,
    dictionaryIds,
    seed,
    hasPreviousText,
    hasNextText,
    previousRequestIds,
    nextRequestIds,
    normalization,
  };
}

function requireLatencyLevel(level: number | undefined): void {
  if (level === undefined || (level >= 0 && level <= MAX_LATENCY_LEVEL)) return;
  throw Refusal.of({
    type: "validation_error",
    code: "invalid_parameters",
    message: `Invalid optimize_streaming_latency ${level}, expected 0 to ${MAX_LATENCY_LEVEL}.`,
    param: "optimize_streaming_latency",
  });
}
