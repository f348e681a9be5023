/**
 * What the address of a vendor socket asks for. Booleans are read as pydantic reads them; a wrong
 * value is GatewayError "invalid_field" with the name of the parameter, to be answered before the upgrade.
 */
import { GatewayError } from "../../errors.ts";

export type SocketKind = "speech" | "dialogue";

export interface SocketSettings {
  readonly modelId: string;
  /** One of the streaming endpoints' formats. */
  readonly outputFormat: string;
  readonly languageCode: string | undefined;
  /** 0 to 4294967295. */
  readonly seed: number | undefined;
  /** false = zero retention upstream. */
  readonly enableLogging: boolean | undefined;
  readonly applyTextNormalization: "auto" | "on" | "off" | undefined;
  /** Japanese only. */
  readonly applyLanguageTextNormalization: boolean | undefined;
  /** Tags such as `<break/>` are kept whole. */
  readonly hasSsml: boolean;
  /** Every audio message has its own timing, not only the first of a generation. */
  readonly isSynced: boolean;
  /** Each message is a generation of its own. */
  readonly isAuto: boolean;
  /** Without a message for so long, a context (multi) or the socket ends, ms. */
  readonly idleMs: number;
  /** Ours: times count from the beginning of the context, not of the message. */
  readonly isAbsolute: boolean;
}

const DEFAULT_MODELS: Readonly<Record<SocketKind, string>> = {
  speech: "eleven_multilingual_v2",
  dialogue: "eleven_v3_conversational",
};
const DEFAULT_FORMAT = "mp3_44100_128";
/** The name that older schemas have as their default. */
const FORMAT_ALIASES: Readonly<Record<string, string>> = { mp3_44100: DEFAULT_FORMAT };
const DEFAULT_IDLE_S = 20;
const MAX_IDLE_S = 180;
const MAX_SEED = 4_294_967_295;
/** Longest name of a model or language: they go into requests and messages. */
const MAX_NAME_CHARS = 128;

const SHARED_NAMES = [
  "model_id",
  "output_format",
  "language_code",
  "seed",
  "enable_logging",
  "sync_alignment",
  "absolute_times",
  "apply_text_normalization",
  // Who the client is (server/credential.ts).
  "token",
  "single_use_token",
  "authorization",
];
const NAMES: Readonly<Record<SocketKind, ReadonlySet<string>>> = {
  dialogue: new Set(SHARED_NAMES),
  speech: new Set([
    ...SHARED_NAMES,
    "inactivity_timeout",
    "apply_language_text_normalization",
    "enable_ssml_parsing",
    "auto_mode",
  ]),
};

/** The names that nothing is done of at such a socket. */
export function ignoredParameters(query: URLSearchParams, kind: SocketKind): string[] {
  return [...new Set(query.keys())].filter((name) => !NAMES[kind].has(name));
}

/** `isFormat`: whether a name is one of the streaming endpoints' formats. Throws GatewayError "invalid_field". */
export function parseSocketSettings(
  query: URLSearchParams,
  kind: SocketKind,
  isFormat: (name: string) => boolean,
): SocketSettings {
  const modelId = nameOf(query, "model_id") ?? DEFAULT_MODELS[kind];
  requireModel(modelId, kind);
  const shared = {
    modelId,
    outputFormat: formatOf(query, isFormat),
    languageCode: nameOf(query, "language_code"),
    seed: integerOf(query, "seed", { min: 0, max: MAX_SEED }),
    enableLogging: flagOf(query, "enable_logging"),
    isSynced: flagOf(query, "sync_alignment") ?? false,
    isAbsolute: flagOf(query, "absolute_times") ?? false,
  };
  if (kind === "dialogue") {
    return {
      ...shared,
      applyTextNormalization: choiceOf(query, "apply_text_normalization", ["on", "off"]) ?? "off",
      applyLanguageTextNormalization: undefined,
      hasSsml: false,
      isAuto: false,
      idleMs: DEFAULT_IDLE_S * 1000,
    };
  }
  // Longer than may be asked for: the longest there is, since nobody knows what the vendor does.
  const idleS = integerOf(query, "inactivity_timeout", { min: 1, max: Number.MAX_SAFE_INTEGER });
  return {
    ...shared,
    applyTextNormalization: choiceOf(query, "apply_text_normalization", ["auto", "on", "off"]),
    applyLanguageTextNormalization: flagOf(query, "apply_language_text_normalization"),
    hasSsml: flagOf(query, "enable_ssml_parsing") ?? false,
    isAuto: flagOf(query, "auto_mode") ?? false,
    idleMs: Math.min(idleS ?? DEFAULT_IDLE_S, MAX_IDLE_S) * 1000,
  };
}

/** How many voices a dialogue may register, by its model. */
export function maxVoices(modelId: string): number {
  return /_conversational$|v4_turbo/.test(modelId) ? 1 : 10;
}

function requireModel(modelId: string, kind: SocketKind): void {
  const isAllowed = kind === "dialogue" ? /^eleven_v[34]/.test(modelId) : !/^eleven_v3/.test(modelId);
  if (isAllowed) return;
  const expected = kind === "dialogue" ? "one that starts eleven_v3 or eleven_v4" : "one before eleven_v3";
  throw invalid("model_id", `Model '${modelId}' is not available on this endpoint, expected ${expected}`);
}

function formatOf(query: URLSearchParams, isFormat: (name: string) => boolean): string {
  const given = query.get("output_format") || DEFAULT_FORMAT;
  const name = FORMAT_ALIASES[given] ?? given;
  if (isFormat(name)) return name;
  throw invalid("output_format", `Output format '${given.slice(0, 40)}' is not one of streaming endpoints`);
}

function nameOf(query: URLSearchParams, field: string): string | undefined {
  const value = query.get(field) || undefined;
  if (value !== undefined && !/^[\w.:-]+$/.test(value)) throw invalid(field, `${field} is not a name`);
  if (value !== undefined && value.length > MAX_NAME_CHARS) throw invalid(field, `${field} is too long`);
  return value;
}

function flagOf(query: URLSearchParams, field: string): boolean | undefined {
  const value = query.get(field)?.toLowerCase();
  if (value === undefined || value === "") return undefined;
  if (["true", "1", "yes", "on", "t", "y"].includes(value)) return true;
  if (["false", "0", "no", "off", "f", "n"].includes(value)) return false;
  throw invalid(field, `${field} is not a boolean`);
}

function integerOf(
  query: URLSearchParams,
  field: string,
  bounds: { readonly min: number; readonly max: number },
): number | undefined {
  const value = query.get(field);
  if (value === null || value === "") return undefined;
  const number = /^-?\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
  if (number >= bounds.min && number <= bounds.max) return number;
  throw invalid(field, `${field} is not an integer from ${bounds.min} to ${bounds.max}`);
}

function choiceOf<T extends string>(
  query: URLSearchParams,
  field: string,
  choices: readonly T[],
): T | undefined {
  const value = query.get(field) || undefined;
  const found = choices.find((choice) => choice === value);
  if (value === undefined || found !== undefined) return found;
  throw invalid(field, `${field} is not one of ${choices.join(", ")}`);
}

function invalid(field: string, message: string): GatewayError {
  return new GatewayError("invalid_field", message, { field });
}
