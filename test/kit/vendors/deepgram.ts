/** Deepgram Aura, scripted: POST /v1/speak, strict about its query. */
import { encodeAlaw, encodeUlaw } from "../../../src/audio/codecs/g711.ts";
import type { FakeAnswer, FakeScript, FakeStep } from "../../helpers/fake-answer.ts";
import { bytesOf, piecesOf, speak } from "./spoken.ts";
import { Strict } from "./strict.ts";
import { htmlPage, jsonError } from "./timed-steps.ts";

export const DEEPGRAM_KEY = "dg-0123456789abcdef";
export const DEEPGRAM_VOICE = "aura-2-thalia-en";
const RATES: Readonly<Record<string, readonly number[]>> = {
  linear16: [8000, 16_000, 24_000, 32_000, 48_000],
  mulaw: [8000, 16_000],
  alaw: [8000, 16_000],
};
const ENCODERS = { linear16: bytesOf, mulaw: encodeUlaw, alaw: encodeAlaw };

export type DeepgramFault = "html" | "empty" | "stall" | "reset" | "too many" | "no money" | "fails";

export function deepgram({ fault }: { readonly fault?: DeepgramFault } = {}): FakeScript {
  return (request) => {
    if (request.path !== "/v1/speak") return refusal(404, "NOT_FOUND");
    const strict = new Strict(request);
    if (strict.header("authorization", `Token ${DEEPGRAM_KEY}`).fault !== undefined)
      return refusal(401, "INVALID_AUTH");
    strict.header("content-type", "application/json").fields(request.json, "body", { text: "string" });
    const { encoding = "", container, sample_rate, model, ...others } = Object.fromEntries(request.query);
    const sampleRate = Number(sample_rate);
    const isRight = RATES[encoding]?.includes(sampleRate) === true && container === "none";
    strict.must(isRight && Object.keys(others).length === 0, "the query");
    if (strict.fault !== undefined) return refusal(400, "UNSUPPORTED_AUDIO_FORMAT");
    if (model !== DEEPGRAM_VOICE) return refusal(400, "INVALID_QUERY_PARAMETER");
    switch (fault) {
      case "too many":
        return refusal(429, "TOO_MANY_REQUESTS", { "retry-after": "2" });
      case "no money":
        return refusal(402, "ASR_PAYMENT_REQUIRED");
      case "fails":
        return refusal(503, "SERVICE_UNAVAILABLE");
      case "html":
        return htmlPage();
      default: {
        const { text } = request.json as { readonly text: string };
        const { pcm } = speak(text, { sampleRate });
        const encode = ENCODERS[encoding as keyof typeof ENCODERS];
        const pieces: FakeStep[] = fault === "empty" ? [] : piecesOf(encode(pcm), 3001);
        const isBroken = fault === "stall" || fault === "reset";
        const body = isBroken ? [...pieces.slice(0, pieces.length / 2), fault] : pieces;
        const facts = { "dg-request-id": "r-1", "dg-char-count": String(text.length) };
        return { headers: { "content-type": `audio/${encoding}`, ...facts }, body };
      }
    }
  };
}

function refusal(status: number, code: string, headers: Readonly<Record<string, string>> = {}): FakeAnswer {
  return jsonError(status, { err_code: code, err_msg: "see the documentation", request_id: "r-1" }, headers);
}
