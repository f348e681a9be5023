/**
 * Speech that is passed on for a key or token that names voices, models or formats, sets options, or has its characters counted.
 * The gateway writes a body of JSON itself, from the fields that it has checked: two readers may understand the same bytes
 * differently.
 */
import { forbidden } from "../../access/access-error.ts";
import type { Caller } from "../../access/caller.ts";
import type { SpeechSettings } from "../../access/grants.ts";
import { GatewayError } from "../../errors.ts";
import { parseJson } from "../../protocol/read-json.ts";
import { mustHaveSpeech } from "../speech-access.ts";

/** What stands where, by the beginning of the path. */
interface SpeechKind {
  /** The path before the voice, or the whole of it. */
  readonly base: string;
  readonly hasVoiceInPath: boolean;
  /** The vendor's where the body names none; null: there are no models. */
  readonly defaultModel: string | null;
  /** An upload: a form, whose fields nobody has read. */
  readonly isForm: boolean;
  /** Says text: what the caller's `speech` sets is for these. */
  readonly saysText: boolean;
}

const KINDS: readonly SpeechKind[] = [
  {
    base: "/v1/text-to-speech",
    hasVoiceInPath: true,
    defaultModel: "eleven_multilingual_v2",
    isForm: false,
    saysText: true,
  },
  {
    base: "/v1/text-to-dialogue",
    hasVoiceInPath: false,
    defaultModel: "eleven_v3",
    isForm: false,
    saysText: true,
  },
  {
    base: "/v1/sound-generation",
    hasVoiceInPath: false,
    defaultModel: "eleven_text_to_sound_v2",
    isForm: false,
    saysText: false,
  },
  {
    base: "/v1/speech-to-speech",
    hasVoiceInPath: true,
    defaultModel: "eleven_english_sts_v2",
    isForm: true,
    saysText: false,
  },
  {
    base: "/v1/audio-isolation",
    hasVoiceInPath: false,
    defaultModel: null,
    isForm: true,
    saysText: false,
  },
];
const DEFAULT_FORMAT = "mp3_44100_128";

export interface SpeechTarget {
  /** Without the query. */
  readonly path: string;
  readonly query: string;
}

export interface SpeechAsking {
  readonly caller: Caller;
  /** Options that are set for the request, and win over its own. */
  readonly pins: SpeechSettings;
}

/** One request in the name of a caller. */
export class ProxiedSpeech {
  readonly #asking: SpeechAsking;
  readonly #kind: SpeechKind;
  /** As it goes upstream. */
  readonly target: SpeechTarget;

  /** Throws forbidden. */
  constructor(asking: SpeechAsking, { path, query }: SpeechTarget) {
    const { caller, pins } = asking;
    const kind = KINDS.find(({ base }) => path === base || path.startsWith(`${base}/`));
    if (kind === undefined) throw forbidden("Your token's limits can't be checked for this request");
    this.#asking = asking;
    this.#kind = kind;
    const [, voice = "", ...rest] = kind.hasVoiceInPath ? path.slice(kind.base.length).split("/") : [];
    const { voice_id: pinned, enable_logging: isLogged } = pins;
    const voiceId = pinned ?? decodeURIComponent(voice);
    const asked = new URLSearchParams(query);
    const formats = asked.getAll("output_format");
    for (const outputFormat of formats.length === 0 ? [DEFAULT_FORMAT] : formats) {
      mustHaveSpeech(caller, { voiceIds: kind.hasVoiceInPath ? [voiceId] : [], modelId: null, outputFormat });
    }
    // Which model a form names stands in it, anywhere among its files.
    if (kind.isForm && kind.defaultModel !== null && caller.limits("models")) {
      throw forbidden("Your token allows some models only, and the model of an upload can't be checked");
    }
    if (isLogged !== undefined) asked.set("enable_logging", String(isLogged));
    this.target = {
      path: kind.hasVoiceInPath ? [kind.base, encodeURIComponent(voiceId), ...rest].join("/") : path,
      query: isLogged === undefined ? query : asked.toString(),
    };
  }

  /** Its body has to be read before it may go upstream, for what the caller may have or for its characters. */
  get wantsBody(): boolean {
    return !this.#kind.isForm;
  }

