/**
 * Cartesia: POST /tts/sse. Events of audio and of words, by their `type`; words count from the start of the response. The
 * API's version is a header; `done` is the end, and what ends without it was cut.
 */
import type { Sampled } from "../../../audio/containers/wav-stripper.ts";
import type { BodyReader } from "../../transport/speech-stream.ts";
import type { SpeechRequest } from "../../types.ts";
import type { AnswerSink, Capabilities, RefusalTable, ServiceAdapter, ServiceSettings } from "../adapter.ts";
import { audioKey, numberOf, objectOf, textOf, truncated } from "../json-values.ts";
import { lineReader } from "../line-reader.ts";
import { languageOf, listedVoices, type VoiceListing } from "../listed-voices.ts";
import { timedWords } from "../timed-words.ts";

/** The newest that is known. */
const VERSION = "2026-03-01";
const DEFAULT_MODEL = "sonic-3";
const RATES = [8000, 16_000, 22_050, 24_000, 44_100, 48_000];
const ENCODINGS = { pcm: "pcm_s16le", ulaw: "pcm_mulaw", alaw: "pcm_alaw", f32: "pcm_f32le" } as const;
const DATA = audioKey("data");

const CAPABILITIES: Capabilities = {
  times: "word",
  formats: (["pcm", "ulaw", "alaw"] as const).map((codec) => ({ codec, sampleRates: RATES })),
  settings: ["voice_settings.speed", "language_code"],
  isLocal: false,
  breaks: "taken",
  // Its smallest plan lets two through, the next ones three and five.
  startLimit: 3,
};

const REFUSALS: RefusalTable = {
  codesOf: ({ error_code, code }) => [error_code, code],
  meanings: {
    concurrency_limited: { code: "upstream_rate_limited" },
    quota_exceeded: { code: "upstream_forbidden" },
    voice_not_found: { code: "unknown_voice", field: "voice_id" },
    model_not_found: { code: "upstream_invalid", field: "model_id" },
  },
};

/** The first page, which is as long as its pages get. */
const VOICES: VoiceListing = {
  path: "/voices?limit=100",
  read: (body) =>
    listedVoices(objectOf(body).data, {
      id: ["id"],
      name: ["name"],
      labels: ({ language, gender }) => ({ language: languageOf(language), gender }),
    }),
};

export function createCartesia({ key, model }: ServiceSettings): ServiceAdapter {
  return {
    capabilities: CAPABILITIES,
    headers: ["x-api-key", key, "cartesia-version", VERSION],
    checkPath: "/",
    voices: VOICES,
    refusals: REFUSALS,
    request: (request, format) => ({
      path: "/tts/sse",
      body: bodyOf(request, format, model),
      audio: format,
    }),
    answer: (_headers, sink) => read(sink),
  };
}

function bodyOf(
  { voiceId, text, wantsTiming, modelId, languageCode, voiceSettings }: SpeechRequest,
  { codec, sampleRate }: Sampled,
  model: string,
): string {
  const speed = voiceSettings?.speed;
  return JSON.stringify({
    model_id: modelId ?? (model || DEFAULT_MODEL),
    transcript: text,
    voice: { mode: "id", id: voiceId },
    language: languageCode,
    output_format: { container: "raw", encoding: ENCODINGS[codec], sample_rate: sampleRate },
    generation_config: speed === undefined ? undefined : { speed },
    add_timestamps: wantsTiming,
  });
}

function read(sink: AnswerSink): BodyReader {
  let isDone = false;
  return lineReader({
    key: DATA,
    onLine: (value, audio) => {
      switch (value.type) {
        case "chunk":
          if (audio !== null) sink.piece({ audio });
          return;
        case "timestamps": {
          const { words, start, end } = objectOf(value.word_timestamps);
          sink.piece({ words: timedWords(words, start, end) });
          return;
        }
        case "done":
          isDone = true;
          return;
        case "error": {
          const status = numberOf(value.status_code);
          // In the middle of a stream it is 206, whatever went wrong.
          sink.fail({ status: status >= 400 ? status : undefined, body: value });
          return;
        }
        default:
          // Phonemes, and whatever comes to be, have a type; what has none is no event.
          if (textOf(value.type) === "") sink.fail({ body: value });
      }
    },
    onEnd: () => {
      if (!isDone) throw truncated("its last event is missing");
    },
  });
}
