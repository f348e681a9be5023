/**
 * OpenAI's POST /v1/audio/speech, scripted, and servers of its shape that do otherwise than it: what they send is their own
 * affair, whatever they are asked for.
 */
import { UNKNOWN_DATA_BYTES, wavHeader } from "../../../src/audio/containers/wav.ts";
import type { FakeAnswer, FakeScript, FakeStep } from "../../helpers/fake-answer.ts";
import { bytesOf, piecesOf, speak } from "./spoken.ts";
import { Strict } from "./strict.ts";
import { htmlPage, jsonError } from "./timed-steps.ts";

export const OPENAI_KEY = "sk-proj-0123456789abcdef";
export const OPENAI_VOICE = "alloy";

export type OpenAiManner =
  /** As OpenAI: WAV of unknown length, or PCM at 24 kHz. */
  | "openai"
  /** A WAV file, made whole before anything is sent (Orpheus). */
  | "whole file"
  /** WAV whatever was asked for, called something else (Chatterbox). */
  | "wav for pcm"
  /** PCM at the model's rate, which nothing says (Speaches). */
  | "own rate"
  /** PCM at the model's rate, which the content type says. */
  | "said rate"
  /** A file for each sentence, one behind the other, with a chunk behind its samples. */
  | "file for each sentence"
  /** WAV of unknown length for each sentence. */
  | "stream for each sentence"
  | "events"
  | "floats"
  | "stereo";

export type OpenAiFault =
  | "html"
  | "html without its type"
  | "json under 200"
  | "mp3"
  | "mp3 without tags"
  | "empty"
  | "header alone"
  | "cut file"
  | "stall"
  | "reset"
  | "too many"
  | "no quota"
  | "event error"
  | "events without end"
  | "odd format";

export interface OpenAiOptions {
  readonly manner?: OpenAiManner;
  readonly fault?: OpenAiFault;
  /** Hz, of what it makes; default 24,000. */
  readonly sampleRate?: number;
  /** "": it asks for none. */
  readonly key?: string;
}

interface Request {
  readonly input: string;
  readonly voice: string;
  readonly response_format: "wav" | "pcm";
}

export function openAi({
  manner = "openai",
  fault,
  sampleRate = 24_000,
  key = "",
}: OpenAiOptions = {}): FakeScript {
  return (request) => {
    if (request.path === "/v1/models") return jsonError(200, { data: [] });
    if (request.path !== "/v1/audio/speech") return refusal(404, "not_found");
    const strict = new Strict(request);
    if (key !== "" && strict.header("authorization", `Bearer ${key}`).fault !== undefined)
      return refusal(401, "invalid_api_key");
    strict.header("content-type", "application/json").fields(request.json, "body", {
      model: "string",
      input: "string",
      voice: "string",
      response_format: ["wav", "pcm"],
      "speed?": "number",
    });
    if (strict.fault !== undefined) return refusal(400, "invalid_value", strict.fault);
    const body = request.json as Request;
    if (body.voice !== OPENAI_VOICE) return refusal(400, "voice_not_found");
    const refused = refusedFor(fault);
    if (refused !== null) return refused;
    return answerOf(body, { manner, fault, sampleRate });
  };
}

function refusedFor(fault: OpenAiFault | undefined): FakeAnswer | null {
  switch (fault) {
    case "html":
      return htmlPage();
    case "html without its type":
      return {
        headers: { "content-type": "audio/wav" },
        body: ["<!DOCTYPE html><html><body>no</body></html>"],
      };
    case "json under 200":
      return { headers: { "content-type": "audio/wav" }, body: ['{"error":{"code":"model_not_found"}}'] };
    case "mp3":
      return {
        headers: { "content-type": "audio/mpeg" },
        body: [Buffer.from("ID3\x04\0\0\0\0\0\0 some frames")],
      };
    case "mp3 without tags":
      return {
        headers: { "content-type": "audio/mpeg" },
        body: [Buffer.concat([Buffer.from([0xff, 0xfb, 0x90, 0xc4]), Buffer.alloc(413)])],
      };
    case "empty":
      return { headers: { "content-type": "audio/wav" }, body: [] };
    case "header alone":
      return {
        headers: { "content-type": "audio/wav" },
        body: [wavHeader({ sampleRate: 24_000, dataBytes: UNKNOWN_DATA_BYTES })],
      };
    case "odd format": {
      const header = wavHeader({ sampleRate: 24_000, dataBytes: UNKNOWN_DATA_BYTES });
      header[20] = 0x55;
      return { headers: { "content-type": "audio/wav" }, body: [header, Buffer.alloc(400)] };
    }
    case "too many":
      return refusal(429, "rate_limit_exceeded");
    case "no quota":
      return refusal(429, "insufficient_quota");
    default:
      return null;
  }
}

