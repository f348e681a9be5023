/** xAI's /v1/tts, scripted: a WebSocket, strict about its query and messages. */
import { encodeAlaw, encodeUlaw } from "../../../src/audio/codecs/g711.ts";
import type { SocketScript } from "./fake-socket.ts";
import { bytesOf, speak } from "./spoken.ts";
import { Strict } from "./strict.ts";
import { characterTimes } from "./timed-characters.ts";
import { htmlPage, jsonError, type TimedOptions, type TimedWriter, timedSteps } from "./timed-steps.ts";

export const XAI_KEY = "xai-0123456789abcdef";
export const XAI_VOICE = "eve";
const RATES = ["8000", "16000", "22050", "24000", "44100", "48000"];
const ENCODERS = { pcm: bytesOf, mulaw: encodeUlaw, alaw: encodeAlaw };
const PARAMETERS = ["voice", "language", "codec", "sample_rate", "with_timestamps"];

export function xai(options: TimedOptions = {}): SocketScript {
  return ({ path, query, headers, messages }) => {
    const given = Object.fromEntries(query);
    if (messages.length === 0) {
      if (headers.authorization !== `Bearer ${XAI_KEY}`) return jsonError(401, { error: "no such key" });
      if (path !== "/v1/tts") return jsonError(404, { error: "not found" });
      if (options.fault === "too many") return jsonError(429, { error: "too many" });
      if (options.fault === "html") return htmlPage();
      const isKnown = [...query.keys()].every((name) => PARAMETERS.includes(name));
      return isKnown ? null : jsonError(400, { error: "unknown parameter" });
    }
    const strict = new Strict({ headers }).fields(given, "query", {
      voice: XAI_VOICE,
      language: "string",
      codec: Object.keys(ENCODERS),
      sample_rate: RATES,
      "with_timestamps?": "true",
    });
    const [delta, done] = messages.map((text) => JSON.parse(text) as Record<string, string>);
    strict.fields(delta, "delta", { type: "text.delta", delta: "string" });
    if (done !== undefined) strict.fields(done, "done", { type: "text.done" });
    if (strict.fault !== undefined) return { body: [WRITER.error(strict.fault)] };
    if (done === undefined) return null;
    const text = delta?.delta ?? "";
    const sampleRate = Number(given.sample_rate);
    return {
      body: timedSteps(WRITER, {
        ...options,
        text,
        spoken: speak(text, { sampleRate, say: options.say }),
        hasTimes: given.with_timestamps === "true",
        encode: ENCODERS[given.codec as keyof typeof ENCODERS],
        sampleRate,
      }),
    };
  };
}

const WRITER: TimedWriter = {
  audio: (piece) => message({ type: "audio.delta", delta: piece.toString("base64") }),
  words: (words, isShort) => {
    const times = characterTimes(words);
    return message({
      type: "audio.delta",
      delta: "",
      audio_timestamps: {
        graph_chars: times.map(({ character }) => character),
        graph_times: isShort ? [] : times.map(({ start, end }) => [start, end]),
      },
    });
  },
  error: (text) => message({ type: "error", message: text }),
  end: message({ type: "audio.done", trace_id: "t-1" }),
};

function message(value: unknown): string {
  return JSON.stringify(value);
}
