/** Cartesia, scripted from its interface (API version 2026-03-01): POST /tts/sse, strict about what it is sent. */
import { encodeAlaw, encodeUlaw } from "../../../src/audio/codecs/g711.ts";
import type { FakeAnswer, FakeScript, FakeStep } from "../../helpers/fake-answer.ts";
import { bytesOf, piecesOf, type Spoken, speak } from "./spoken.ts";
import { Strict } from "./strict.ts";

export const CARTESIA_KEY = "sk_car_0123456789abcdef";
export const CARTESIA_VOICE = "a0e99841-438c-4a64-b679-ae501e7d6091";
const RATES = [8000, 16_000, 22_050, 24_000, 44_100, 48_000];

export type CartesiaFault =
  | "times behind the audio"
  | "no times"
  | "error after 200"
  | "no done"
  | "words missing"
  | "html"
  | "times go back"
  | "empty"
  | "stall"
  | "reset"
  | "too many"
  | "not json"
  | "times short";

interface Request {
  readonly transcript: string;
  readonly voice: { readonly id: string };
  readonly output_format: { readonly encoding: string; readonly sample_rate: number };
  readonly add_timestamps?: boolean;
}

export interface CartesiaOptions {
  readonly fault?: CartesiaFault;
  /** What it says for the text: numbers written out. */
  readonly say?: readonly string[];
}

export function cartesia({ fault, say }: CartesiaOptions = {}): FakeScript {
  return (request) => {
    if (request.method === "GET")
      return { headers: { "content-type": "application/json" }, body: ['{"ok":true}'] };
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
      });
    const body = request.json as Request;
    strict
      .fields(body.voice, "voice", { mode: "id", id: "string" })
      .fields(body.output_format, "output_format", {
        container: "raw",
        encoding: ["pcm_s16le", "pcm_mulaw", "pcm_alaw"],
        sample_rate: RATES,
      });
    if (strict.fault !== undefined) return refusal(400, "invalid_request", strict.fault);
    if (body.voice.id !== CARTESIA_VOICE) return refusal(404, "voice_not_found");
    if (fault === "too many") return refusal(429, "concurrency_limited");
    if (fault === "html")
      return { headers: { "content-type": "text/html" }, body: ["<html><body>A proxy</body></html>"] };
    return {
      headers: { "content-type": "text/event-stream" },
      body: stepsOf(body, { fault, say }),
      splitBytes: 7777,
    };
  };
}

function stepsOf(
  { transcript, output_format: { encoding, sample_rate }, add_timestamps = false }: Request,
  { fault, say }: { readonly fault: CartesiaFault | undefined; readonly say: readonly string[] | undefined },
): FakeStep[] {
  const spoken = speak(transcript, { sampleRate: sample_rate, ...(say === undefined ? {} : { say }) });
  if (fault === "not json") return ['event: chunk\ndata: {"type":"chunk","data":\n\n'];
  if (fault === "empty") return [event({ type: "done", done: true, status_code: 200 })];
  const isCut = fault === "words missing";
  const pcm = isCut ? spoken.pcm.subarray(0, Math.round(cutSeconds(spoken) * sample_rate)) : spoken.pcm;
  const bytes =
    encoding === "pcm_mulaw" ? encodeUlaw(pcm) : encoding === "pcm_alaw" ? encodeAlaw(pcm) : bytesOf(pcm);
  const audio = piecesOf(bytes, 3001).map((piece) =>
    event({ type: "chunk", data: piece.toString("base64"), done: false, status_code: 206, step_time: 12.5 }),
  );
  const words = isCut ? spoken.words.slice(0, Math.ceil(spoken.words.length / 2)) : spoken.words;
  const times = add_timestamps && fault !== "no times" ? wordEvents(words, fault) : [];
  const body = fault === "times behind the audio" ? [...audio, ...times] : interleaved(audio, times);
  const half = body.slice(0, Math.ceil(body.length / 2));
  switch (fault) {
    case "error after 200":
      return [
        ...half,
        event({
          type: "error",
          status_code: 206,
          error_code: "internal_error",
          title: "t",
          message: transcript,
        }),
      ];
    case "no done":
      return half;
    case "stall":
      return [...half, "stall"];
    case "reset":
      return [...half, "reset"];
    default:
      return [...body, event({ type: "done", done: true, status_code: 200 })];
  }
}

function cutSeconds({ words }: Spoken): number {
  return (words[Math.ceil(words.length / 2) - 1]?.end ?? 0) + 0.02;
}

/** Two words each. */
function wordEvents(words: Spoken["words"], fault: CartesiaFault | undefined): string[] {
  const events: string[] = [];
  for (let at = 0; at < words.length; at += 2) {
    const some = words.slice(at, at + 2);
    const back = fault === "times go back" && at >= 4 ? (words[4]?.start ?? 0) : 0;
    const start = some.map((word) => word.start - back);
    const end = some.map((word) => word.end - back);
    events.push(
      event({
        type: "timestamps",
        done: false,
        status_code: 206,
        word_timestamps: {
          words: some.map((word) => word.text),
          start,
          end: fault === "times short" ? [] : end,
        },
      }),
    );
  }
  return events;
}

/** Each piece of audio with the times that are due, as far as there are any. */
function interleaved(audio: readonly string[], times: readonly string[]): string[] {
  const each = Math.ceil(times.length / Math.max(1, audio.length));
  const mixed = audio.flatMap((piece, index) => [piece, ...times.slice(index * each, (index + 1) * each)]);
  return [...mixed, ...times.slice(audio.length * each)];
}

function event(value: { readonly type: string } & Readonly<Record<string, unknown>>): string {
  return `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;
}

function refusal(status: number, code: string, message = "see the documentation"): FakeAnswer {
  const error = {
    error_code: code,
    title: code,
    message,
    request_id: "r-1",
    doc_url: "https://docs.example",
  };
  return { status, headers: { "content-type": "application/json" }, body: [JSON.stringify(error)] };
}