  /** How many characters a body that goes upstream costs: those of its text, or what a sound effect is billed. */
  charactersIn(body: string): number {
    const value = parseJson(body, "Body");
    return this.#kind.saysText ? textsIn(value).join("").length : soundCost(value);
  }

  /** The body as it goes upstream. Throws malformed_json, invalid_field, forbidden. */
  bodyOf(json: string): string {
    const value = parseJson(json, "Body");
    if (!isObject(value)) throw new GatewayError("malformed_json", "Body is not one JSON object");
    const { caller } = this.#asking;
    const body = this.#withModel(this.#kind.saysText ? this.#withPinned(value) : value);
    const { model_id: modelId = null } = body;
    if (modelId !== null && typeof modelId !== "string") throw notText("model_id");
    mustHaveSpeech(caller, { voiceIds: voicesIn(body), modelId, outputFormat: null });
    return JSON.stringify(body);
  }

  /** Who may have some models only gets one that is named: the upstream may have another default. */
  #withModel(body: JsonObject): JsonObject {
    const { defaultModel } = this.#kind;
    const isOpen = body.model_id === undefined || body.model_id === null;
    if (!isOpen || defaultModel === null || !this.#asking.caller.limits("models")) return body;
    return { ...body, model_id: defaultModel };
  }

  #withPinned(body: JsonObject): JsonObject {
    const { voice_id, enable_logging, ...options } = this.#asking.pins;
    const pinned = { ...body, ...options };
    if (voice_id === undefined || !Array.isArray(body.inputs)) return pinned;
    const inputs: readonly unknown[] = body.inputs;
    return { ...pinned, inputs: inputs.map((input) => (isObject(input) ? { ...input, voice_id } : input)) };
  }
}

/** Whether some speech only may be asked for, or something is set for it. */
export function isLimited(caller: Caller): boolean {
  return caller.limits("voices", "models", "formats", "speech");
}

/** As the vendor bills sound effects: by the second, or this where their length is left open. */
const OPEN_SOUND_CHARACTERS = 100;
const SOUND_CHARACTERS_PER_SECOND = 20;

function soundCost(body: unknown): number {
  const seconds = isObject(body) ? Number(body.duration_seconds ?? Number.NaN) : Number.NaN;
  return seconds > 0 ? Math.ceil(seconds * SOUND_CHARACTERS_PER_SECOND) : OPEN_SOUND_CHARACTERS;
}

/** An upload is billed by the minute of its sound. */
const UPLOAD_CHARACTERS_PER_MINUTE = 1000;
const MAX_UPLOAD_MINUTES = 60;
/** The strongest common codec compresses speech to 6 kbit/s. */
const LEAST_BYTES_PER_MINUTE = 45_000;

/** What an upload costs at most, by its length; null: its client has not said how long it is. */
export function mostUploadCharacters(bytes: number | null): number {
  const minutes = bytes === null ? MAX_UPLOAD_MINUTES : bytes / LEAST_BYTES_PER_MINUTE;
  return Math.ceil(Math.min(minutes, MAX_UPLOAD_MINUTES) * UPLOAD_CHARACTERS_PER_MINUTE);
}

type JsonObject = Readonly<Record<string, unknown>>;

/** The text, or the lines of a dialogue. */
function textsIn(body: unknown): string[] {
  if (!isObject(body)) return [];
  const inputs: readonly unknown[] = Array.isArray(body.inputs) ? body.inputs : [];
  const texts = [body, ...inputs].map((input) => (isObject(input) ? input.text : undefined));
  return texts.filter((text) => typeof text === "string");
}

/** Characters of its text, as they are sent; null: it is no JSON, or has no text. */
export function codePointsIn(json: string): number | null {
  try {
    const texts = textsIn(parseJson(json, "Body"));
    return texts.length === 0 ? null : Array.from(texts.join("")).length;
  } catch {
    return null;
  }
}

/** Voices of the lines of a dialogue. Throws invalid_field. */
function voicesIn({ inputs = [] }: JsonObject): string[] {
  if (!Array.isArray(inputs)) throw notText("inputs");
  return inputs.map((input: unknown) => {
    if (!isObject(input) || typeof input.voice_id !== "string") throw notText("inputs.voice_id");
    return input.voice_id;
  });
}

function notText(field: string): GatewayError {
  return new GatewayError("invalid_field", `Field '${field}' is not valid: expected a text`, { field });
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
