/**
 * jambonz's interface for custom speech vendors: jambonz is the client, and what it sends is spoken. A POST for each
 * text, or a WebSocket for a call. https://docs.jambonz.org/guides/features/custom-tts-providers
 */
import { GatewayError } from "../../errors.ts";
import { protocolError, readFields } from "./fields.ts";

/** How an answer over HTTP sounds. `sampleRate` in Hz. */
export type JambonzAudio =
  | { readonly kind: "mp3" }
  | { readonly kind: "l16" | "wav"; readonly sampleRate: number };

interface JambonzTtsRequest {
  /** Name or id, 1 to 512 characters. */
  readonly voice: string;
  /** As jambonz has it, `en-US`; "" = not said. */
  readonly language: string;
  /** What is to be spoken; SSML is reduced to what the upstream understands. */
  readonly text: string;
}

/** What a socket says. What is not known is "other": jambonz may learn more words. */
export type JambonzTtsMessage =
  | { readonly type: "stream"; readonly text: string }
  | { readonly type: "flush" | "stop" | "clear" | "keepalive" | "other" };

export interface JambonzTtsAddress {
  readonly voice: string;
  readonly language: string;
  /** Hz, one that the upstream has: jambonz converts from it. */
  readonly sampleRate: number;
}

/** The rates that jambonz takes over HTTP. */
const HTTP_RATES: readonly number[] = [8000, 16_000, 24_000, 32_000, 48_000];
/** Those of the upstream's PCM, ascending. */
const PCM_RATES = [8000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000] as const;
const DEFAULT_RATE = 16_000;
const MAX_NAME_CHARS = 512;
/** No model takes less. */
const MAX_TEXT_CHARS = 5000;
/** SSML with its tags and entities, UTF-16 code units: what is longer is not looked at. */
const MAX_SSML_CHARS = 4 * MAX_TEXT_CHARS;

/**
 * Throws GatewayError "carrier_protocol" for JSON that is not jambonz's, "text_too_long" over 5000 characters (UTF-16
 * code units, of what is spoken) and for SSML over 20,000.
 */
export function parseJambonzTts(json: string): JambonzTtsRequest {
  const fields = readFields("jambonz", json);
  const type = fields.optionalText("type") ?? "text";
  if (type !== "text" && type !== "ssml") throw protocolError("jambonz", "type is neither text nor ssml");
  const given = fields.text("text");
  if (type === "ssml") checkLength(given, MAX_SSML_CHARS);
  const text = type === "ssml" ? speakableSsml(given) : given;
  checkLength(text, MAX_TEXT_CHARS);
  return { voice: fields.id("voice"), language: fields.optionalId("language") ?? "", text };
}

function checkLength({ length }: string, maxChars: number): void {
  if (length <= maxChars) return;
  throw new GatewayError(
    "text_too_long",
    `Field 'text' is too long: ${length} characters, expected at most ${maxChars}`,
    { field: "text" },
  );
}

/**
 * The first of the header that jambonz knows; MP3 where there is none. Throws GatewayError "unknown_format" for L16 at a
 * rate that jambonz does not take.
 */
export function jambonzAudio(accept: string): JambonzAudio {
  for (const range of accept.toLowerCase().split(",")) {
    const [name = "", ...parameters] = range.split(";").map((part) => part.trim());
    if (name === "audio/mpeg" || name === "audio/mp3") return { kind: "mp3" };
    if (name !== "audio/l16" && !/^audio\/(?:x-)?wav$/.test(name)) continue;
    const rate = parameters.find((parameter) => parameter.startsWith("rate="))?.slice(5);
    const sampleRate = rate === undefined ? DEFAULT_RATE : Number(rate);
    if (HTTP_RATES.includes(sampleRate)) return { kind: name === "audio/l16" ? "l16" : "wav", sampleRate };
    throw new GatewayError(
      "unknown_format",
      `Header 'accept' asks for a rate that is not known here, expected one of ${HTTP_RATES.join(", ")}`,
      { field: "accept" },
    );
  }
  return { kind: "mp3" };
}

/** `query`: of the URL, still encoded. Throws GatewayError "invalid_field". */
export function parseJambonzAddress(query: string): JambonzTtsAddress {
  const asked = new URLSearchParams(query);
  const voice = asked.get("voice") ?? "";
  const language = asked.get("language") ?? "";
  const rate = Number(asked.get("sampleRate") || DEFAULT_RATE);
  if (voice === "" || voice.length > MAX_NAME_CHARS) {
    throw invalid("voice", `expected 1 to ${MAX_NAME_CHARS} characters in the URL`);
  }
  if (language.length > MAX_NAME_CHARS) throw invalid("language", "it is too long");
  if (!Number.isInteger(rate) || rate <= 0) throw invalid("sampleRate", "expected a rate in Hz");
  return { voice, language, sampleRate: PCM_RATES.find((one) => one >= rate) ?? 48_000 };
}

