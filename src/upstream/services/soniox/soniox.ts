/**
 * Soniox: a WebSocket, whose first message says what is asked for, the key among it. Times of characters come beside audio.
 * `audio_end` is the last of the audio, `terminated` the end. A stream ends after two minutes, whatever is still to be said.
 */
import type { Sampled } from "../../../audio/containers/wav-stripper.ts";
import type { BodyReader } from "../../transport/speech-stream.ts";
import { WEBSOCKET_LINE } from "../../transport/websocket-line.ts";
import type { SpeechRequest } from "../../types.ts";
import type { AnswerSink, Capabilities, RefusalTable, ServiceAdapter, ServiceSettings } from "../adapter.ts";
import { CharacterWords } from "../character-words.ts";
import { audioKey, isObject, numberOf } from "../json-values.ts";
import { messageReader } from "../message-reader.ts";

const DEFAULT_MODEL = "tts-rt-v1";
const DEFAULT_LANGUAGE = "en";
const AUDIO = audioKey("audio");
const STREAM = "1";

const CAPABILITIES: Capabilities = {
  times: "word",
  formats: [{ codec: "pcm", sampleRates: [8000, 16_000, 24_000, 44_100, 48_000] }],
  settings: ["voice_settings.speed", "language_code"],
  isLocal: false,
  breaks: "ignored",
  startLimit: 3,
  // Two minutes of slow speech have as many.
  maxChars: 1500,
};

const REFUSALS: RefusalTable = {
  codesOf: ({ error_type, error_code }) => [error_type, error_code],
  meanings: {},
};

export function createSoniox({ key, model }: ServiceSettings): ServiceAdapter {
  return {
    capabilities: CAPABILITIES,
    line: WEBSOCKET_LINE,
    headers: [],
    checkPath: "/tts-websocket",
    refusals: REFUSALS,
    request: (request, format) => ({
      path: "/tts-websocket",
      body: [
        startOf(request, format, { key, model }),
        JSON.stringify({ text: request.text, text_end: true, stream_id: STREAM }),
      ],
      audio: format,
    }),
    answer: (_headers, sink) => read(sink),
  };
}

function startOf(
  { voiceId, modelId, languageCode, voiceSettings, wantsTiming }: SpeechRequest,
  { sampleRate }: Sampled,
  { key, model }: Pick<ServiceSettings, "key" | "model">,
): string {
  return JSON.stringify({
    api_key: key,
    stream_id: STREAM,
    model: modelId ?? (model || DEFAULT_MODEL),
    voice: voiceId,
    language: languageCode ?? DEFAULT_LANGUAGE,
    audio_format: "pcm_s16le",
    sample_rate: sampleRate,
    speed: voiceSettings?.speed,
    return_timestamps: wantsTiming,
  });
}

function read(sink: AnswerSink): BodyReader {
  const words = new CharacterWords();
  return messageReader({
    key: AUDIO,
    onMessage: (value, audio) => {
      const { timestamps, error_code: code } = value;
      if (code !== undefined && code !== null) {
        const status = numberOf(code);
        return sink.fail({ status: status >= 400 && status < 600 ? status : undefined, body: value });
      }
      if (audio !== null) sink.piece({ audio });
      if (isObject(timestamps)) {
        const {
          characters,
          character_start_times_seconds: starts,
          character_end_times_seconds: ends,
        } = timestamps;
        sink.piece({ words: words.push(characters, starts, ends) });
      }
      if (value.terminated !== true) return false;
      sink.piece({ words: words.finish() });
      return true;
    },
  });
}