interface Manner {
  readonly manner: OpenAiManner;
  readonly fault: OpenAiFault | undefined;
  readonly sampleRate: number;
}

function answerOf(
  { input, response_format: asked }: Request,
  { manner, fault, sampleRate }: Manner,
): FakeAnswer {
  const { pcm } = speak(input, { sampleRate });
  const bytes = bytesOf(pcm);
  const unknown = wavHeader({ sampleRate, dataBytes: UNKNOWN_DATA_BYTES });
  const type = asked === "wav" ? "audio/wav" : "audio/pcm";
  switch (manner) {
    case "events":
      return { headers: { "content-type": "text/event-stream" }, body: eventsOf([unknown, bytes], fault) };
    case "whole file": {
      const file = Buffer.concat([wavHeader({ sampleRate, dataBytes: bytes.length }), bytes]);
      const sent = fault === "cut file" ? file.subarray(0, file.length / 2) : file;
      return { headers: { "content-type": "audio/wav" }, body: [{ afterMs: 50 }, sent], splitBytes: 4001 };
    }
    case "wav for pcm":
      return audio("application/octet-stream", [unknown, bytes], fault);
    case "own rate":
      return audio(type, asked === "wav" ? [unknown, bytes] : [bytes], fault);
    case "said rate":
      return audio(`audio/pcm;rate=${sampleRate}`, [bytes], fault);
    case "file for each sentence":
      return audio("audio/wav", sentencesOf(bytes, sampleRate), fault);
    case "stream for each sentence":
      return audio(
        "audio/wav",
        thirdsOf(bytes).flatMap((part) => [unknown, part]),
        fault,
      );
    case "floats":
      return audio(
        "audio/wav",
        [header(sampleRate, { tag: 3, channels: 1, bits: 32 }), floatsOf(pcm)],
        fault,
      );
    case "stereo":
      return audio("audio/wav", [header(sampleRate, { tag: 1, channels: 2, bits: 16 }), twice(pcm)], fault);
    case "openai":
      return audio(type, asked === "wav" ? [unknown, bytes] : [bytes], fault);
  }
}

function audio(type: string, parts: readonly Uint8Array[], fault: OpenAiFault | undefined): FakeAnswer {
  const pieces: FakeStep[] = piecesOf(Buffer.concat(parts), 3001);
  const isBroken = fault === "stall" || fault === "reset";
  const body = isBroken ? [...pieces.slice(0, pieces.length / 2), fault] : pieces;
  return { headers: { "content-type": type }, body };
}

function eventsOf(parts: readonly Uint8Array[], fault: OpenAiFault | undefined): string[] {
  const events = piecesOf(Buffer.concat(parts), 3001).map((piece) =>
    event({ type: "speech.audio.delta", audio: piece.toString("base64") }),
  );
  const half = events.slice(0, events.length / 2);
  if (fault === "event error") return [...half, event({ type: "error", error: { code: "server_error" } })];
  if (fault === "events without end") return half;
  return [...events, event({ type: "speech.audio.done", usage: {} })];
}

function thirdsOf(bytes: Buffer): Buffer[] {
  const third = Math.floor(bytes.length / 6) * 2;
  return [bytes.subarray(0, third), bytes.subarray(third, 2 * third), bytes.subarray(2 * third)];
}

/** In three parts. */
function sentencesOf(bytes: Buffer, sampleRate: number): Uint8Array[] {
  const trailer = Buffer.from("LIST\x05\0\0\0hello\0", "latin1");
  return thirdsOf(bytes).flatMap((part) => [
    wavHeader({ sampleRate, dataBytes: part.length }),
    part,
    trailer,
  ]);
}

function header(
  sampleRate: number,
  { tag, channels, bits }: { readonly tag: number; readonly channels: number; readonly bits: number },
): Uint8Array {
  const made = wavHeader({ sampleRate, dataBytes: UNKNOWN_DATA_BYTES });
  const view = new DataView(made.buffer);
  view.setUint16(20, tag, true);
  view.setUint16(22, channels, true);
  view.setUint16(34, bits, true);
  return made;
}

function floatsOf(pcm: Int16Array): Uint8Array {
  const floats = Float32Array.from(pcm, (sample) => sample / 32_767);
  return new Uint8Array(floats.buffer);
}

function twice(pcm: Int16Array): Uint8Array {
  return bytesOf(Int16Array.from({ length: 2 * pcm.length }, (_, index) => pcm[index >> 1] ?? 0));
}

function event(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function refusal(status: number, code: string, message = "see the documentation"): FakeAnswer {
  return jsonError(status, { error: { message, type: "error", param: null, code } });
}
