/**
 * Inworld: POST /tts/v1/voice:stream. Lines of audio and of word times, which may trail their audio on lines of their own.
 * Times count from the start of the response. LINEAR16 has a WAV header in each line, PCM has none.
 */
import type { Sampled } from "../../../audio/containers/wav-stripper.ts";
import type { BodyReader } from "../../transport/speech-stream.ts";
import type { SpeechRequest } from "../../types.ts";
import type { AnswerSink, Capabilities, RefusalTable, ServiceAdapter, ServiceSettings } from "../adapter.ts";
import { audioKey, isObject, numberOf, objectOf } from "../json-values.ts";
import { withRegion } from "../language-tag.ts";
import { lineReader } from "../line-reader.ts";
import { timedWords } from "../timed-words.ts";

const DEFAULT_MODEL = "inworld-tts-1.5-max";
const AUDIO = audioKey("audioContent");
const ENCODINGS = { pcm: "PCM", ulaw: "MULAW", alaw: "ALAW", f32: "PCM" } as const;
/** Codes of gRPC, which its errors have, as statuses. */
const STATUSES: ReadonlyMap<number, number> = new Map([
  [3, 400],
  [5, 404],
  [7, 403],
  [8, 429],
  [16, 401],
]);

const CAPABILITIES: Capabilities = {
  times: "word",
  formats: [
    { codec: "pcm", sampleRates: [8000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000] },
    { codec: "ulaw", sampleRates: [8000] },
    { codec: "alaw", sampleRates: [8000] },
  ],
  settings: ["voice_settings.speed", "language_code", "apply_text_normalization"],
  isLocal: false,
  breaks: "ignored",
  // What its smallest plan guarantees.
  startLimit: 5,
};

const REFUSALS: RefusalTable = {
  codesOf: ({ error, status, reason }) => [status, reason, objectOf(error).status],
  meanings: {
    UNAUTHENTICATED: { code: "upstream_unauthorized" },
    PERMISSION_DENIED: { code: "upstream_forbidden" },
    RESOURCE_EXHAUSTED: { code: "upstream_rate_limited" },
  },
};

export function createInworld({ key, model }: ServiceSettings): ServiceAdapter {
  return {
    capabilities: CAPABILITIES,
    headers: ["authorization", `Basic ${key}`],
    checkPath: "/",
    refusals: REFUSALS,
    request: (request, format) => ({
      path: "/tts/v1/voice:stream",
      body: bodyOf(request, format, model),
      audio: format,
    }),
    answer: (_headers, sink) => read(sink),
  };
}

function bodyOf(request: SpeechRequest, { codec, sampleRate }: Sampled, model: string): string {
  const { voiceId, text, wantsTiming, modelId, languageCode, voiceSettings } = request;
  const normalization = request.applyTextNormalization;
  return JSON.stringify({
    text,
    voiceId,
    modelId: modelId ?? (model || DEFAULT_MODEL),
    language: languageCode === undefined ? undefined : withRegion(languageCode),
    audioConfig: {
      audioEncoding: ENCODINGS[codec],
      sampleRateHertz: sampleRate,
      speakingRate: voiceSettings?.speed,
    },
    // `auto` is what it does by itself.
    applyTextNormalization: normalization === "auto" ? undefined : normalization?.toUpperCase(),
    // Audio does not wait for its times.
    ...(wantsTiming ? { timestampType: "WORD", timestampTransportStrategy: "ASYNC" } : {}),
  });
}

function read(sink: AnswerSink): BodyReader {
  return lineReader({
    key: AUDIO,
    onLine: (value, audio) => {
      if (isObject(value.error)) {
        sink.fail({ status: STATUSES.get(numberOf(value.error.code)), body: value });
      }
      const { timestampInfo } = objectOf(value.result);
      const { wordAlignment } = objectOf(timestampInfo);
      const { words, wordStartTimeSeconds, wordEndTimeSeconds } = objectOf(wordAlignment);
      sink.piece({
        ...(audio === null ? {} : { audio, isChunk: true }),
        words: timedWords(words, wordStartTimeSeconds, wordEndTimeSeconds),
      });
    },
  });
}
