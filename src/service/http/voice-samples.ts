/**
 * Section "Voice samples" (service-interface.md 2.4, 4.6; contract A8, E1): voices from recordings, and the recordings.
 * Such a voice is an approximation: in text to speech the embedded voice nearest in pitch speaks at the samples' pitch, in
 * speech to speech the recording is moved to the samples' pitch and vocal tract (src/service/convert).
 */
import type { FastifyInstance } from "fastify";
import { asRefusal, invalid, refusalOf } from "../convert/answers.ts";
import { clientSignal } from "../convert/client-signal.ts";
import { jsonObject } from "../convert/json-field.ts";
import { keepSamples, measureSamples, nearestVoice, type SampleFile } from "../convert/sample-intake.ts";
import { soundOf } from "../convert/stored-voice.ts";
import { type Workshop, workshopOf } from "../convert/workshop.ts";
import { formFields, readUpload, registerUploads, requiredFile, type Upload } from "../media/upload.ts";
import type { Sample, StoredVoice } from "../store/voices.ts";
import { findVoice } from "../voice/voices.ts";
import { authorize, type ServiceContext } from "./context.ts";
import { Refusal, type ValidationEntry } from "./refusal.ts";
import { voiceNotFound } from "./speech-request.ts";

/** What the vendor's form takes; the rest bounds what is kept. */
const MAX_NAME_LENGTH = 100;
const MAX_DESCRIPTION_LENGTH = 500;
const MAX_LABELS = 20;
const MAX_LABEL_LENGTH = 200;
/** GET /v1/voices lists them all. */
const MAX_VOICES = 500;

interface VoiceRequest {
  readonly name: string;
  readonly description: string | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly removesNoise: boolean;
  readonly files: readonly SampleFile[];
}

/** POST /v1/voices/add, DELETE /v1/voices/{voice_id}, and DELETE and GET .../audio of its samples. */
export function registerVoiceSamples(app: FastifyInstance, context: ServiceContext): void {
  const workshop = workshopOf(app, context.voices);
  app.register(async (scope) => {
    await registerUploads(scope);
    scope.post("/v1/voices/add", async (request, reply) => {
      const stranger = refusalOf(() => authorize(context, request));
      const upload = await readUpload(request, { keepsFiles: stranger === null });
      const client = clientSignal(reply.raw);
      try {
        const asked = readRequest(upload);
        if (stranger !== null) throw stranger;
        requireBounds(asked, context);
        const voice = await addVoice({ context, workshop }, asked, client.signal);
        return { voice_id: voice.id, requires_verification: false };
      } catch (thrown) {
        if (!client.signal.aborted) throw asRefusal(thrown);
        // Nobody is there to be told.
        return reply.hijack();
      } finally {
        client.release();
        await upload.close();
      }
    });
  });
  app.delete<{ Params: { voice_id: string } }>("/v1/voices/:voice_id", async (request) => {
    authorize(context, request);
    const { voice_id: id } = request.params;
    if (findVoice(id) !== undefined) {
      const message = "The voice is premade and can not be deleted.";
      const detail = { type: "authorization_error", code: "voice_access_denied", message, param: "voice_id" };
      throw Refusal.of(detail);
    }
    const name = context.store.voices.get(id)?.name;
    if (name === undefined || !context.store.voices.delete(id)) throw voiceNotFound(id);
    const data = { voice_id: id, voice_name: name };
    context.webhooks.emit("voice_library_removal_notice", "voice_removed", data);
    return { status: "ok" };
  });
  app.delete<{ Params: { voice_id: string; sample_id: string } }>(
    "/v1/voices/:voice_id/samples/:sample_id",
    async (request) => {
      authorize(context, request);
      const sample = requireSample(context, request.params);
      context.store.voices.deleteSample(sample.voiceId, sample.id);
      return { status: "ok" };
    },
  );
  app.get<{ Params: { voice_id: string; sample_id: string } }>(
    "/v1/voices/:voice_id/samples/:sample_id/audio",
    async (request, reply) => {
      authorize(context, request);
      const { media, mimeType } = requireSample(context, request.params);
      return reply
        .type(mimeType)
        .header("content-length", media.bytes)
        .send(context.store.media.stream(media.hash));
    },
  );
}

