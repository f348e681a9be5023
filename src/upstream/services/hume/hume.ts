/**
 * Hume Octave: POST /v0/tts/stream/json. Lines of audio (PCM at 48 kHz, and nothing else) and of single words, in
 * milliseconds from the start of the generation. Voices are ids, or names of its own library.
 */
import type { BodyReader } from "../../transport/speech-stream.ts";
import type { SpeechRequest } from "../../types.ts";
import type { AnswerSink, Capabilities, RefusalTable, ServiceAdapter, ServiceSettings } from "../adapter.ts";
import { audioKey, numberOf, objectOf, textOf, truncated } from "../json-values.ts";
import { lineReader } from "../line-reader.ts";
import { listedVoices, type VoiceListing } from "../listed-voices.ts";

/** The first version of Octave that has times. */
const DEFAULT_VERSION = "2";
const AUDIO = audioKey("audio");
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const SAMPLED = { codec: "pcm", sampleRate: 48_000, channels: 1 } as const;

const CAPABILITIES: Capabilities = {
  times: "word",
  formats: [{ codec: "pcm", sampleRates: [48_000] }],
  settings: ["voice_settings.speed"],
  isLocal: false,
  breaks: "ignored",
  startLimit: 5,
};

const REFUSALS: RefusalTable = {
  codesOf: ({ code, slug, error }) => [code, slug, objectOf(error).code],
  meanings: {},
};

/** The first page of its library. */
const VOICES: VoiceListing = {
  path: "/v0/tts/voices?provider=HUME_AI&page_size=100",
  read: (body) => listedVoices(objectOf(body).voices_page, { id: ["id"], name: ["name"] }),
};

export function createHume({ key, model }: ServiceSettings): ServiceAdapter {
  return {
    capabilities: CAPABILITIES,
    headers: ["x-hume-api-key", key],
    checkPath: "/",
    voices: VOICES,
    refusals: REFUSALS,
    request: (request) => ({ path: "/v0/tts/stream/json", body: bodyOf(request, model), audio: SAMPLED }),
    answer: (_headers, sink) => read(sink),
  };
}

function bodyOf(
  { voiceId, text, wantsTiming, modelId, voiceSettings }: SpeechRequest,
  model: string,
): string {
  const voice = UUID.test(voiceId) ? { id: voiceId } : { name: voiceId, provider: "HUME_AI" };
  return JSON.stringify({
    version: modelId ?? (model || DEFAULT_VERSION),
    utterances: [{ text, voice, speed: voiceSettings?.speed }],
    format: { type: "pcm" },
    strip_headers: true,
    instant_mode: true,
    ...(wantsTiming ? { include_timestamp_types: ["word"] } : {}),
  });
}

function read(sink: AnswerSink): BodyReader {
  // Only where it says which chunk is the last one can it be missed.
  let isLast: unknown;
  return lineReader({
    key: AUDIO,
    onLine: (value, audio) => {
      if (value.type === "timestamp") {
        const { type, text, time } = objectOf(value.timestamp);
        const { begin, end } = objectOf(time);
        const [startSeconds, endSeconds] = [numberOf(begin) / 1000, numberOf(end) / 1000];
        if (type === "word") sink.piece({ words: [{ text: textOf(text), startSeconds, endSeconds }] });
        return;
      }
      // Anything else without audio says what went wrong.
      if (audio === null) sink.fail({ body: value });
      else sink.piece({ audio, isChunk: true });
      isLast = value.is_last_chunk ?? isLast;
    },
    onEnd: () => {
      if (isLast === false) throw truncated("its last chunk is missing");
    },
  });
}
