/** Deepgram Aura: POST /v1/speak, whose voice is the model. Samples without a header, and no times. */
import type { Sampled } from "../../../audio/containers/wav-stripper.ts";
import type { SpeechRequest } from "../../types.ts";
import type { Capabilities, RefusalTable, ServiceAdapter, ServiceSettings } from "../adapter.ts";
import { objectOf } from "../json-values.ts";
import { languageOf, listedVoices, type VoiceListing } from "../listed-voices.ts";
import { plainReader } from "../plain-reader.ts";

const ENCODINGS = { pcm: "linear16", ulaw: "mulaw", alaw: "alaw", f32: "linear16" } as const;

const CAPABILITIES: Capabilities = {
  times: "none",
  formats: [
    { codec: "pcm", sampleRates: [8000, 16_000, 24_000, 32_000, 48_000] },
    { codec: "ulaw", sampleRates: [8000, 16_000] },
    { codec: "alaw", sampleRates: [8000, 16_000] },
  ],
  settings: [],
  isLocal: false,
  breaks: "ignored",
  startLimit: 15,
};

const REFUSALS: RefusalTable = {
  codesOf: ({ err_code, category, error }) => [err_code, category, error],
  meanings: {
    INVALID_AUTH: { code: "upstream_unauthorized" },
    INSUFFICIENT_PERMISSIONS: { code: "upstream_forbidden" },
    ASR_PAYMENT_REQUIRED: { code: "upstream_forbidden" },
    TOO_MANY_REQUESTS: { code: "upstream_rate_limited" },
  },
};

const VOICES: VoiceListing = {
  path: "/v1/models",
  read: (body) =>
    listedVoices(objectOf(body).tts, {
      id: ["canonical_name"],
      name: ["name"],
      labels: ({ languages, metadata }) => ({
        language: languageOf(Array.isArray(languages) ? languages[0] : undefined),
        accent: objectOf(metadata).accent,
      }),
    }),
};

export function createDeepgram({ key }: ServiceSettings): ServiceAdapter {
  return {
    capabilities: CAPABILITIES,
    headers: ["authorization", `Token ${key}`],
    costHeader: "dg-char-count",
    checkPath: "/",
    voices: VOICES,
    refusals: REFUSALS,
    request: (request, format) => ({
      path: pathOf(request, format),
      body: JSON.stringify({ text: request.text }),
      audio: format,
    }),
    answer: (headers, sink) => plainReader(sink, headers, null),
  };
}

function pathOf({ voiceId }: SpeechRequest, { codec, sampleRate }: Sampled): string {
  const query = new URLSearchParams({
    model: voiceId,
    encoding: ENCODINGS[codec],
    container: "none",
    sample_rate: String(sampleRate),
  });
  return `/v1/speak?${query}`;
}
