/**
 * xAI: a WebSocket, /v1/tts. What is asked for is in the query, the text in a message, and behind it that no more follows.
 * Times of characters come in lists of their own, apart from their audio; `audio.done` is the end.
 */
import type { Sampled } from "../../../audio/containers/wav-stripper.ts";
import type { BodyReader } from "../../transport/speech-stream.ts";
import { WEBSOCKET_LINE } from "../../transport/websocket-line.ts";
import type { SpeechRequest } from "../../types.ts";
import type { AnswerSink, Capabilities, RefusalTable, ServiceAdapter, ServiceSettings } from "../adapter.ts";
import { CharacterWords } from "../character-words.ts";
import { audioKey, isObject, listOf, objectOf } from "../json-values.ts";
import { messageReader } from "../message-reader.ts";

const CODECS = { pcm: "pcm", ulaw: "mulaw", alaw: "alaw", f32: "pcm" } as const;
const RATES = [8000, 16_000, 22_050, 24_000, 44_100, 48_000];
const DELTA = audioKey("delta");

const CAPABILITIES: Capabilities = {
  times: "word",
  formats: (["pcm", "ulaw", "alaw"] as const).map((codec) => ({ codec, sampleRates: RATES })),
  settings: ["language_code"],
  isLocal: false,
  breaks: "ignored",
  startLimit: 3,
};

const REFUSALS: RefusalTable = { codesOf: ({ code }) => [code], meanings: {} };

export function createXai({ key }: ServiceSettings): ServiceAdapter {
  return {
    capabilities: CAPABILITIES,
    line: WEBSOCKET_LINE,
    headers: ["authorization", `Bearer ${key}`],
    checkPath: "/v1/tts",
    refusals: REFUSALS,
    request: (request, format) => ({
      path: pathOf(request, format),
      body: [
        JSON.stringify({ type: "text.delta", delta: request.text }),
        JSON.stringify({ type: "text.done" }),
      ],
      audio: format,
    }),
    answer: (_headers, sink) => read(sink),
  };
}

function pathOf(
  { voiceId, languageCode = "auto", wantsTiming }: SpeechRequest,
  { codec, sampleRate }: Sampled,
): string {
  const query = new URLSearchParams({
    voice: voiceId,
    language: languageCode,
    codec: CODECS[codec],
    sample_rate: String(sampleRate),
  });
  if (wantsTiming) query.set("with_timestamps", "true");
  return `/v1/tts?${query}`;
}

function read(sink: AnswerSink): BodyReader {
  const words = new CharacterWords();
  return messageReader({
    key: DELTA,
    onMessage: (value, audio) => {
      // Times stand beside audio, or in a message of their own.
      if (isObject(value.audio_timestamps)) {
        const { graph_chars: characters, graph_times: times } = value.audio_timestamps;
        const pairs = listOf(times).map(listOf);
        const [starts, ends] = [pairs.map(([start]) => start), pairs.map(([, end]) => end)];
        sink.piece({ ...(audio === null ? {} : { audio }), words: words.push(characters, starts, ends) });
      } else if (audio !== null) sink.piece({ audio });
      if (value.type === "error") return sink.fail({ body: objectOf(value) });
      if (value.type !== "audio.done") return false;
      sink.piece({ words: words.finish() });
      return true;
    },
  });
}
