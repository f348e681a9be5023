/**
 * Speechify: POST /v1/audio/stream/with-timestamps. Events of audio and of marks, which lag behind their audio; the last one
 * is often marks only. Marks count in milliseconds from the start of the response. Without times the other stream would do,
 * but its errors have no event, so that nobody knew of them.
 */
import type { Sampled } from "../../../audio/containers/wav-stripper.ts";
import type { BodyReader } from "../../transport/speech-stream.ts";
import type { SpeechRequest } from "../../types.ts";
import type { AnswerSink, Capabilities, RefusalTable, ServiceAdapter, ServiceSettings } from "../adapter.ts";
import { audioKey, listOf, numberOf, objectOf, textOf, truncated } from "../json-values.ts";
import { withRegion } from "../language-tag.ts";
import { lineReader } from "../line-reader.ts";
import { languageOf, listedVoices, type VoiceListing } from "../listed-voices.ts";
import type { ServiceWord } from "../word-matcher.ts";

/** It and simba-3.0 alone have marks in streams. */
const DEFAULT_MODEL = "simba-3.2";
const AUDIO = audioKey("audio");
/** They are known to cost the last word: blanks keep what is behind them where it is. */
const PICTURES = /\p{Extended_Pictographic}|\p{Emoji_Modifier}|\u{fe0f}|\u{200d}/gu;

const CAPABILITIES: Capabilities = {
  times: "word",
  formats: [
    { codec: "pcm", sampleRates: [8000, 16_000, 22_050, 24_000, 44_100, 48_000] },
    { codec: "ulaw", sampleRates: [8000] },
  ],
  settings: ["language_code"],
  isLocal: false,
  breaks: "ignored",
  startLimit: 15,
  maxChars: 20_000,
};

const REFUSALS: RefusalTable = {
  codesOf: ({ error, code }) => [code, objectOf(error).code],
  meanings: {
    unauthorized: { code: "upstream_unauthorized" },
    rate_limited: { code: "upstream_rate_limited" },
    voice_not_found: { code: "unknown_voice", field: "voice_id" },
    speech_marks_unsupported: { code: "upstream_invalid", field: "model_id" },
  },
};

const VOICES: VoiceListing = {
  path: "/v1/voices",
  read: (body) =>
    listedVoices(Array.isArray(body) ? body : objectOf(body).voices, {
      id: ["id"],
      name: ["display_name"],
      labels: ({ locale, gender }) => ({ language: languageOf(locale), gender }),
    }),
};

export function createSpeechify({ key, model }: ServiceSettings): ServiceAdapter {
  return {
    capabilities: CAPABILITIES,
    headers: ["authorization", `Bearer ${key}`],
    checkPath: VOICES.path,
    voices: VOICES,
    refusals: REFUSALS,
    request: (request, format) => ({
      path: "/v1/audio/stream/with-timestamps",
      body: bodyOf(request, format, model),
      audio: format,
    }),
    answer: (_headers, sink) => read(sink),
  };
}

function bodyOf(
  { voiceId, text, modelId, languageCode }: SpeechRequest,
  { codec, sampleRate }: Sampled,
  model: string,
): string {
  return JSON.stringify({
    input: text.replace(PICTURES, " "),
    voice_id: voiceId,
    model: modelId ?? (model || DEFAULT_MODEL),
    language: languageCode === undefined ? undefined : withRegion(languageCode),
    output_format: `${codec}_${sampleRate}`,
  });
}

function read(sink: AnswerSink): BodyReader {
  let isDone = false;
  let billed: number | undefined;
  const lines = lineReader({
    key: AUDIO,
    onLine: (value, audio) => {
      if (value.type === "speech.error") sink.fail({ body: value });
      if (value.type === "speech.done") {
        isDone = true;
        billed = countIn(value.billable_characters_count);
      }
      if (value.type !== "speech.chunk") return;
      sink.piece({
        ...(audio === null ? {} : { audio, isChunk: true }),
        words: listOf(value.speech_marks).flatMap(wordOf),
      });
    },
    onEnd: () => {
      if (!isDone) throw truncated("its last event is missing");
    },
  });
  return {
    ...lines,
    get billed() {
      return billed;
    },
  };
}

/** undefined: it is no count. */
function countIn(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

function wordOf(mark: unknown): ServiceWord[] {
  const { type, value, start_time, end_time } = objectOf(mark);
  if (type !== "word" && type !== undefined) return [];
  const [startSeconds, endSeconds] = [numberOf(start_time) / 1000, numberOf(end_time) / 1000];
  return [{ text: textOf(value), startSeconds, endSeconds }];
}
