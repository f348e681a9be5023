/** Values of a service's JSON, read without trust. Errors never quote what was read: it may hold the user's text. */
import { GatewayError } from "../../errors.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const NO_AUDIO = Buffer.alloc(0);

/** `{"a": "b"}`-like keys of audio: the quotes are theirs. */
export function audioKey(name: string): Buffer {
  return Buffer.from(`"${name}"`);
}

/**
 * The object in `bytes[start, end)`, and the base64 under its key `key`, decoded from the bytes: audio is most of a line, and
 * JSON.parse would make a string of it. In the object it is "" then; null where there is none. Throws upstream_protocol.
 */
export function readAudioLine(
  bytes: Buffer,
  { start, end }: { readonly start: number; readonly end: number },
  key: Buffer,
): { readonly value: JsonObject; readonly audio: Buffer | null } {
  const from = audioStart(bytes, { start, end }, key);
  if (from < 0) return { value: parseObject(bytes.toString("utf8", start, end)), audio: null };
  const to = bytes.indexOf(QUOTE, from);
  if (to < 0 || to >= end) throw broken("it is not one JSON object");
  // Some writers escape the slashes of base64.
  const isEscaped = bytes.subarray(from, to).includes(BACKSLASH);
  const text = bytes.toString("latin1", from, to);
  const audio = decodeBase64(isEscaped ? text.replaceAll("\\/", "/") : text);
  const rest = bytes.toString("utf8", start, from) + bytes.toString("utf8", to, end);
  return { value: parseObject(rest), audio };
}

/** Where the string under the key begins; -1: there is none. */
function audioStart(
  bytes: Buffer,
  { start, end }: { readonly start: number; readonly end: number },
  key: Buffer,
): number {
  for (let at = bytes.indexOf(key, start); at >= 0 && at < end; at = bytes.indexOf(key, at + 1)) {
    let behind = skipSpaces(bytes, at + key.length);
    if (bytes[behind] !== COLON) continue;
    behind = skipSpaces(bytes, behind + 1);
    if (bytes[behind] === QUOTE && behind < end) return behind + 1;
  }
  return -1;
}

function skipSpaces(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === SPACE) at += 1;
  return at;
}

function decodeBase64(text: string): Buffer {
  if (text === "") return NO_AUDIO;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const digits = text.length - padding;
  const audio = Buffer.from(text, "base64");
  // Buffer.from skips what is not base64, which shows in the length (one digit left over encodes nothing).
  if (digits % 4 === 1 || audio.length !== Math.floor((digits * 3) / 4))
    throw broken("its audio is not base64");
  return audio;
}

/** Throws upstream_protocol. */
export function parseObject(json: string): JsonObject {
  const value = parseOrUndefined(json);
  if (isObject(value)) return value;
  throw broken("it is not one JSON object");
}

export function parseOrUndefined(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** NaN where it is no number. */
export function numberOf(value: unknown): number {
  return typeof value === "number" ? value : Number.NaN;
}

/** Throws upstream_protocol. */
export function broken(what: string): GatewayError {
  return new GatewayError("upstream_protocol", `The upstream sent a record that can't be read: ${what}`);
}

export function truncated(what: string): GatewayError {
  return new GatewayError(
    "upstream_truncated",
    `The upstream ended the speech early: ${what} (ask again; its log may say why)`,
  );
}
