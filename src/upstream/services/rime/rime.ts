/**
 * Rime: a WebSocket, /ws3. What is asked for is in the query, the text in a message, and behind it that no more follows.
 * Audio and words are messages by their `type`; it ends with `done`, or closes the socket.
 */
import type { Sampled } from "../../../audio/containers/wav-stripper.ts";
import type { BodyReader } from "../../transport/speech-stream.ts";
import { WEBSOCKET_LINE } from "../../transport/websocket-line.ts";
import type { SpeechRequest } from "../../types.ts";
import type { AnswerSink, Capabilities, RefusalTable, ServiceAdapter, ServiceSettings } from "../adapter.ts";
import { audioKey, objectOf, textOf } from "../json-values.ts";
import { messageReader } from "../message-reader.ts";
import { timedWords } from "../timed-words.ts";

const DEFAULT_MODEL = "arcana";
const FORMATS = { pcm: "pcm", ulaw: "mulaw", alaw: "pcm", f32: "pcm" } as const;
const DATA = audioKey("data");
/** Its languages have three letters. */
const LANGUAGES: ReadonlyMap<string, string> = new Map([
  ["en", "eng"],
  ["es", "spa"],
  ["fr", "fra"],
  ["de", "ger"],
  ["hi", "hin"],
  ["pt", "por"],
]);

const CAPABILITIES: Capabilities = {
  times: "word",
  formats: [
    { codec: "pcm", sampleRates: [8000, 16_000, 22_050, 24_000, 44_100, 48_000] },
    { codec: "ulaw", sampleRates: [8000] },
  ],
  settings: ["language_code"],
  isLocal: false,
  breaks: "ignored",
  startLimit: 3,
};

const REFUSALS: RefusalTable = {
  codesOf: ({ code, error_code }) => [code, error_code],
  meanings: {},
};

export function createRime({ key, model }: ServiceSettings): ServiceAdapter {
  return {
    capabilities: CAPABILITIES,
    line: WEBSOCKET_LINE,
    headers: ["authorization", `Bearer ${key}`],
    checkPath: "/ws3",
    refusals: REFUSALS,
    request: (request, format) => ({
      path: pathOf(request, format, model),
      body: [JSON.stringify({ text: request.text }), JSON.stringify({ operation: "eos" })],
      audio: format,
    }),
    answer: (_headers, sink) => read(sink),
  };
}

function pathOf(
  { voiceId, modelId, languageCode }: SpeechRequest,
  { codec, sampleRate }: Sampled,
  model: string,
): string {
  const query = new URLSearchParams({
    speaker: voiceId,
    modelId: modelId ?? (model || DEFAULT_MODEL),
    audioFormat: FORMATS[codec],
    samplingRate: String(sampleRate),
  });
  if (languageCode !== undefined) {
    const [language = ""] = languageCode.toLowerCase().split("-");
    query.set("lang", LANGUAGES.get(language) ?? languageCode);
  }
  return `/ws3?${query}`;
}

function read(sink: AnswerSink): BodyReader {
  return messageReader({
    key: DATA,
    mayJustClose: true,
    onMessage: (value, audio) => {
      switch (value.type) {
        case "chunk":
          if (audio !== null) sink.piece({ audio });
          return false;
        case "timestamps": {
          const { words, start, end } = objectOf(value.word_timestamps);
          sink.piece({ words: timedWords(words, start, end) });
          return false;
        }
        case "done":
          return true;
        case "error":
          return sink.fail({ body: value });
        default:
          return textOf(value.type) === "" ? sink.fail({ body: value }) : false;
      }
    },
  });
}
