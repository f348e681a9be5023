/** A voice and its samples as the answers have them. */
import type { Sample } from "../../store/voices.ts";
import {
  BOOLEAN,
  eachOf,
  INTEGER,
  listOf,
  mapOf,
  NULL,
  NUMBER,
  named,
  nullable,
  oneOf,
  record,
  STRING,
} from "../json-schema.ts";

const SAMPLE = named(
  "VoiceSample",
  record({
    sample_id: STRING,
    file_name: STRING,
    mime_type: STRING,
    size_bytes: INTEGER,
    hash: STRING,
    duration_secs: nullable(NUMBER),
    remove_background_noise: nullable(BOOLEAN),
    has_isolated_audio: BOOLEAN,
    has_isolated_audio_preview: BOOLEAN,
    trim_start: NULL,
    trim_end: NULL,
    speaker_separation: NULL,
  }),
);

const VERIFIED_LANGUAGE = record({
  language: STRING,
  model_id: STRING,
  accent: nullable(STRING),
  locale: NULL,
  preview_url: NULL,
});

/** What the embedded voices never have. */
const NEVER = [
  "fine_tuning",
  "preview_url",
  "settings",
  "sharing",
  "collection_ids",
  "safety_control",
  "voice_verification",
  "permission_on_resource",
  "favorited_at_unix",
  "is_bookmarked",
  "recording_quality",
  "labelling_status",
  "recording_quality_reason",
] as const;

export const VOICE = named(
  "Voice",
  record({
    voice_id: STRING,
    name: STRING,
    samples: nullable(listOf(SAMPLE)),
    category: oneOf(["premade", "cloned"]),
    labels: mapOf(STRING),
    description: nullable(STRING),
    available_for_tiers: listOf(STRING),
    high_quality_base_model_ids: listOf(STRING),
    verified_languages: listOf(VERIFIED_LANGUAGE),
    is_owner: BOOLEAN,
    is_legacy: BOOLEAN,
    is_mixed: BOOLEAN,
    created_at_unix: INTEGER,
    ...eachOf(NEVER, NULL),
  }),
);

/** The sample in a voice's record. */
export function sampleRecord(sample: Sample): object {
  return {
    sample_id: sample.id,
    file_name: sample.fileName,
    mime_type: sample.mimeType,
    size_bytes: sample.media.bytes,
    hash: sample.media.hash,
    duration_secs: sample.durationSeconds,
    remove_background_noise: sample.removesNoise,
    has_isolated_audio: false,
    has_isolated_audio_preview: false,
    trim_start: null,
    trim_end: null,
    speaker_separation: null,
  };
}
