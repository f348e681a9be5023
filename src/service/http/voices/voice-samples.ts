/**
 * Section "Voice samples": voices from recordings, and the recordings.
 * Such a voice is an approximation: in text to speech the embedded voice nearest in pitch speaks at the samples' pitch, in
 * speech to speech the recording is moved to the samples' pitch and vocal tract (src/service/convert).
 */
import type { FastifyInstance } from "fastify";
import { ApiError } from "../../api-error.ts";
import { clientSignal } from "../../convert/client-signal.ts";
import { type ConversionPool, conversionPoolOf } from "../../convert/conversion-pool.ts";
import { keepSamples, measureSamples, nearestVoice } from "../../convert/sample-intake.ts";
import { labelledLanguage, soundOf } from "../../convert/stored-voice.ts";
import type { Sample, StoredVoice } from "../../store/voices.ts";
import { findLanguage, LISTED_LANGUAGES } from "../../voice/engine/languages.ts";
import { findVoice } from "../../voice/engine/voices.ts";
import { bytes, json, STATUS_OK } from "../answers.ts";
import type { ServiceContext } from "../context.ts";
import { asApiError } from "../failure.ts";
import { files } from "../form.ts";
import { BOOLEAN, record, STRING } from "../json-schema.ts";
import { boolean, jsonText, text, textMap } from "../kinds.ts";
import { operation, route } from "../operation.ts";
import { optional, required, type Values, withDefault } from "../schema.ts";
import { VOICE_ID } from "../speech/speech-fields.ts";
import { requireVoiceSlot } from "../tiers.ts";

/** What the vendor's form takes; the rest bounds what is kept. */
const MAX_NAME_LENGTH = 100;
const MAX_DESCRIPTION_LENGTH = 500;
const MAX_LABELS = 20;
const MAX_LABEL_LENGTH = 200;

/** In the interface's order. */
const FORM = {
  name: required(
    text({ later: { minLength: 1, maxLength: MAX_NAME_LENGTH } }),
    "What it is called; not blank.",
  ),
  files: required(
    files(),
    "Recordings of the voice, in any format that the service decodes: at most 8, of 100 MB each.",
  ),
  description: optional(text({ later: { maxLength: MAX_DESCRIPTION_LENGTH } }), "Kept as it is."),
  labels: optional(
    jsonText(textMap()),
    `JSON, at most ${MAX_LABELS} of ${MAX_LABEL_LENGTH} characters; "language" is what it speaks, as language_code of speech.`,
  ),
  remove_background_noise: withDefault(boolean(), false, "As isolation does, before the voice is measured."),
} as const;
type VoiceRequest = Values<typeof FORM>;

const SAMPLE_ID = required(text(), "One of the voice's samples; any other is refused with 404.");
const ADD = operation({
  method: "POST",
  url: "/v1/voices/add",
  id: "add_voice",
  tag: "Voices",
  summary: "A voice from recordings",
  body: { kind: "form", name: "AddVoiceForm", shape: FORM },
  errors: [403, 429],
  answer: json(record({ voice_id: STRING, requires_verification: BOOLEAN }), "The voice can be used."),
});
const DELETE = operation({
  method: "DELETE",
  url: "/v1/voices/:voice_id",
  id: "delete_voice",
  tag: "Voices",
  summary: "Deletes an added voice with its samples",
  params: { voice_id: VOICE_ID },
  errors: [403, 404],
  answer: STATUS_OK,
});
const SAMPLE = {
  tag: "Voices",
  params: { voice_id: VOICE_ID, sample_id: SAMPLE_ID },
  errors: [404],
} as const;
const DELETE_SAMPLE = operation({
  ...SAMPLE,
  method: "DELETE",
  url: "/v1/voices/:voice_id/samples/:sample_id",
  id: "delete_sample",
  summary: "Deletes a sample with its audio",
  answer: STATUS_OK,
});
const SAMPLE_AUDIO = operation({
  ...SAMPLE,
  method: "GET",
  url: "/v1/voices/:voice_id/samples/:sample_id/audio",
  id: "get_audio_from_sample",
  summary: "A sample's audio as it was uploaded",
  answer: bytes(["audio/*"], "The audio."),
});

