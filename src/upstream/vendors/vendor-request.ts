/** A synthesis request as the upstream's interface wants it on the wire: path, query and JSON body. */
import { GatewayError } from "../../errors.ts";
import type { DialogueRequest, SpeechRequest, SynthesisRequest } from "../types.ts";
import { FIRST_UPSTREAM, withVendorOptions } from "../vendor-options.ts";

export interface WireRequest {
  /** Path and query, to be appended to the base URL's path. */
  readonly path: string;
  /** JSON. */
  readonly body: string;
}

/** Throws unknown_voice where a voice id can't stand in a path, upstream_invalid for a vendor option that is ours. */
export function wireRequest(request: SynthesisRequest): WireRequest {
  const resource =
    request.kind === "speech"
      ? `/v1/text-to-speech/${encodeVoiceId(request.voiceId)}/stream`
      : "/v1/text-to-dialogue/stream";
  const variant = request.wantsTiming ? "/with-timestamps" : "";
  const query = new URLSearchParams({ output_format: request.outputFormat });
  if (request.enableLogging !== undefined) query.set("enable_logging", String(request.enableLogging));
  const fields = request.kind === "speech" ? speechFields(request) : dialogueFields(request);
  // JSON.stringify leaves out what is undefined, so a field that was not given is not sent.
  const body = JSON.stringify({
    ...fields,
    model_id: request.modelId,
    language_code: request.languageCode,
    seed: request.seed,
    apply_text_normalization: request.applyTextNormalization,
    apply_language_text_normalization: request.applyLanguageTextNormalization,
    pronunciation_dictionary_locators: request.locators,
  });
  return {
    path: `${resource}${variant}?${query}`,
    body: withVendorOptions(body, FIRST_UPSTREAM, request.vendorOptions),
  };
}

function speechFields(request: SpeechRequest): Record<string, unknown> {
  return {
    text: request.text,
    voice_settings: request.voiceSettings,
    previous_text: request.previousText,
    next_text: request.nextText,
    previous_request_ids: request.previousRequestIds,
  };
}

function dialogueFields(request: DialogueRequest): Record<string, unknown> {
  return {
    inputs: request.inputs.map(({ text, voiceId }) => ({ text, voice_id: voiceId })),
    settings: request.settings,
  };
}

/**
 * One path segment. An empty id would name another resource, and servers read `.` and `..` as steps in the path even
 * when they are percent-encoded (WHATWG URL, "double-dot path segment"), so these can't be sent at all.
 */
function encodeVoiceId(voiceId: string): string {
  if (voiceId !== "" && voiceId !== "." && voiceId !== "..") {
    try {
      return encodeURIComponent(voiceId);
    } catch (thrown) {
      throw unusableVoice("it has a lone surrogate", thrown);
    }
  }
  throw unusableVoice(`it is ${JSON.stringify(voiceId)}`);
}

function unusableVoice(what: string, cause?: unknown): GatewayError {
  return new GatewayError(
    "unknown_voice",
    `Voice id can't be used: ${what}, expected an id of the upstream`,
    {
      field: "voice_id",
      cause,
    },
  );
}
