/** Cartesia, scripted from its interface (API version 2026-03-01): POST /tts/sse, strict about what it is sent. */
import { encodeAlaw, encodeUlaw } from "../../../src/audio/codecs/g711.ts";
import type { FakeAnswer, FakeScript } from "../../helpers/fake-answer.ts";
import { bytesOf, type Spoken, speak } from "./spoken.ts";
import { Strict } from "./strict.ts";
import { htmlPage, jsonError, type TimedOptions, type TimedWriter, timedSteps } from "./timed-steps.ts";

export const CARTESIA_KEY = "sk_car_0123456789abcdef";
export const CARTESIA_VOICE = "a0e99841-438c-4a64-b679-ae501e7d6091";
const RATES = [8000, 16_000, 22_050, 24_000, 44_100, 48_000];
const ENCODERS = { pcm_s16le: bytesOf, pcm_mulaw: encodeUlaw, pcm_alaw: encodeAlaw };

interface Request {
  readonly transcript: string;
  readonly voice: { readonly id: string };
  readonly output_format: { readonly encoding: keyof typeof ENCODERS; readonly sample_rate: number };
  readonly add_timestamps?: boolean;
  readonly add_phoneme_timestamps?: boolean;
}

/** Of a word's time. */
export const FIRST_PHONEME = 0.75;

/** Where its phonemes stand; default: it sends none. */
export interface CartesiaOptions extends TimedOptions {
  readonly phonemes?: "before their words" | "behind their words";
}

export function cartesia(options: CartesiaOptions = {}): FakeScript {
  return (request) => {
    if (request.method === "GET") return jsonError(200, { ok: true });
    if (request.path !== "/tts/sse") return refusal(404, "not_found");
    const strict = new Strict(request);
    if (strict.header("x-api-key", CARTESIA_KEY).fault !== undefined) return refusal(401, "unauthorized");
    strict
      .header("cartesia-version", /^\d{4}-\d\d-\d\d$/)
      .header("content-type", "application/json")
      .fields(request.json, "body", {
        model_id: "string",
        transcript: "string",
        voice: "object",
        "language?": "string",
        output_format: "object",
        "generation_config?": "object",
        "add_timestamps?": "boolean",
        "add_phoneme_timestamps?": "boolean",
      });
    const body = request.json as Request;
    strict
      .fields(body.voice, "voice", { mode: "id", id: "string" })
      .fields(body.output_format, "output_format", {
        container: "raw",
        encoding: Object.keys(ENCODERS),
        sample_rate: RATES,
      });
    if (strict.fault !== undefined) return refusal(400, "invalid_request", strict.fault);
    if (body.voice.id !== CARTESIA_VOICE) return refusal(404, "voice_not_found");
    if (options.fault === "too many") return refusal(429, "concurrency_limited");
    if (options.fault === "html") return htmlPage();
    const { encoding, sample_rate: sampleRate } = body.output_format;
    const steps = timedSteps(writerOf(body.add_phoneme_timestamps === true ? options.phonemes : undefined), {
      ...options,
      text: body.transcript,
      spoken: speak(body.transcript, { sampleRate, say: options.say }),
      hasTimes: body.add_timestamps === true,
      encode: ENCODERS[encoding],
      sampleRate,
    });
    return { headers: { "content-type": "text/event-stream" }, body: steps, splitBytes: 7777 };
  };
}

function writerOf(phonemes: CartesiaOptions["phonemes"]): TimedWriter {
  if (phonemes === undefined) return WRITER;
  return {
    ...WRITER,
    words: (words, isShort) => {
      const [times, sounds] = [WRITER.words(words, isShort), phonemesOf(words)];
      return phonemes === "before their words" ? sounds + times : times + sounds;
    },
  };
}

/** Two a word: the first one is longer, whatever its letters are. */
function phonemesOf(words: Spoken["words"]): string {
  const starts = words.flatMap(({ start, end }) => [start, start + FIRST_PHONEME * (end - start)]);
  const ends = words.flatMap(({ start, end }) => [start + FIRST_PHONEME * (end - start), end]);
  return event({
    type: "phoneme_timestamps",
    done: false,
    status_code: 206,
    phoneme_timestamps: { phonemes: starts.map(() => "a"), start: starts, end: ends },
  });
}

const WRITER: TimedWriter = {
  audio: (piece) =>
    event({ type: "chunk", data: piece.toString("base64"), done: false, status_code: 206, step_time: 12.5 }),
  words: (words, isShort) =>
    event({
      type: "timestamps",
      done: false,
      status_code: 206,
      word_timestamps: {
        words: words.map(({ text }) => text),
        start: words.map(({ start }) => start),
        end: isShort ? [] : words.map(({ end }) => end),
      },
    }),
  error: (text) =>
    event({ type: "error", status_code: 206, error_code: "internal_error", title: "t", message: text }),
  end: event({ type: "done", done: true, status_code: 200 }),
};

function event(value: { readonly type: string } & Readonly<Record<string, unknown>>): string {
  return `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;
}

function refusal(status: number, code: string, message = "see the documentation"): FakeAnswer {
  return jsonError(status, { error_code: code, title: code, message, request_id: "r-1" });
}
