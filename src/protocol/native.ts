/**
 * The native protocol on the wire: JSON text in, a checked Command out; an Event in, UTF-8 bytes out. Pure: no
 * socket here. Unknown fields of a command are reported, not refused, so that a newer client can talk to an older
 * gateway; a field of the wrong type is refused with its name.
 */
import { z } from "zod";
import { ERRORS, GatewayError } from "../errors.ts";
import type { Command } from "./commands.ts";
import type { ErrorBody, Event, Word } from "./events.ts";
import {
  CLEANINGS,
  CUE_MODES,
  CUE_PROFILES,
  EVENT_KINDS,
  FRAMINGS,
  LISTENER_FORMATS,
  OFFSET_UNITS,
  PACES,
  POLICIES,
  REPLACES,
} from "./vocabulary.ts";

/** Replacement rules of one utterance, and the length of each side. */
const MAX_REPLACEMENTS = 256;
const MAX_REPLACEMENT_CHARS = 200;
/** What a text may hold, as text/check.ts has it, of which this layer takes nothing. */
const SPEAKABLE = /^(?:[\t\n\r]|[^\p{Cc}\p{Cs}])*$/u;

const utteranceId = z
  .string()
  .regex(/^[\x21-\x7e]{1,128}$/, "expected 1 to 128 printable ASCII characters without spaces");
const voiceId = z.string().min(1).max(128);
/** A name that is shown in captions: one line. */
const speaker = z
  .string()
  .regex(
    /^[^\p{Cc}\u2028\u2029]{1,64}$/u,
    "expected 1 to 64 characters without line breaks or control characters",
  );
const unit = z.number().min(0).max(1);

const voiceOptions = {
  voice_id: voiceId.optional(),
  model_id: z.string().min(1).max(128).optional(),
  language_code: z.string().min(2).max(16).optional(),
  voice_settings: z
    .object({
      stability: unit.optional(),
      similarity_boost: unit.optional(),
      style: unit.optional(),
      use_speaker_boost: z.boolean().optional(),
      speed: z.number().min(0.25).max(4).optional(),
    })
    .optional(),
  seed: z.number().int().min(0).max(4_294_967_295).optional(),
  apply_text_normalization: z.enum(["auto", "on", "off"]).optional(),
  enable_logging: z.boolean().optional(),
};

/** Said in the middle of texts, which are refused with such characters of their own. */
const replacementSide = z
  .string()
  .max(MAX_REPLACEMENT_CHARS)
  .regex(SPEAKABLE, "it has half a surrogate pair or a control character, expected whole characters");
export const replacements = z
  .array(
    z.object({
      from: replacementSide.min(1),
      to: replacementSide,
      ignore_case: z.boolean().optional(),
      whole_word: z.boolean().optional(),
    }),
  )
  .max(MAX_REPLACEMENTS);
const textOptions = {
  clean: z.array(z.enum(CLEANINGS)).optional(),
  replacements: replacements.optional(),
};
const queueOptions = {
  priority: z.number().int().min(-100).max(100).optional(),
  replace: z.enum(REPLACES).optional(),
};

/** Command type -> its schema. */
export const COMMANDS = {
  speak: z.object({
    type: z.literal("speak"),
    text: z.string(),
    utterance_id: utteranceId.optional(),
    ...voiceOptions,
    ...textOptions,
    ...queueOptions,
  }),
  text: z.object({
    type: z.literal("text"),
    text: z.string(),
    utterance_id: utteranceId.optional(),
    ...voiceOptions,
    ...textOptions,
    ...queueOptions,
  }),
  flush: z.object({ type: z.literal("flush"), utterance_id: utteranceId.optional() }),
  end: z.object({ type: z.literal("end"), utterance_id: utteranceId.optional() }),
  dialogue: z.object({
    type: z.literal("dialogue"),
    inputs: z.array(z.object({ text: z.string(), voice_id: voiceId, speaker: speaker.optional() })).min(1),
    utterance_id: utteranceId.optional(),
    model_id: voiceOptions.model_id,
    language_code: voiceOptions.language_code,
    settings: z.object({ stability: unit.optional() }).optional(),
    seed: voiceOptions.seed,
    apply_text_normalization: voiceOptions.apply_text_normalization,
    enable_logging: voiceOptions.enable_logging,
    ...queueOptions,
  }),
  interrupt: z.object({
    type: z.literal("interrupt"),
    utterance_id: utteranceId.optional(),
    keep_ms: z.number().min(0).max(10_000).optional(),
  }),
  cancel: z.object({ type: z.literal("cancel"), utterance_id: utteranceId.optional() }),
  resume: z.object({ type: z.literal("resume"), utterance_id: utteranceId.optional() }),
  mark: z.object({ type: z.literal("mark"), name: z.string().min(1).max(256) }),
  played: z
    .object({
      type: z.literal("played"),
      seq: z.number().int().min(0).optional(),
      at_ms: z.number().min(0).optional(),
      mark: z.string().min(1).max(256).optional(),
    })
    .refine((played) => (played.at_ms === undefined) !== (played.mark === undefined), {
      path: ["at_ms"],
      message: "expected at_ms or mark, one of the two",
    }),
  configure: z.object({
    type: z.literal("configure"),
    format: z.enum(LISTENER_FORMATS).optional(),
    frame_ms: z.number().int().optional(),
    framing: z.enum(FRAMINGS).optional(),
    pace: z.enum(PACES).optional(),
    lead_ms: z.number().min(0).optional(),
    policy: z.enum(POLICIES).optional(),
    events: z.array(z.enum(EVENT_KINDS)).optional(),
    offsets: z.enum(OFFSET_UNITS).optional(),
    cue_profile: z.enum(CUE_PROFILES).optional(),
    cue_mode: z.enum(CUE_MODES).optional(),
    ...textOptions,
  }),
  ping: z.object({ type: z.literal("ping"), id: z.union([z.string().max(128), z.number()]).optional() }),
  close: z.object({ type: z.literal("close") }),
  hangup: z.object({ type: z.literal("hangup"), call_id: z.string().min(1).max(256).optional() }),
} as const;

