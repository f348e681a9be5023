/**
 * What a key or a token allows. Grants only add: what is not named is not allowed. A token stands below the key that signed
 * or minted it, so what it may do has to be allowed by both.
 */
import { z } from "zod";

export const ACTIONS = [
  "open",
  "speak",
  "listen",
  "interrupt",
  "captions",
  "call",
  "proxy",
  "admin",
] as const;
/** See docs/access.md, "What may be allowed". */
export type Action = (typeof ACTIONS)[number];

/** Parts of the vendor's interface: server/proxy/proxy-paths.ts has the paths of each. */
export const PROXY_PARTS = [
  "speech",
  "voices.read",
  "voices.write",
  "models.read",
  "history.read",
  "history.write",
  "dictionaries",
  "webhooks",
  "account",
] as const;
export type ProxyPart = (typeof PROXY_PARTS)[number];

/** Those that `proxy` allows where it names none. */
export const DEFAULT_PARTS: readonly string[] = ["speech", "voices.read", "models.read"];
/** A pattern of the setting `proxy-paths`, or the beginning of some with a star behind it. */
const PASSTHROUGH = /^passthrough:(?:GET|POST|PUT|PATCH|DELETE) \/v[12]\/[\w{}/-]*\*?$/;

const word = z.string().max(256).exactOptional();
const number = z.number().exactOptional();
/** Settings of a connection, as its query has them. */
const CONNECTION_SETTINGS = z.strictObject({
  role: word,
  format: word,
  frame_ms: number,
  framing: word,
  pace: word,
  lead_ms: number,
  policy: word,
  events: word,
  offsets: word,
  cue_profile: word,
  cue_mode: word,
  caller: word,
});
/** Options of texts, as commands have them. */
const SPEECH_SETTINGS = z.strictObject({
  voice_id: word,
  model_id: word,
  language_code: word,
  seed: z.number().int().min(0).max(4_294_967_295).exactOptional(),
  apply_text_normalization: z.enum(["auto", "on", "off"]).exactOptional(),
  enable_logging: z.boolean().exactOptional(),
});

const MAX_PATTERNS = 64;
/** A name, or the beginning of names with a star behind it: `support-*`. */
const pattern = z
  .string()
  .regex(/^[A-Za-z0-9_.:/-]{0,128}\*?$/, "expected a name, or the beginning of one followed by a star")
  .min(1);
const patterns = z.array(pattern).min(1).max(MAX_PATTERNS).readonly();
const positive = z.number().int().min(1).max(1_000_000_000);
/** Seconds since 1970 (RFC 7519 section 2, NumericDate). */
export const unixSeconds = z.number().min(0).max(253_402_300_799);

/** The claim `vw` of a token, and `grants` of a key. An unknown field refuses the whole of it. */
export const GRANTS = z.strictObject({
  sessions: patterns.describe("Sessions, exact or `prefix*`"),
  allow: z.array(z.enum(ACTIONS)).min(1).max(ACTIONS.length).readonly(),
  voices: patterns.exactOptional().describe("Voice ids, exact or `prefix*`; without it any"),
  models: patterns.exactOptional().describe("Model ids, exact or `prefix*`; without it any"),
  formats: patterns.exactOptional().describe("Formats of listeners, exact or `prefix*`; without it any"),
  connection: CONNECTION_SETTINGS.exactOptional().describe("Settings that win over the client's"),
  speech: SPEECH_SETTINGS.exactOptional().describe("Options of texts that win over the client's"),
  proxy: z
    .array(z.union([z.enum(PROXY_PARTS), z.string().max(256).regex(PASSTHROUGH)]))
    .max(MAX_PATTERNS)
    .readonly()
    .exactOptional()
    .describe("Parts of the vendor's interface; without it speech, voices.read and models.read"),
  characters: z
    .number()
    .int()
    .min(0)
    .max(1_000_000_000)
    .exactOptional()
    .describe("Characters that may be spoken in all"),
  seconds: positive.exactOptional().describe("How long a connection may last, seconds"),
  characters_per_minute: positive.exactOptional(),
  utterances_per_minute: positive.exactOptional(),
  connections: positive.exactOptional().describe("Connections at once"),
  priority_max: z.number().int().min(-100).max(100).exactOptional().describe("Highest priority; default 0"),
  once: z.boolean().exactOptional().describe("It opens one connection, then nothing"),
  session_until: unixSeconds
    .exactOptional()
    .describe("When its connections end, seconds since 1970; else when the token expires"),
  origin: z
    .array(z.string().min(1).max(300))
    .min(1)
    .max(MAX_PATTERNS)
    .readonly()
    .exactOptional()
    .describe("Origins of the web pages that may use it"),
  tenant: z
    .string()
    .regex(/^[\w.-]{1,64}$/)
    .exactOptional()
    .describe("Whose it is: limits count for all of a tenant"),
});
export type Grants = Readonly<z.infer<typeof GRANTS>>;
export type ConnectionSettings = Readonly<z.infer<typeof CONNECTION_SETTINGS>>;
export type SpeechSettings = Readonly<z.infer<typeof SPEECH_SETTINGS>>;

/** Everything but the operator's own. */
export const EVERY_SESSION: Grants = {
  sessions: ["*"],
  allow: ACTIONS.filter((action) => action !== "admin"),
};

/** The path of what is wrong first: the name of a field that is not known, too. */
export function wrongField({ issues: [issue] }: z.ZodError): PropertyKey[] {
  return [...(issue?.path ?? []), ...(issue?.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : [])];
}

/** Whether the list has this name. Without a list every name passes. */
export function isListed(list: readonly string[] | undefined, name: string): boolean {
  if (list === undefined) return true;
  return list.some((entry) => (entry.endsWith("*") ? name.startsWith(entry.slice(0, -1)) : entry === name));
}
