/** `POST /v1/audio/speech` in OpenAI's shape: what is asked, how errors and events look, and which voice a name means. */
import { z } from "zod";
import { ERRORS, GatewayError } from "../errors.ts";
import { readJson } from "./read-json.ts";

const SPEECH_FORMATS = ["mp3", "opus", "flac", "wav", "pcm"] as const;
export type SpeechFormat = (typeof SPEECH_FORMATS)[number];

export interface OpenAiSpeechRequest {
  /** Empty: one of OpenAI's own, so the gateway's default; else a model of the upstream. */
  readonly modelId: string;
  readonly input: string;
  /** `id`: a voice of the upstream, whatever it is called. */
  readonly voice: { readonly name: string } | { readonly id: string };
  readonly format: SpeechFormat;
  /** 0.25 to 4; the upstream judges what it can do. */
  readonly speed: number;
  /** Events instead of plain audio. */
  readonly isSse: boolean;
  /** Fields that nothing is done of: no upstream takes `instructions`, and the rest is unknown. */
  readonly ignored: readonly string[];
}

/** OpenAI's own limit, characters. */
const MAX_INPUT_CHARS = 4096;
const MAX_NAME_CHARS = 128;
const NOTHING_SAID = /^[\s\p{C}]*$/u;
/** Names of OpenAI's models; a voice of the upstream can't speak as one of them. */
const OPENAI_MODEL = /^(tts-|gpt-)/;

const name = z.string().min(1).max(MAX_NAME_CHARS);
const schema = z.looseObject({
  model: name,
  input: z.string().max(MAX_INPUT_CHARS),
  voice: z.union([name, z.object({ id: name })]),
  instructions: z.string().nullish(),
  response_format: z.enum([...SPEECH_FORMATS, "aac"]).nullish(),
  speed: z.number().min(0.25).max(4).nullish(),
  stream_format: z.enum(["audio", "sse"]).nullish(),
});

/** Throws GatewayError "malformed_json" or "invalid_field" with the field. */
export function parseOpenAiSpeech(json: string): OpenAiSpeechRequest {
  const request = readJson(json, schema, "The body");
  const { model, input, voice, response_format, speed, stream_format, instructions, ...unknown } = request;
  const format = response_format ?? "mp3";
  if (format === "aac")
    throw invalid("response_format", `aac is not supported, expected one of ${SPEECH_FORMATS.join(", ")}`);
  if (NOTHING_SAID.test(input)) throw invalid("input", "it is empty, expected something to say");
  return {
    modelId: OPENAI_MODEL.test(model) ? "" : model,
    input,
    voice: typeof voice === "string" ? { name: voice } : voice,
    format,
    speed: speed ?? 1,
    isSse: stream_format === "sse",
    ignored: [...((instructions ?? "") === "" ? [] : ["instructions"]), ...Object.keys(unknown)],
  };
}

function invalid(field: string, reason: string): GatewayError {
  return new GatewayError("invalid_field", `Field '${field}' is not valid: ${reason}`, { field });
}

interface OpenAiError {
  readonly status: number;
  /** JSON. */
  readonly body: string;
}

/** The upstream's name of a field as it is called here. */
const PARAMS: Readonly<Record<string, string>> = {
  text: "input",
  voice_id: "voice",
  model_id: "model",
  output_format: "response_format",
  "voice_settings.speed": "speed",
};

export function openAiError(error: GatewayError): OpenAiError {
  const { httpStatus: status } = ERRORS[error.code];
  const type = error.code === "budget_exhausted" ? "insufficient_quota" : openAiType(status);
  const field = error.field ?? null;
  const param = field === null ? null : (PARAMS[field] ?? field);
  const message = error.code === "unauthorized" ? "Incorrect API key provided" : error.message;
  const code = error.code === "unauthorized" ? "invalid_api_key" : error.code;
  return { status, body: JSON.stringify({ error: { message, type, param, code } }) };
}

function openAiType(status: number): string {
  if (status >= 500) return "server_error";
  return status === 429 ? "rate_limit_error" : "invalid_request_error";
}

interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly total_tokens: number;
}

/** Estimates, since the upstream counts characters: four to a token, and twenty tokens to a second of sound. */
export function estimateUsage(inputChars: number, audioMs: number): Usage {
  const input = Math.ceil(inputChars / 4);
  const output = Math.round(audioMs / 50);
  return { input_tokens: input, output_tokens: output, total_tokens: input + output };
}

/** One server-sent event of audio. */
export function audioDelta(audio: Uint8Array): string {
  const base64 = Buffer.from(audio.buffer, audio.byteOffset, audio.byteLength).toString("base64");
  return sse({ type: "speech.audio.delta", audio: base64 });
}

/** The last one. */
export function audioDone(usage: Usage): string {
  return sse({ type: "speech.audio.done", usage });
}

/** What goes wrong when audio has been sent. */
export function audioFailed(error: GatewayError): string {
  return sse({ type: "error", ...(JSON.parse(openAiError(error).body) as object) });
}

function sse(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

/** A voice of the upstream as far as a name is looked up in it. */
export interface ListedVoice {
  readonly id: string;
  readonly name: string;
  /** Those that are texts: `gender`, `language` and the like. */
  readonly labels: Readonly<Record<string, string>>;
}

/** OpenAI's voices by how they sound, in the order of the alphabet. */
const OPENAI_VOICES = {
  female: ["alloy", "coral", "marin", "nova", "sage", "shimmer"],
  male: ["ash", "ballad", "cedar", "echo", "fable", "onyx", "verse"],
} as const;

/**
 * The voice that a name means, as long as the upstream's list stays the same: a voice of that id or name; else, for the
 * n-th of OpenAI's female (male) voices, the n-th female (male) voice of the list by id, from the start again where
 * there are fewer, and of all voices where none is labelled so. undefined: the name is not known.
 */
export function voiceOf(name: string, voices: readonly ListedVoice[]): string | undefined {
  const wanted = name.toLowerCase();
  const exact = voices.find(({ id }) => id === name) ?? voices.find((voice) => isCalled(voice, wanted));
  if (exact !== undefined) return exact.id;
  for (const [gender, names] of Object.entries(OPENAI_VOICES)) {
    const index = (names as readonly string[]).indexOf(wanted);
    if (index < 0) continue;
    const alike = voices.filter(({ labels }) => labels.gender?.toLowerCase() === gender);
    const ids = (alike.length > 0 ? alike : voices).map(({ id }) => id).sort();
    return ids[index % ids.length];
  }
  return undefined;
}

function isCalled(voice: ListedVoice, wanted: string): boolean {
  return voice.name.toLowerCase() === wanted;
}

const listSchema = z.object({
  voices: z.array(
    z.object({
      voice_id: z.string(),
      name: z.string().nullish(),
      labels: z.record(z.string(), z.unknown()).nullish(),
    }),
  ),
});

/** The answer of GET /v1/voices. Throws GatewayError "upstream_protocol". */
export function parseVoiceList(json: string): ListedVoice[] {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw new GatewayError("upstream_protocol", "The upstream's voice list is not JSON", { cause });
  }
  const result = listSchema.safeParse(value);
  if (!result.success) throw new GatewayError("upstream_protocol", "The upstream's voice list has no voices");
  return result.data.voices.map(({ voice_id: id, name: called, labels }) => {
    const texts = Object.entries(labels ?? {}).filter((entry): entry is [string, string] => isText(entry[1]));
    return { id, name: called ?? "", labels: Object.fromEntries(texts) };
  });
}

function isText(value: unknown): boolean {
  return typeof value === "string";
}
