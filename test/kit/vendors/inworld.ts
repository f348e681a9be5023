/** Inworld, scripted: POST /tts/v1/voice:stream, strict about what it is sent. */
import { encodeAlaw, encodeUlaw } from "../../../src/audio/codecs/g711.ts";
import type { FakeAnswer, FakeScript } from "../../helpers/fake-answer.ts";
import { bytesOf, speak } from "./spoken.ts";
import { Strict } from "./strict.ts";
import { htmlPage, jsonError, type TimedOptions, type TimedWriter, timedSteps } from "./timed-steps.ts";

export const INWORLD_KEY = "aW53b3JsZC1rZXk6c2VjcmV0";
export const INWORLD_VOICE = "Ashley";
const ENCODERS = { PCM: bytesOf, MULAW: encodeUlaw, ALAW: encodeAlaw };

interface Request {
  readonly text: string;
  readonly voiceId: string;
  readonly audioConfig: { readonly audioEncoding: keyof typeof ENCODERS; readonly sampleRateHertz: number };
  readonly timestampType?: string;
}

export function inworld(options: TimedOptions = {}): FakeScript {
  return (request) => {
    if (request.path !== "/tts/v1/voice:stream") return refusal(404, 5, "NOT_FOUND");
    const strict = new Strict(request);
    if (strict.header("authorization", `Basic ${INWORLD_KEY}`).fault !== undefined)
      return refusal(401, 16, "UNAUTHENTICATED");
    strict.header("content-type", "application/json").fields(request.json, "body", {
      text: "string",
      voiceId: "string",
      modelId: ["inworld-tts-1.5-mini", "inworld-tts-1.5-max", "inworld-tts-2"],
      "language?": ["en-US", "de-DE"],
      audioConfig: "object",
      "applyTextNormalization?": ["ON", "OFF"],
      "timestampType?": ["WORD", "CHARACTER"],
      "timestampTransportStrategy?": ["SYNC", "ASYNC"],
    });
    const body = request.json as Request;
    strict.fields(body.audioConfig, "audioConfig", {
      audioEncoding: Object.keys(ENCODERS),
      sampleRateHertz: "number",
      "speakingRate?": "number",
    });
    if (strict.fault !== undefined) return refusal(400, 3, "INVALID_ARGUMENT", strict.fault);
    if (body.voiceId !== INWORLD_VOICE) return refusal(404, 5, "NOT_FOUND");
    if (options.fault === "too many") return refusal(429, 8, "RESOURCE_EXHAUSTED");
    if (options.fault === "html") return htmlPage();
    const { audioEncoding, sampleRateHertz: sampleRate } = body.audioConfig;
    const steps = timedSteps(WRITER, {
      ...options,
      text: body.text,
      spoken: speak(body.text, { sampleRate, say: options.say }),
      hasTimes: body.timestampType === "WORD",
      encode: ENCODERS[audioEncoding],
      sampleRate,
    });
    return { headers: { "content-type": "application/json" }, body: steps, splitBytes: 7777 };
  };
}

const WRITER: TimedWriter = {
  audio: (piece) => line({ result: { audioContent: piece.toString("base64"), usage: {} } }),
  words: (words, isShort) =>
    line({
      result: {
        audioContent: "",
        timestampInfo: {
          wordAlignment: {
            words: words.map(({ text }) => text),
            wordStartTimeSeconds: words.map(({ start }) => start),
            wordEndTimeSeconds: isShort ? [] : words.map(({ end }) => end),
          },
        },
      },
    }),
  error: (text) => line({ error: { code: 13, message: text, details: [] } }),
  end: "",
};

function line(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}

function refusal(status: number, code: number, name: string, message = "see the documentation"): FakeAnswer {
  return jsonError(status, { error: { code, status: name, message, details: [] } });
}
