/** What the endpoints of speech answer with, for the OpenAPI document; timing-json.ts writes it. */
import { OUTPUT_FORMATS, STREAM_FORMATS } from "../../../audio/formats.ts";
import {
  ALIGNMENT,
  type Answer,
  audioOf,
  json,
  jsonLines,
  NULLABLE_ALIGNMENT,
  SPEECH_HEADERS,
} from "../answers.ts";
import { INTEGER, type JsonSchema, listOf, NUMBER, named, record, STRING } from "../json-schema.ts";

const AUDIO: JsonSchema = { ...STRING, contentEncoding: "base64" };

const TRUE_WORD = record({
  normalized_character_index: INTEGER,
  character_index: INTEGER,
  length: INTEGER,
  start_time_seconds: NUMBER,
});

/** With x-voicewire-truth only. */
const TRUTH = { voicewire_words: listOf(TRUE_WORD), voicewire_alignment: NULLABLE_ALIGNMENT };
const TIMED = {
  audio_base64: AUDIO,
  alignment: NULLABLE_ALIGNMENT,
  normalized_alignment: NULLABLE_ALIGNMENT,
};

const SEGMENT = named(
  "VoiceSegment",
  record({
    voice_id: STRING,
    start_time_seconds: NUMBER,
    end_time_seconds: NUMBER,
    character_start_index: INTEGER,
    character_end_index: { ...INTEGER, description: "Exclusive." },
    dialogue_input_index: INTEGER,
  }),
);

const OPTIONAL = Object.keys(TRUTH);
export const TIMED_SPEECH = named("AudioWithTimestamps", record({ ...TIMED, ...TRUTH }, OPTIONAL));
export const TIMED_LINE = named(
  "StreamingAudioChunkWithTimestamps",
  record({ ...TIMED, ...TRUTH }, OPTIONAL),
);
const WITH_SEGMENTS = record({ ...TIMED, voice_segments: listOf(SEGMENT), ...TRUTH }, OPTIONAL);
export const TIMED_DIALOGUE = named("AudioWithTimestampsAndVoiceSegments", WITH_SEGMENTS);
export const TIMED_DIALOGUE_LINE = named("StreamingAudioChunkWithTimestampsAndVoiceSegments", WITH_SEGMENTS);

/** `timed`: JSON with audio in it; null: audio alone. */
export function speechAnswer(options: {
  readonly isStream: boolean;
  readonly timed: JsonSchema | null;
}): Answer {
  return { ...bodyOf(options), headers: SPEECH_HEADERS };
}

function bodyOf({
  isStream,
  timed,
}: {
  readonly isStream: boolean;
  readonly timed: JsonSchema | null;
}): Answer {
  if (timed === null) {
    return isStream
      ? audioOf(STREAM_FORMATS, "The audio, as it is made.")
      : audioOf(OUTPUT_FORMATS, "The audio, whole.");
  }
  if (!isStream) return json(timed, "The audio in base64, and when each character is spoken.");
  return jsonLines(timed, "One object a line; times count from the start of the answer.");
}

/** As the history keeps both. */
export const KEPT_ALIGNMENTS = record({ alignment: ALIGNMENT, normalized_alignment: ALIGNMENT });
