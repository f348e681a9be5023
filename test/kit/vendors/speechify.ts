/** Speechify, scripted: POST /v1/audio/stream/with-timestamps, strict about what it is sent. */
import { encodeUlaw } from "../../../src/audio/codecs/g711.ts";
import type { FakeAnswer, FakeScript } from "../../helpers/fake-answer.ts";
import { bytesOf, speak } from "./spoken.ts";
import { Strict } from "./strict.ts";
import { htmlPage, jsonError, type TimedOptions, type TimedWriter, timedSteps } from "./timed-steps.ts";

export const SPEECHIFY_KEY = "sk_speechify_0123456789";
export const SPEECHIFY_VOICE = "geffen_32";
/** What it says of each answer, in characters: unlike any text's length, as markup may count otherwise. */
export const SPEECHIFY_BILLED = 99;
const FORMATS = [8000, 16_000, 22_050, 24_000, 44_100, 48_000].map((rate) => `pcm_${rate}`);

interface Request {
  readonly input: string;
  readonly voice_id: string;
  readonly output_format: string;
}

export function speechify(options: TimedOptions = {}): FakeScript {
  return (request) => {
    if (request.path !== "/v1/audio/stream/with-timestamps") return refusal(404, "not_found");
    const strict = new Strict(request);
    if (strict.header("authorization", `Bearer ${SPEECHIFY_KEY}`).fault !== undefined)
      return refusal(401, "unauthorized");
    strict.header("content-type", "application/json").fields(request.json, "body", {
      input: "string",
      voice_id: "string",
      model: ["simba-3.0", "simba-3.2"],
      "language?": ["en-US", "de-DE"],
      output_format: [...FORMATS, "ulaw_8000"],
    });
    const body = request.json as Request;
    if (strict.fault !== undefined) return refusal(400, "invalid_request", strict.fault);
    if (body.voice_id !== SPEECHIFY_VOICE) return refusal(404, "voice_not_found");
    if (options.fault === "too many") {
      return jsonError(429, { error: { code: "rate_limited", message: "m" } }, { "retry-after": "3" });
    }
    if (options.fault === "html") return htmlPage();
    const [codec, rate] = body.output_format.split("_");
    const sampleRate = Number(rate);
    const steps = timedSteps(WRITER, {
      ...options,
      text: body.input,
      spoken: speak(body.input, { sampleRate, say: options.say }),
      hasTimes: true,
      encode: codec === "ulaw" ? encodeUlaw : bytesOf,
      sampleRate,
    });
    return { headers: { "content-type": "text/event-stream" }, body: steps, splitBytes: 7777 };
  };
}

const WRITER: TimedWriter = {
  audio: (piece) => event({ type: "speech.chunk", audio: piece.toString("base64") }),
  words: (words, isShort) =>
    event({
      type: "speech.chunk",
      speech_marks: words.map(({ text, start, end }) => ({
        type: "word",
        value: text,
        start: 0,
        end: text.length,
        ...(isShort ? {} : { start_time: start * 1000, end_time: end * 1000 }),
      })),
    }),
  error: (text) => event({ type: "speech.error", error: { code: "synthesis_failed", message: text } }),
  end: event({ type: "speech.done", audio_duration_ms: 1, billable_characters_count: SPEECHIFY_BILLED }),
};

function event(value: { readonly type: string } & Readonly<Record<string, unknown>>): string {
  return `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;
}

function refusal(status: number, code: string, message = "see the documentation"): FakeAnswer {
  return jsonError(status, { error: { code, message }, request_id: "r-1" });
}