/** POST /v1/voices/add, DELETE /v1/voices/{voice_id}, and DELETE and GET .../audio of its samples. */
export function registerVoiceSamples(app: FastifyInstance, context: ServiceContext): void {
  const pool = conversionPoolOf(app, context.voices);
  /** Voices that are being made: each has its place among those of the plan. */
  let underWay = 0;
  app.register(async (scope) => {
    await context.uploads.register(scope);
    route(scope, context, ADD, async ({ body, reply }) => {
      requireVoiceSlot(context.tier, context.store.voices.list().length + underWay);
      requireBounds(body);
      const client = clientSignal(reply.raw);
      underWay += 1;
      try {
        const voice = await addVoice({ context, pool }, body, client.signal);
        return { voice_id: voice.id, requires_verification: false };
      } catch (thrown) {
        if (!client.signal.aborted) throw asApiError(thrown);
        // Nobody is there to be told.
        return reply.hijack();
      } finally {
        underWay -= 1;
        client.release();
      }
    });
  });
  route(app, context, DELETE, async ({ params: { voice_id: id } }) => {
    if (isPremade(context, id)) {
      const message = "The voice is premade and can not be deleted.";
      const detail = { type: "authorization_error", code: "voice_access_denied", message, param: "voice_id" };
      throw ApiError.of(detail);
    }
    const name = context.store.voices.get(id)?.name;
    if (name === undefined || !context.store.voices.delete(id)) throw ApiError.notFound("voice", id);
    const data = { voice_id: id, voice_name: name };
    context.webhooks.emit("voice_library_removal_notice", "voice_removed", data);
    return { status: "ok" };
  });
  route(app, context, DELETE_SAMPLE, async ({ params }) => {
    const sample = requireSample(context, params);
    context.store.voices.deleteSample(sample.voiceId, sample.id);
    return { status: "ok" };
  });
  route(app, context, SAMPLE_AUDIO, async ({ params, reply }) => {
    const { media, mimeType } = requireSample(context, params);
    return reply
      .type(mimeType)
      .header("content-length", media.bytes)
      .send(context.store.media.stream(media.hash));
  });
}

function requireBounds({ name, description, labels = {} }: VoiceRequest): void {
  if (name.trim() === "" || name.length > MAX_NAME_LENGTH) {
    const message = `The name has ${name.length} characters, expected 1 to ${MAX_NAME_LENGTH}.`;
    throw ApiError.unfit("invalid_parameters", message, { param: "name" });
  }
  if ((description?.length ?? 0) > MAX_DESCRIPTION_LENGTH) {
    const message = `The description is longer than ${MAX_DESCRIPTION_LENGTH} characters.`;
    throw ApiError.unfit("invalid_parameters", message, { param: "description" });
  }
  const entries = Object.entries(labels);
  if (entries.length > MAX_LABELS || entries.some((entry) => entry.join("").length > MAX_LABEL_LENGTH)) {
    const message = `Too many or too long labels, expected at most ${MAX_LABELS} of ${MAX_LABEL_LENGTH} characters.`;
    throw ApiError.unfit("invalid_parameters", message, { param: "labels" });
  }
  requireLanguage(labels.language);
}

/** Throws the 400 of a language that no voice speaks; an empty label counts as none. */
function requireLanguage(label: string | undefined): void {
  if (label === undefined || label === "" || findLanguage(label) !== undefined) return;
  const codes = LISTED_LANGUAGES.map(({ language_id: code }) => code);
  const message = `The label 'language' is '${label.slice(0, 16)}', expected one of ${codes.join(", ")}, or one with a region whose accent there is.`;
  throw ApiError.unfit("invalid_parameters", message, { status: "unsupported_language", param: "labels" });
}

async function addVoice(
  { context, pool }: { readonly context: ServiceContext; readonly pool: ConversionPool },
  asked: VoiceRequest,
  signal: AbortSignal,
): Promise<StoredVoice> {
  const release = await pool.acquire(signal);
  try {
    const { name, description = null, labels = {}, files: recordings } = asked;
    const removesNoise = asked.remove_background_noise;
    const { profile, seconds } = await measureSamples(pool, recordings, { removesNoise, signal });
    const nearest = await nearestVoice(pool, {
      pitchHz: profile.pitchHz,
      language: labelledLanguage(labels)?.code,
    });
    const samples = await keepSamples(context.store.media, recordings, { seconds, removesNoise, signal });
    const createdAtUnix = Math.floor(Date.now() / 1000);
    // The store takes the samples over, whatever becomes of them.
    return context.store.voices.add(
      { name, description, labels, sound: soundOf(profile, nearest), createdAtUnix },
      samples,
    );
  } finally {
    release();
  }
}

function isPremade({ neuralVoices }: ServiceContext, id: string): boolean {
  return findVoice(id) !== undefined || neuralVoices.has(id);
}

function requireSample(
  context: ServiceContext,
  ids: { readonly voice_id: string; readonly sample_id: string },
): Sample {
  const { voice_id: voiceId, sample_id: sampleId } = ids;
  const { store } = context;
  if (!isPremade(context, voiceId) && store.voices.get(voiceId) === undefined)
    throw ApiError.notFound("voice", voiceId);
  const sample = store.voices.sample(voiceId, sampleId);
  if (sample === undefined) throw ApiError.notFound("sample", sampleId);
  return sample;
}
