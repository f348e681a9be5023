/** Soniox' real-time speech, scripted: a WebSocket, strict about the message that begins a stream. */
import type { SocketScript } from "./fake-socket.ts";
import { bytesOf, speak } from "./spoken.ts";
import { Strict } from "./strict.ts";
import { characterTimes } from "./timed-characters.ts";
import { htmlPage, jsonError, type TimedOptions, type TimedWriter, timedSteps } from "./timed-steps.ts";

export const SONIOX_KEY = "soniox-0123456789abcdef";
export const SONIOX_VOICE = "Adrian";
const RATES = [8000, 16_000, 24_000, 44_100, 48_000];

export function soniox(options: TimedOptions = {}): SocketScript {
  return ({ path, headers, messages }) => {
    if (messages.length === 0) {
      if (options.fault === "html") return htmlPage();
      return path === "/tts-websocket" ? null : jsonError(404, { error_message: "not found" });
    }
    const [start, text] = messages.map((message) => JSON.parse(message) as Record<string, unknown>);
    if (start?.api_key !== SONIOX_KEY) return { body: [failure(401, "unauthenticated", "no such key")] };
    if (options.fault === "too many") return { body: [failure(429, "rate_limit", "too many")] };
    const strict = new Strict({ headers }).fields(start, "start", {
      api_key: "string",
      stream_id: "string",
      model: "string",
      voice: SONIOX_VOICE,
      language: "string",
      audio_format: "pcm_s16le",
      sample_rate: RATES,
      "speed?": "number",
      "return_timestamps?": "boolean",
    });
    if (text !== undefined)
      strict.fields(text, "text", { text: "string", text_end: true, stream_id: start.stream_id });
    if (strict.fault !== undefined) return { body: [failure(400, "invalid_request", strict.fault)] };
    if (text === undefined) return null;
    const said = String(text.text);
    const sampleRate = Number(start.sample_rate);
    return {
      body: timedSteps(WRITER, {
        ...options,
        text: said,
        spoken: speak(said, { sampleRate, say: options.say }),
        hasTimes: start.return_timestamps === true,
        encode: bytesOf,
        sampleRate,
      }),
    };
  };
}

const WRITER: TimedWriter = {
  audio: (piece, isLast) =>
    JSON.stringify({
      stream_id: "1",
      audio: piece.toString("base64"),
      ...(isLast ? { audio_end: true } : {}),
    }),
  words: (words, isShort) => {
    const times = characterTimes(words);
    return JSON.stringify({
      stream_id: "1",
      timestamps: {
        characters: times.map(({ character }) => character),
        character_start_times_seconds: times.map(({ start }) => start),
        character_end_times_seconds: isShort ? [] : times.map(({ end }) => end),
      },
    });
  },
  error: (text) => failure(500, "internal_error", text),
  end: JSON.stringify({ stream_id: "1", terminated: true }),
};

function failure(code: number, type: string, message: string): string {
  return JSON.stringify({ stream_id: "1", error_code: code, error_type: type, error_message: message });
}
