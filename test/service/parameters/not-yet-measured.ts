/** By endpoint, what no test measures yet. It shrinks to nothing: a parameter that is measured has to leave it. */
export const NOT_YET_MEASURED: Readonly<Record<string, readonly string[]>> = {
  "POST /v1/text-to-speech/{voice_id}": [
    "optimize_streaming_latency",
    "language_code",
    "pronunciation_dictionary_locators[].pronunciation_dictionary_id",
    "pronunciation_dictionary_locators[].version_id",
    "previous_text",
    "next_text",
    "previous_request_ids",
    "next_request_ids",
    "apply_text_normalization",
    "apply_language_text_normalization",
  ],
  "POST /v1/text-to-dialogue": [
    "language_code",
    "pronunciation_dictionary_locators[].pronunciation_dictionary_id",
    "pronunciation_dictionary_locators[].version_id",
    "apply_text_normalization",
    "previous_text",
    "future_text",
    "previous_request_ids",
    "next_request_ids",
  ],
  "POST /v1/sound-generation": [
    "output_format",
    "text",
    "loop",
    "duration_seconds",
    "prompt_influence",
    "model_id",
  ],
  "POST /v1/speech-to-speech/{voice_id}": ["optimize_streaming_latency"],
};
