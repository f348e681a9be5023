/**
 * An upstream's refusal as one of our errors. Upstream messages may repeat the text that was sent, so
 * only its own code words go into ours, and `msg` of validation entries, which speak about the field.
 */
import { type ErrorCode, GatewayError } from "../../errors.ts";
import { headerOf, type ResponseHeaders } from "../headers.ts";

export interface Refusal {
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** As much of the body as was read. */
  readonly body: Buffer;
  /** Texts and key of the request: nothing that holds one of them is repeated. */
  readonly secrets: readonly string[];
}

interface Words {
  /** The upstream's codes, e.g. `voice_not_found`; may be empty. To decide by, and to be checked before they are shown. */
  readonly codes: readonly string[];
  readonly field?: string;
  /** What a validation entry says of the field. */
  readonly about?: string;
}

const MAX_ABOUT_CHARS = 200;
/** Longest Retry-After that is believed. */
const MAX_RETRY_AFTER_MS = 3_600_000;
/** As long a start of a text as is looked for in what the upstream says; a shorter text than the least betrays nothing. */
const MAX_SECRET_CHARS = 24;
const MIN_SECRET_CHARS = 4;
const VOICE_CODES = ["voice_not_found", "voice_does_not_exist", "invalid_voice_id"];
const KEY_CODES = ["invalid_api_key", "missing_api_key", "authentication_error"];
/** The vendor's older answers give 401 for these; it is the plan that does not allow it, not the key. */
const PLAN_CODES = ["quota_exceeded", "insufficient_credits"];
/** Fields of codes that come without one. */
const FIELDS_OF_CODES: ReadonlyMap<string, string> = new Map([
  ["voice_not_found", "voice_id"],
  ["voice_does_not_exist", "voice_id"],
  ["invalid_voice_id", "voice_id"],
  ["model_not_found", "model_id"],
  ["unsupported_model", "model_id"],
  ["invalid_output_format", "output_format"],
  ["output_format_not_allowed", "output_format"],
  ["text_too_long", "text"],
  ["text_too_short", "text"],
  ["empty_text", "text"],
  ["invalid_text", "text"],
  ["invalid_voice_settings", "voice_settings"],
  ["max_character_limit_exceeded", "text"],
]);

const HEADLINES: Partial<Readonly<Record<ErrorCode, string>>> = {
  unknown_voice: "The upstream knows no such voice (expected one that GET /voices lists)",
  upstream_unauthorized: "The upstream refused the key (expected a valid one in upstream-key)",
  upstream_forbidden: "The upstream does not allow this with this key or plan",
  upstream_not_found: "The upstream does not know the resource",
  upstream_rate_limited: "The upstream is at its limit",
  upstream_failed: "The upstream failed",
  upstream_timeout: "The upstream gave up waiting",
  upstream_protocol: "The upstream answered with a status that is not of its interface (expected 200)",
};

const DEFAULT_HEADLINE = "The upstream refused the request";
/** Refusals of the built-in service about which a client can do something else than of others with that code. */
const HEADLINES_OF_CODES: ReadonlyMap<string, string> = new Map([
  [
    "voice_model_broken",
    "The upstream can't load the model of this voice (expected another voice; `voicewire doctor --voice-models` says why)",
  ],
]);