/** Throws GatewayError "carrier_protocol". */
export function parseJambonzMessage(json: string): JambonzTtsMessage {
  const fields = readFields("jambonz", json);
  const type = fields.text("type");
  if (type === "stream") return { type, text: fields.text("text") };
  if (type === "flush" || type === "stop" || type === "clear" || type === "keepalive") return { type };
  return { type: "other" };
}

/** Nothing is spoken before it: jambonz takes the vendor as connected from here on. `sampleRate`: Hz. */
export function jambonzConnect(sampleRate: number): string {
  return JSON.stringify({ type: "connect", data: { sample_rate: sampleRate, base64_encoding: false } });
}

export function jambonzError(error: GatewayError): string {
  return JSON.stringify({ type: "error", error: `${error.code}: ${error.message}` });
}

/** As the upstream names it: `en-US` is `en`. undefined where none is said, or a model that is not known to take one. */
export function upstreamLanguage(language: string, modelId: string): string | undefined {
  if (!/^eleven_(?:(?:flash|turbo)_v2_5|v[3-9])/.test(modelId)) return undefined;
  return /^[a-z]{2,3}(?=$|[-_])/i.exec(language.trim())?.[0].toLowerCase();
}

/** Whether a sentence ends here, as jambonz cuts them. */
export function endsSentence(text: string): boolean {
  const said = text.trimEnd();
  return text.includes("\n", said.length) || /[.!?؟۔。！？…]["'”’»)\]]*$/u.test(said);
}

/**
 * What stands between a text and the next one: jambonz cuts between words and takes the blank away. Nothing where there
 * is a blank, and in scripts without blanks between words.
 */
export function jointOf(before: string, next: string): "" | " " {
  if (before === "" || /\s$/.test(before) || !/^[\p{L}\p{N}]/u.test(next)) return "";
  const isUnspaced = UNSPACED.test(before.slice(-2)) || UNSPACED.test(next.slice(0, 2));
  return isUnspaced ? "" : " ";
}

const UNSPACED =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}。！？、]/u;

/** The tags that the upstream speaks by. */
const KEPT_TAG = /^<\/?(?:break|phoneme)\b/i;
/** Elements that end a stretch of speech: words on either side are two. */
const BLOCK_TAG = /^<\/?(?:speak|p|s|voice|audio)\b/i;
const TAG = /<\/?[a-z][^<>]*>/iy;
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** SSML without what the upstream would read aloud: other tags and the document around it go, entities are read. */
export function speakableSsml(ssml: string): string {
  return replaceMarkup(ssml, (tag) => (KEPT_TAG.test(tag) ? tag : BLOCK_TAG.test(tag) ? " " : ""))
    .replace(/&(?:#(x?)([0-9a-f]{1,6})|(amp|lt|gt|quot|apos));/gi, readEntity)
    .trim();
}

/** Replaces tags, comments and processing instructions. Each of them is looked for once: time is linear in the text. */
function replaceMarkup(text: string, replace: (markup: string) => string): string {
  const bracket = finder(text, ">");
  const commentEnd = finder(text, "-->");
  let replaced = "";
  let from = 0;
  for (let at = text.indexOf("<"); at >= 0; at = text.indexOf("<", Math.max(at + 1, from))) {
    const end = markupEnd(text, at, { bracket, commentEnd });
    if (end < 0) continue;
    replaced += text.slice(from, at) + replace(text.slice(at, end));
    from = end;
  }
  return replaced + text.slice(from);
}

/** Where the markup ends that begins at `at`; -1 = none begins there. */
function markupEnd(text: string, at: number, next: Record<"bracket" | "commentEnd", Finder>): number {
  if (text[at + 1] === "?") {
    const bracket = next.bracket(at + 2);
    return bracket > at + 2 && text[bracket - 1] === "?" ? bracket + 1 : -1;
  }
  if (text.startsWith("!--", at + 1)) {
    const end = next.commentEnd(at + 4);
    return end < 0 ? -1 : end + 3;
  }
  TAG.lastIndex = at;
  return TAG.test(text) ? TAG.lastIndex : -1;
}

/** The first place at or behind `from`; -1 = none. Calls come with `from` rising. */
type Finder = (from: number) => number;

function finder(text: string, wanted: string): Finder {
  let found = 0;
  let isFresh = false;
  return (from) => {
    if (!isFresh || (found >= 0 && found < from)) found = text.indexOf(wanted, from);
    isFresh = true;
    return found;
  };
}

function readEntity(
  whole: string,
  hex: string | undefined,
  digits: string | undefined,
  name: string,
): string {
  if (name !== undefined) return ENTITIES[name.toLowerCase()] ?? whole;
  const code = Number.parseInt(digits ?? "", hex === "" ? 10 : 16);
  const isCharacter = code >= 0x20 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return isCharacter ? String.fromCodePoint(code) : whole;
}

function invalid(field: string, reason: string): GatewayError {
  return new GatewayError("invalid_field", `Parameter '${field}' is not valid: ${reason}`, { field });
}
