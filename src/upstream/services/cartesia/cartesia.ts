/**
 * Cartesia: POST /tts/sse. Events of audio, of words and of their phonemes, by their `type`; times count from the start of the
 * response. The API's version is a header; `done` is the end, and what ends without it was cut.
 */
import type { Sampled } from "../../../audio/containers/wav-stripper.ts";
import type { BodyReader } from "../../transport/speech-stream.ts";
import type { SpeechRequest } from "../../types.ts";
import type { AnswerSink, Capabilities, RefusalTable, ServiceAdapter, ServiceSettings } from "../adapter.ts";
import { audioKey, listOf, numberOf, objectOf, textOf, truncated } from "../json-values.ts";
import { lineReader } from "../line-reader.ts";
import { languageOf, listedVoices, type VoiceListing } from "../listed-voices.ts";
import { timedWords } from "../timed-words.ts";
import type { ServiceWord } from "../word-matcher.ts";

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
    add_phoneme_timestamps: wantsTiming,
  });
}

function read(sink: AnswerSink): BodyReader {
  let isDone = false;
  const words = new SoundedWords((some) => sink.piece({ words: some }));
  return lineReader({
    key: DATA,
    onLine: (value, audio) => {
      if (value.type === "phoneme_timestamps") {
        words.noteSounds(listOf(objectOf(value.phoneme_timestamps).start).map(numberOf));
        return;
      }
      words.give();
      switch (value.type) {
        case "chunk":
          if (audio !== null) sink.piece({ audio });
          return;
        case "timestamps": {
          const { words: texts, start, end } = objectOf(value.word_timestamps);
          words.hold(timedWords(texts, start, end));
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
          // Whatever comes to be has a type; what has none is no event.
          if (textOf(value.type) === "") sink.fail({ body: value });
      }
    },
    onEnd: () => {
      words.give();
      if (!isDone) throw truncated("its last event is missing");
    },
  });
}

/** Sounds of words that have not come: more than a text can have are dropped. */
const MAX_SOUNDS = 10_000;

/** Which of two events comes first, words or their phonemes, is not said: words wait for those of the next event, and no longer. */
class SoundedWords {
  readonly #onWords: (words: readonly ServiceWord[]) => void;
  #held: readonly ServiceWord[] = [];
  /** When each begins that is in no word yet, seconds. */
  #sounds: number[] = [];

  constructor(onWords: (words: readonly ServiceWord[]) => void) {
    this.#onWords = onWords;
  }

  noteSounds(starts: readonly number[]): void {
    const known = starts.filter(Number.isFinite).slice(0, MAX_SOUNDS - this.#sounds.length);
    this.#sounds = [...this.#sounds, ...known].sort((one, other) => one - other);
  }

  hold(words: readonly ServiceWord[]): void {
    this.#held = words;
  }

  give(): void {
    const words = this.#held;
    if (words.length === 0) return;
    this.#held = [];
    this.#onWords(words.map((word) => ({ ...word, soundStarts: this.#soundsOf(word) })));
    const end = words.at(-1)?.endSeconds ?? Number.NaN;
    if (Number.isFinite(end)) this.#sounds = this.#sounds.filter((seconds) => seconds >= end);
  }

  #soundsOf({ startSeconds, endSeconds }: ServiceWord): readonly number[] {
    return this.#sounds.filter((seconds) => seconds >= startSeconds && seconds < endSeconds);
  }
}
