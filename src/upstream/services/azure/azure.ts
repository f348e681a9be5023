/**
 * Azure Speech: a WebSocket, whose messages have headers. Three messages ask; the answer is audio in binary ones, words in
 * `audio.metadata`, and `turn.end`.
 */
import { randomUUID } from "node:crypto";
import type { Sampled } from "../../../audio/containers/wav-stripper.ts";
import type { BodyReader } from "../../transport/speech-stream.ts";
import { WEBSOCKET_LINE } from "../../transport/websocket-line.ts";
import type { SpeechRequest } from "../../types.ts";
import type { AnswerSink, Capabilities, RefusalTable, ServiceAdapter, ServiceSettings } from "../adapter.ts";
import { listOf, numberOf, objectOf, parseObject, textOf, truncated } from "../json-values.ts";
import { withRegion } from "../language-tag.ts";
import type { ServiceWord } from "../word-matcher.ts";
import { azureMessage, readAzureFrame } from "./azure-frames.ts";
import { ssmlOf } from "./azure-ssml.ts";

const PATH = "/cognitiveservices/websocket/v1";
const TICKS_PER_SECOND = 10_000_000;
const JSON_TYPE = "application/json";
const DEFAULT_LANGUAGE = "en-US";
const FORMATS: ReadonlyMap<number, string> = new Map([
  [16_000, "raw-16khz-16bit-mono-pcm"],
  [22_050, "raw-22050hz-16bit-mono-pcm"],
  [24_000, "raw-24khz-16bit-mono-pcm"],
  [44_100, "raw-44100hz-16bit-mono-pcm"],
  [48_000, "raw-48khz-16bit-mono-pcm"],
]);

const CAPABILITIES: Capabilities = {
  times: "word",
  // At 8 kHz its audio is not as long as its words say, so telephone sound is made here.
  formats: [{ codec: "pcm", sampleRates: [...FORMATS.keys()] }],
  settings: ["voice_settings.speed", "language_code"],
  isLocal: false,
  breaks: "taken",
  startLimit: 10,
};

const REFUSALS: RefusalTable = {
  codesOf: ({ error }) => [objectOf(error).code],
  meanings: {},
};

export function createAzure({ key }: ServiceSettings): ServiceAdapter {
  return {
    capabilities: CAPABILITIES,
    line: WEBSOCKET_LINE,
    headers: ["ocp-apim-subscription-key", key],
    checkPath: PATH,
    refusals: REFUSALS,
    request: (request, format) => ({
      path: PATH,
      headers: ["x-connectionid", hexId()],
      body: messagesOf(request, format),
      audio: format,
    }),
    answer: (_headers, sink) => new AzureAnswer(sink),
  };
}

function hexId(): string {
  return randomUUID().replaceAll("-", "");
}

function messagesOf(
  { voiceId, text, languageCode, voiceSettings, wantsTiming }: SpeechRequest,
  { sampleRate }: Sampled,
): readonly string[] {
  const requestId = hexId();
  // Voices are named after their language: en-US-AvaNeural.
  const [own] = /^[a-z]{2,3}-[A-Z]{2}(?=-)/.exec(voiceId) ?? [DEFAULT_LANGUAGE];
  const language = languageCode === undefined ? own : withRegion(languageCode);
  const config = { context: { system: { name: "voicewire" } } };
  const context = {
    synthesis: {
      audio: {
        metadataOptions: {
          wordBoundaryEnabled: wantsTiming,
          punctuationBoundaryEnabled: false,
          sentenceBoundaryEnabled: false,
          bookmarkEnabled: false,
          visemeEnabled: false,
          sessionEndEnabled: false,
        },
        outputFormat: FORMATS.get(sampleRate),
      },
    },
  };
  const ssml = ssmlOf({ text, voice: voiceId, language, speed: voiceSettings?.speed });
  return [
    azureMessage("speech.config", { requestId, type: JSON_TYPE, body: JSON.stringify(config) }),
    azureMessage("synthesis.context", { requestId, type: JSON_TYPE, body: JSON.stringify(context) }),
    azureMessage("ssml", { requestId, type: "application/ssml+xml", body: ssml }),
  ];
}

class AzureAnswer implements BodyReader {
  readonly #sink: AnswerSink;
  isComplete = false;

  constructor(sink: AnswerSink) {
    this.#sink = sink;
  }

  push(message: Buffer): void {
    if (this.isComplete) return;
    const { path, body } = readAzureFrame(message);
    if (path === "audio" && body.length > 0) this.#sink.piece({ audio: body });
    if (path === "audio.metadata") this.#sink.piece({ words: wordsOf(body) });
    this.isComplete = path === "turn.end";
  }

  end(): void {
    if (!this.isComplete) throw truncated("turn.end is missing");
  }
}

function wordsOf(body: Buffer): ServiceWord[] {
  return listOf(parseObject(body.toString("utf8")).Metadata).flatMap((entry) => {
    const { Type: type, Data: data } = objectOf(entry);
    if (type !== "WordBoundary") return [];
    const { Offset: offset, Duration: duration, text } = objectOf(data);
    const startTicks = numberOf(offset);
    return [
      {
        text: textOf(objectOf(text).Text),
        startSeconds: startTicks / TICKS_PER_SECOND,
        endSeconds: (startTicks + numberOf(duration)) / TICKS_PER_SECOND,
      },
    ];
  });
}
