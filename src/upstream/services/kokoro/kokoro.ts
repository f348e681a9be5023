/**
 * Kokoro-FastAPI, on a machine of one's own: POST /dev/captioned_speech. Lines of audio with the times of its words, in
 * seconds from the start of the response. Chinese, Japanese and what it can't match have none. A sentence that fails is left
 * out without a word, so that it has to be missed.
 */
import type { BodyReader } from "../../transport/speech-stream.ts";
import type { SpeechRequest } from "../../types.ts";
import type { AnswerSink, Capabilities, RefusalTable, ServiceAdapter, ServiceSettings } from "../adapter.ts";
import { audioKey, listOf, numberOf, objectOf, textOf } from "../json-values.ts";
import { lineReader } from "../line-reader.ts";
import { listedVoices, type VoiceListing } from "../listed-voices.ts";
import type { ServiceWord } from "../word-matcher.ts";

const DEFAULT_MODEL = "kokoro";
const AUDIO = audioKey("audio");
const SAMPLED = { codec: "pcm", sampleRate: 24_000, channels: 1 } as const;
/** Its letters for languages; those of others it takes from the voice. */
const LANGUAGES: Readonly<Record<string, string>> = {
  en: "a",
  "en-us": "a",
  "en-gb": "b",
  es: "e",
  fr: "f",
  hi: "h",
  it: "i",
  ja: "j",
  pt: "p",
  zh: "z",
};
const BREAK = /<break\s+time="(\d{1,3}(?:\.\d{1,3})?)(m?s)"\s*\/>/gi;

const CAPABILITIES: Capabilities = {
  times: "word",
  formats: [{ codec: "pcm", sampleRates: [24_000] }],
  settings: ["voice_settings.speed", "language_code"],
  isLocal: true,
  breaks: "taken",
  startLimit: 2,
  // It makes one after the other.
  maxOpen: 2,
  // Seconds on a processor without a graphics card.
  firstAudioMs: 20_000,
  mayLoseSentences: true,
};

const REFUSALS: RefusalTable = {
  codesOf: ({ detail }) => [objectOf(detail).error, objectOf(detail).type],
  meanings: {},
};

/** The first letter of a voice: the language that it speaks by itself. */
const VOICE_LANGUAGES: Readonly<Record<string, string>> = {
  ...{ a: "en", b: "en", e: "es", f: "fr", h: "hi" },
  ...{ i: "it", j: "ja", p: "pt", z: "zh" },
};
const GENDERS: Readonly<Record<string, string>> = { f: "female", m: "male" };

const VOICES: VoiceListing = {
  path: "/v1/audio/voices",
  read: (body) =>
    listedVoices(objectOf(body).voices, {
      id: ["id", "name"],
      name: ["name"],
      labels: ({ id }) => labelsOf(textOf(id)),
    }),
};

function labelsOf(voiceId: string) {
  const [, language = "", gender = ""] = /^([a-z])([fm])_/.exec(voiceId) ?? [];
  return { language: VOICE_LANGUAGES[language], gender: GENDERS[gender] };
}

export function createKokoro({ key, model }: ServiceSettings): ServiceAdapter {
  return {
    capabilities: CAPABILITIES,
    // It asks for none; a proxy in front of it may.
    headers: key === "" ? [] : ["authorization", `Bearer ${key}`],
    checkPath: VOICES.path,
    voices: VOICES,
    refusals: REFUSALS,
    request: (request) => {
      const language = languageOf(request);
      const isUnknown = request.languageCode !== undefined && language === undefined;
      return {
        path: "/dev/captioned_speech",
        body: bodyOf(request, model, language),
        audio: SAMPLED,
        ...(isUnknown ? { ignored: ["language_code"] } : {}),
      };
    },
    answer: (_headers, sink) => read(sink),
  };
}

function bodyOf(request: SpeechRequest, model: string, language: string | undefined): string {
  const { voiceId, text, wantsTiming, modelId, voiceSettings } = request;
  return JSON.stringify({
    model: modelId ?? (model || DEFAULT_MODEL),
    input: text.replace(BREAK, (_tag, length: string, unit: string) => pauseOf(Number(length), unit)),
    voice: voiceId,
    response_format: "pcm",
    speed: voiceSettings?.speed,
    lang_code: language,
    stream: true,
    return_timestamps: wantsTiming,
  });
}

/** `es-MX` is its Spanish, too. */
function languageOf({ languageCode = "" }: SpeechRequest): string | undefined {
  const tag = languageCode.toLowerCase();
  return LANGUAGES[tag] ?? LANGUAGES[tag.split("-")[0] ?? ""];
}

function pauseOf(length: number, unit: string): string {
  return `[pause:${unit.toLowerCase() === "ms" ? length / 1000 : length}s]`;
}

function read(sink: AnswerSink): BodyReader {
  return lineReader({
    key: AUDIO,
    onLine: (value, audio) => {
      if (value.detail !== undefined) sink.fail({ body: value });
      sink.piece({
        ...(audio === null ? {} : { audio, isChunk: true }),
        words: listOf(value.timestamps).map(wordOf),
      });
    },
  });
}

function wordOf(timestamp: unknown): ServiceWord {
  const { word, start_time, end_time } = objectOf(timestamp);
  return { text: textOf(word), startSeconds: numberOf(start_time), endSeconds: numberOf(end_time) };
}
