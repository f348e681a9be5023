/** Kokoro-FastAPI, scripted: POST /dev/captioned_speech, strict about what it is sent; PCM at 24 kHz alone, no key. */
import type { FakeAnswer, FakeScript } from "../../helpers/fake-answer.ts";
import { bytesOf, type Spoken, speak, wordsOf } from "./spoken.ts";
import { Strict } from "./strict.ts";
import { htmlPage, jsonError, type TimedOptions, type TimedWriter, timedSteps } from "./timed-steps.ts";

export const KOKORO_VOICE = "af_heart";
const SAMPLE_RATE = 24_000;

interface Request {
  readonly input: string;
  readonly voice: string;
  readonly return_timestamps: boolean;
}

export interface KokoroOptions extends TimedOptions {
  /** Sentences that fail, and are left out without a word. */
  readonly loses?: RegExp;
  /** Words of these texts are spoken, and have no times. */
  readonly leavesUntimed?: RegExp;
}

export function kokoro({ loses, leavesUntimed, ...options }: KokoroOptions = {}): FakeScript {
  return (request) => {
    if (request.path === "/v1/audio/voices") return jsonError(200, { voices: [KOKORO_VOICE] });
    if (request.path !== "/dev/captioned_speech") return refusal(404, "not_found");
    const strict = new Strict(request)
      .header("content-type", "application/json")
      .fields(request.json, "body", {
        model: ["kokoro", "tts-1", "tts-1-hd"],
        input: "string",
        voice: "string",
        response_format: "pcm",
        "speed?": "number",
        "lang_code?": ["a", "b", "e", "f", "h", "i", "j", "p", "z"],
        stream: true,
        return_timestamps: "boolean",
      });
    const body = request.json as Request;
    if (strict.fault !== undefined) return refusal(422, "validation_error");
    if (body.voice !== KOKORO_VOICE) return refusal(400, "validation_error");
    if (options.fault === "too many") return refusal(429, "rate_limit");
    if (options.fault === "html") return htmlPage();
    const text = loses === undefined ? body.input : body.input.replace(loses, " ");
    const steps = timedSteps(WRITER, {
      ...options,
      text,
      spoken: untimed(
        speak(text.replace(/\[pause:[\d.]+s\]/g, " "), { sampleRate: SAMPLE_RATE, say: options.say }),
        leavesUntimed?.exec(text)?.[0],
      ),
      hasTimes: body.return_timestamps,
      encode: bytesOf,
      sampleRate: SAMPLE_RATE,
    });
    return { headers: { "content-type": "application/json" }, body: steps, splitBytes: 7777 };
  };
}

/** As it says what it can't match with its text: that chunk's times are null. */
function untimed(spoken: Spoken, text = ""): Spoken {
  const left = wordsOf(text);
  return { ...spoken, words: spoken.words.filter((word) => !left.includes(word.text)) };
}

const WRITER: TimedWriter = {
  audio: (piece) => line({ audio: piece.toString("base64"), audio_format: "audio/pcm", timestamps: null }),
  words: (words, isShort) =>
    line({
      audio: "",
      audio_format: "audio/pcm",
      timestamps: words.map(({ text, start, end }) => ({
        word: text,
        ...(isShort ? {} : { start_time: start, end_time: end }),
      })),
    }),
  error: (text) => line({ detail: { error: "processing_error", message: text, type: "server_error" } }),
  end: "",
};

function line(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}

function refusal(status: number, error: string): FakeAnswer {
  return jsonError(status, {
    detail: { error, message: "see the documentation", type: "invalid_request_error" },
  });
}