/** Any answer that is not the 200 that was asked for. */
export function refusalError(refusal: Refusal): GatewayError {
  const { status, headers } = refusal;
  const words = readWords(refusal);
  const code = codeOf(status, words.codes);
  const field =
    words.field ?? words.codes.map((word) => FIELDS_OF_CODES.get(word)).find((name) => name !== undefined);
  const retryAfterMs = status === 429 || status >= 500 ? readRetryAfterMs(headers) : undefined;
  const facts = [`status ${status}`, ...words.codes.filter((word) => !repeats(word, refusal.secrets))];
  if (words.about !== undefined) facts.push(`${field ?? "the request"}: ${words.about}`);
  const special = words.codes.map((word) => HEADLINES_OF_CODES.get(word)).find((line) => line !== undefined);
  const headline = special ?? HEADLINES[code] ?? DEFAULT_HEADLINE;
  return new GatewayError(code, `${headline}: ${facts.join(", ")}`, {
    ...(field === undefined ? {} : { field }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** `codes`: what the vendor calls it. */
export function codeOf(status: number, codes: readonly string[]): ErrorCode {
  const isOneOf = (list: readonly string[]) => codes.some((word) => list.includes(word));
  if (status < 400) return "upstream_protocol";
  if (status >= 500) return "upstream_failed";
  if (status === 429) return "upstream_rate_limited";
  if (status === 408) return "upstream_timeout";
  if (isOneOf(PLAN_CODES) || status === 402 || status === 403) return "upstream_forbidden";
  if (status === 401 || isOneOf(KEY_CODES)) return "upstream_unauthorized";
  if (isOneOf(VOICE_CODES)) return "unknown_voice";
  return status === 404 ? "upstream_not_found" : "upstream_invalid";
}

function readWords({ body, secrets }: Refusal): Words {
  const detail = readDetail(body);
  const entry: unknown = Array.isArray(detail) ? detail[0] : undefined;
  if (isObject(entry)) {
    const field = locate(entry.loc, secrets);
    const about = safeText(entry.msg, secrets);
    return {
      codes: codeWords([entry.type]),
      ...(field === undefined ? {} : { field }),
      ...(about === undefined ? {} : { about }),
    };
  }
  if (!isObject(detail)) return { codes: [] };
  const [field] = codeWords([detail.param]).filter((word) => !repeats(word, secrets));
  const codes = codeWords([detail.code, detail.status, detail.type, detail.error]);
  const named = field === undefined ? contextFieldIn(detail.message) : withoutPlace(field);
  return { codes, ...(named === undefined ? {} : { field: named }) };
}

/** `detail` of the usual shapes; the body itself where it has none (`{error, message}`). */
function readDetail(body: Buffer): unknown {
  try {
    const parsed: unknown = JSON.parse(body.toString("utf8"));
    return isObject(parsed) ? (parsed.detail ?? parsed) : undefined;
  } catch {
    // An HTML page of a proxy, or cut at the bound: the status has to do.
    return undefined;
  }
}

/** `["body", "voice_settings", "speed"]` as the client named it: `voice_settings.speed`. */
function locate(loc: unknown, secrets: readonly string[]): string | undefined {
  if (!Array.isArray(loc)) return undefined;
  const [path] = codeWords([loc.map(String).join(".")]).filter((word) => !repeats(word, secrets));
  return path === undefined ? undefined : withoutPlace(path);
}

function withoutPlace(path: string): string {
  return path.replace(/^(?:body|query|path|header)\./, "");
}

/** The field for a text's context that a message speaks of: these refusals name it nowhere else. */
function contextFieldIn(message: unknown): string | undefined {
  return typeof message === "string"
    ? /\b(?:previous_text|next_text|previous_request_ids)\b/.exec(message)?.[0]
    : undefined;
}

/** What looks like code words, each once. */
export function codeWords(values: readonly unknown[]): string[] {
  const words = values.filter(
    (value): value is string => typeof value === "string" && /^[\w.+-]{1,64}$/.test(value),
  );
  return [...new Set(words)];
}

function safeText(value: unknown, secrets: readonly string[]): string | undefined {
  if (typeof value !== "string" || value === "" || repeats(value, secrets)) return undefined;
  return value.replace(/\p{Cc}/gu, " ").slice(0, MAX_ABOUT_CHARS);
}

/** Whether it says one of the secrets, or begins to. */
export function repeats(said: string, secrets: readonly string[]): boolean {
  return secrets.some((secret) => {
    const start = secret.trim().slice(0, MAX_SECRET_CHARS);
    return start.length >= MIN_SECRET_CHARS && said.includes(start);
  });
}

/**
 * Retry-After (RFC 9110 section 10.2.3) in ms: seconds, or a date that is taken relative to the answer's own `date`.
 * undefined where there is none that can be read; an hour at most is believed.
 */
export function readRetryAfterMs(headers: ResponseHeaders): number | undefined {
  const value = headerOf(headers, "retry-after");
  if (value === undefined || value.trim() === "") return undefined;
  const seconds = Number(value);
  const ms = Number.isNaN(seconds)
    ? Date.parse(value) - Date.parse(headerOf(headers, "date") ?? "")
    : seconds * 1000;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