const TYPE_NAMES = Object.keys(COMMANDS).join(", ");

export interface ParsedCommand {
  readonly command: Command;
  /** Fields that this version does not know, at the top level. */
  readonly ignored: readonly string[];
}

/** Reads one text message. Throws malformed_json, unknown_type, unknown_format, unknown_event, invalid_field. */
export function parseCommand(json: string): ParsedCommand {
  const value = parseObject(json);
  const type = value.type;
  if (typeof type !== "string" || !Object.hasOwn(COMMANDS, type)) {
    const got = typeof type === "string" ? JSON.stringify(type.slice(0, 40)) : typeof type;
    throw new GatewayError("unknown_type", `Message type is ${got}, expected one of ${TYPE_NAMES}`, {
      field: "type",
    });
  }
  const schema = COMMANDS[type as keyof typeof COMMANDS];
  const result = schema.safeParse(value);
  if (!result.success) throw fieldError(result.error.issues[0], type);
  const ignored = Object.keys(value).filter((key) => !Object.hasOwn(schema.shape, key));
  return { command: withoutUndefined(result.data) as Command, ignored };
}

function parseObject(json: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw new GatewayError("malformed_json", "Message is not JSON, expected one JSON object with a type", {
      cause,
    });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const got = Array.isArray(value) ? "an array" : value === null ? "null" : `a ${typeof value}`;
    throw new GatewayError("malformed_json", `Message is ${got}, expected one JSON object with a type`);
  }
  return value as Record<string, unknown>;
}

function fieldError(issue: z.core.$ZodIssue | undefined, type: string): GatewayError {
  const field = (issue?.path ?? []).join(".");
  const top = String(issue?.path[0] ?? "");
  const code =
    type === "configure" && top === "format"
      ? "unknown_format"
      : type === "configure" && top === "events"
        ? "unknown_event"
        : "invalid_field";
  return new GatewayError(code, `Field ${field} of ${type} is not valid: ${reasonOf(issue)}`, {
    field,
  });
}

function reasonOf(issue: z.core.$ZodIssue | undefined): string {
  const message = issue?.message ?? "unknown reason";
  const missing = /^Invalid input: expected (.+), received undefined$/.exec(message);
  return missing === null
    ? message.replace(/^Invalid input: /, "")
    : `it is missing, expected a ${missing[1]}`;
}

/** zod keeps optional keys that were given as undefined; JSON has none, so this only narrows the type. */
function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as T;
}

/** As it stands on the wire, in JSON. */
export function encodeEvent(event: Event): string {
  return JSON.stringify(event);
}

/** The same event with every offset into the client's text changed by `offset`. */
export function mapOffsets(event: Event, offset: (utf16: number) => number): Event {
  const ranged = <T extends { readonly start: number; readonly end: number }>(range: T): T => ({
    ...range,
    start: offset(range.start),
    end: offset(range.end),
  });
  const wordsOf = (words: readonly Word[]): Word[] => words.map(ranged);
  switch (event.type) {
    case "characters":
    case "segment":
      return ranged(event);
    case "words":
      return { ...event, words: wordsOf(event.words) };
    case "cue":
      return {
        ...ranged(event),
        lines: event.lines.map((line) => ({ ...line, words: wordsOf(line.words) })),
      };
    case "utterance.resumed":
      return { ...event, start: offset(event.start), kept_end: offset(event.kept_end) };
    case "utterance.done":
      return { ...event, segments: event.segments.map(ranged) };
    case "interrupted":
      return {
        ...event,
        heard: { ...event.heard, end: offset(event.heard.end) },
        ...(event.listeners === undefined
          ? {}
          : { listeners: event.listeners.map((heard) => ({ ...heard, end: offset(heard.end) })) }),
      };
    case "warning":
      return event.start === undefined ? event : { ...event, start: offset(event.start) };
    default:
      return event;
  }
}

/** An error as it stands in `error`, in `utterance.done` and in HTTP answers. */
export function errorBody(error: GatewayError): ErrorBody {
  return {
    code: error.code,
    message: error.message,
    retryable: ERRORS[error.code].isRetryable,
    ...(error.retryAfterMs === undefined ? {} : { retry_after_ms: error.retryAfterMs }),
    ...(error.field === undefined ? {} : { field: error.field }),
  };
}