/** The sample in a voice's record (contract A8). */
export function sampleRecord(sample: Sample): object {
  return {
    sample_id: sample.id,
    file_name: sample.fileName,
    mime_type: sample.mimeType,
    size_bytes: sample.media.bytes,
    hash: sample.media.hash,
    duration_secs: sample.durationSeconds,
    remove_background_noise: null,
    has_isolated_audio: false,
    has_isolated_audio_preview: false,
    trim_start: null,
    trim_end: null,
    speaker_separation: null,
  };
}

/** The form's shape (422). */
function readRequest(upload: Upload): VoiceRequest {
  const faults: ValidationEntry[] = [];
  const form = formFields(upload, faults);
  const name = form.requiredText("name");
  requiredFile(upload, "files", faults);
  const description = form.text("description") ?? null;
  const labels: Record<string, string> = {};
  for (const [label, value] of Object.entries(
    jsonObject(form.text("labels"), { name: "labels", faults }) ?? {},
  )) {
    if (typeof value === "string") labels[label] = value;
    else {
      const loc = ["body", "labels", label];
      faults.push({ type: "string_type", loc, msg: "Input should be a valid string", input: value });
    }
  }
  const removesNoise = form.boolean("remove_background_noise") ?? false;
  if (faults.length > 0) throw Refusal.invalid(faults);
  return {
    name,
    description,
    labels,
    removesNoise,
    files: upload.files.filter(({ field }) => field === "files"),
  };
}

function requireBounds({ name, description, labels }: VoiceRequest, { store }: ServiceContext): void {
  if (name.trim() === "" || name.length > MAX_NAME_LENGTH) {
    const message = `The name has ${name.length} characters, expected 1 to ${MAX_NAME_LENGTH}.`;
    throw invalid("invalid_parameters", message, "name");
  }
  if ((description?.length ?? 0) > MAX_DESCRIPTION_LENGTH) {
    const message = `The description is longer than ${MAX_DESCRIPTION_LENGTH} characters.`;
    throw invalid("invalid_parameters", message, "description");
  }
  const entries = Object.entries(labels);
  if (entries.length > MAX_LABELS || entries.some((entry) => entry.join("").length > MAX_LABEL_LENGTH)) {
    const message = `Too many or too long labels, expected at most ${MAX_LABELS} of ${MAX_LABEL_LENGTH} characters.`;
    throw invalid("invalid_parameters", message, "labels");
  }
  if (store.voices.list().length >= MAX_VOICES) {
    const message = `You have reached your maximum amount of ${MAX_VOICES} custom voices.`;
    throw Refusal.of({ type: "validation_error", code: "voice_limit_reached", message });
  }
}

async function addVoice(
  { context, workshop }: { readonly context: ServiceContext; readonly workshop: Workshop },
  asked: VoiceRequest,
  signal: AbortSignal,
): Promise<StoredVoice> {
  const leaveSeat = await workshop.enter(signal);
  try {
    const { profile, seconds } = await measureSamples(workshop, asked.files, { ...asked, signal });
    const nearest = await nearestVoice(workshop, {
      pitchHz: profile.pitchHz,
      language: asked.labels.language,
    });
    const samples = await keepSamples(context.store.media, asked.files, { seconds, signal });
    const { name, description, labels } = asked;
    const createdAtUnix = Math.floor(Date.now() / 1000);
    // The store takes the samples over, whatever becomes of them.
    return context.store.voices.add(
      { name, description, labels, sound: soundOf(profile, nearest), createdAtUnix },
      samples,
    );
  } finally {
    leaveSeat();
  }
}

function requireSample(
  { store }: ServiceContext,
  ids: { readonly voice_id: string; readonly sample_id: string },
): Sample {
  const { voice_id: voiceId, sample_id: sampleId } = ids;
  if (findVoice(voiceId) === undefined && store.voices.get(voiceId) === undefined)
    throw voiceNotFound(voiceId);
  const sample = store.voices.sample(voiceId, sampleId);
  if (sample !== undefined) return sample;
  const message = `A sample with sample_id '${sampleId.slice(0, 64)}' was not found.`;
  throw Refusal.of({ type: "not_found", code: "sample_not_found", message, param: "sample_id" });
}
