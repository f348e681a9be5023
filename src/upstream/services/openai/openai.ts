/**
 * OpenAI's POST /v1/audio/speech, and every server that is shaped like it. What such a server sends is told by its content
 * type and its first bytes, and by nothing that it is called: some send WAV whatever was asked for, some at a rate that
 * nothing says. So WAV is asked for, unless the rate of its PCM is set as `sample-rate`. It gives no times.
 */

import type { Sampled } from "../../../audio/containers/wav-stripper.ts";
import { headerOf, type ResponseHeaders } from "../../headers.ts";
import type { BodyReader } from "../../transport/speech-stream.ts";
import type { SpeechRequest } from "../../types.ts";
import type { AnswerSink, Capabilities, RefusalTable, ServiceAdapter, ServiceSettings } from "../adapter.ts";
import { parseRate } from "../audio-type.ts";
import { audioKey, objectOf, textOf, truncated } from "../json-values.ts";
import { lineReader } from "../line-reader.ts";
import { languageOf, listedVoices, type VoiceListing } from "../listed-voices.ts";
import { plainReader } from "../plain-reader.ts";

/** What most such servers take, too. */
const DEFAULT_MODEL = "tts-1";
const AUDIO = audioKey("audio");
const VENDOR_HOST = /^https:\/\/[\w.-]*\bopenai\.com(?:\/|$)/i;

const SHARED = {
  times: "none",
  formats: [{ codec: "pcm", sampleRates: [24_000] }],
  settings: ["voice_settings.speed"],
  breaks: "ignored",
} as const satisfies Partial<Capabilities>;
const VENDOR: Capabilities = { ...SHARED, isLocal: false, startLimit: 8, maxChars: 4096 };
const OWN: Capabilities = { ...SHARED, isLocal: true, startLimit: 2, maxOpen: 4, firstAudioMs: 20_000 };

const REFUSALS: RefusalTable = {
  codesOf: ({ error, detail }) => [
    objectOf(error).code,
    objectOf(error).type,
    objectOf(error).param,
    objectOf(detail).error,
    objectOf(detail).type,
  ],
  meanings: {
    insufficient_quota: { code: "upstream_forbidden" },
    rate_limit_exceeded: { code: "upstream_rate_limited" },
    invalid_api_key: { code: "upstream_unauthorized" },
    model_not_found: { code: "upstream_invalid", field: "model_id" },
    // The name of the parameter that it does not take.
    voice: { code: "unknown_voice", field: "voice_id" },
    voice_not_found: { code: "unknown_voice", field: "voice_id" },
  },
};

/** Servers of one's own may list their voices; OpenAI does so nowhere. */
const VOICES: VoiceListing = {
  path: "/v1/audio/voices",
  read: (body) => {
    const { voices, data } = objectOf(body);
    return listedVoices(voices ?? data, {
      id: ["id", "voice_id", "name"],
      name: ["name"],
      labels: ({ language, gender }) => ({ language: languageOf(language), gender }),
    });
  },
};

export function createOpenAi({ key, model, sampleRate, baseUrl }: ServiceSettings): ServiceAdapter {
  const plain: Sampled | null = sampleRate === null ? null : { codec: "pcm", sampleRate, channels: 1 };
  const isVendor = VENDOR_HOST.test(baseUrl);
  return {
    capabilities: isVendor ? VENDOR : OWN,
    ...(isVendor ? {} : { voices: VOICES }),
    headers: key === "" ? [] : ["authorization", `Bearer ${key}`],
    checkPath: "/v1/models",
    refusals: REFUSALS,
    request: (request) => ({
      path: "/v1/audio/speech",
      body: bodyOf(request, { model, responseFormat: plain === null ? "wav" : "pcm" }),
      audio: plain,
    }),
    answer: (headers, sink) => read(headers, sink),
  };
}

function bodyOf(
  { voiceId, text, modelId, voiceSettings }: SpeechRequest,
  { model, responseFormat }: { readonly model: string; readonly responseFormat: string },
): string {
  return JSON.stringify({
    model: modelId ?? (model || DEFAULT_MODEL),
    input: text,
    voice: voiceId,
    response_format: responseFormat,
    speed: voiceSettings?.speed,
  });
}

function read(headers: ResponseHeaders, sink: AnswerSink): BodyReader {
  const type = headerOf(headers, "content-type") ?? "";
  if (!/^text\/event-stream\b/i.test(type)) return plainReader(sink, headers, parseRate(headers));
  let isDone = false;
  let hasAudio = false;
  return lineReader({
    key: AUDIO,
    onLine: (value, audio) => {
      if (value.error !== undefined) sink.fail({ body: value });
      if (textOf(value.type).endsWith(".done")) isDone = true;
      if (audio === null) return;
      // The first one may begin with a header; those of the others are pieces of the same audio.
      sink.piece({ audio, isChunk: !hasAudio });
      hasAudio = true;
    },
    onEnd: () => {
      if (!isDone) throw truncated("its last event is missing");
    },
  });
}
