/** Hume Octave, scripted: POST /v0/tts/stream/json, strict about what it is sent; PCM at 48 kHz alone. */
import type { FakeAnswer, FakeScript } from "../../helpers/fake-answer.ts";
import { bytesOf, speak } from "./spoken.ts";
import { Strict } from "./strict.ts";
import { htmlPage, jsonError, type TimedOptions, type TimedWriter, timedSteps } from "./timed-steps.ts";

export const HUME_KEY = "hume-0123456789abcdef";
export const HUME_VOICE = "Ava Song";
const SAMPLE_RATE = 48_000;

interface Request {
  readonly utterances: readonly { readonly text: string; readonly voice: Readonly<Record<string, string>> }[];
  readonly include_timestamp_types?: readonly string[];
}

export function hume(options: TimedOptions = {}): FakeScript {
  return (request) => {
    if (request.path !== "/v0/tts/stream/json") return refusal(404, "not_found");
    const strict = new Strict(request);
    if (strict.header("x-hume-api-key", HUME_KEY).fault !== undefined) return refusal(401, "unauthorized");
    strict.header("content-type", "application/json").fields(request.json, "body", {
      version: ["1", "2"],
      utterances: "object",
      format: "object",
      strip_headers: "boolean",
      instant_mode: "boolean",
      "include_timestamp_types?": "object",
    });
    const { utterances = [], include_timestamp_types: types = [] } = request.json as Request;
    const [utterance] = utterances;
    strict.fields(utterance, "utterance", { text: "string", voice: "object", "speed?": "number" });
    if (strict.fault !== undefined || utterance === undefined) return refusal(422, "invalid", strict.fault);
    if (utterance.voice.name !== HUME_VOICE || utterance.voice.provider !== "HUME_AI")
      return refusal(404, "E0709");
    if (options.fault === "too many") return refusal(429, "E0300");
    if (options.fault === "html") return htmlPage();
    const { text } = utterance;
    const steps = timedSteps(WRITER, {
      ...options,
      text,
      spoken: speak(text, { sampleRate: SAMPLE_RATE, say: options.say }),
      hasTimes: types.includes("word"),
      encode: bytesOf,
      sampleRate: SAMPLE_RATE,
    });
    return { headers: { "content-type": "application/json" }, body: steps, splitBytes: 7777 };
  };
}

const WRITER: TimedWriter = {
  audio: (piece, isLast) =>
    line({
      type: "audio",
      audio: piece.toString("base64"),
      chunk_index: 0,
      is_last_chunk: isLast,
      snippet_id: "s",
    }),
  words: (words, isShort) =>
    words
      .map(({ text, start, end }) => {
        const time = isShort ? {} : { begin: start * 1000, end: end * 1000 };
        return line({ type: "timestamp", timestamp: { type: "word", text, time }, snippet_id: "s" });
      })
      .join(""),
  error: (text) => line({ type: "error", code: "E0001", message: text }),
  end: "",
};

function line(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}

function refusal(status: number, code: string, message = "see the documentation"): FakeAnswer {
  return jsonError(status, { status, code, message });
}
