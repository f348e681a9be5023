/**
 * Every message of a client to the gateway: one schema per command. The types of the program, the reader of messages and
 * the AsyncAPI document all come from here. Unknown fields are reported, not refused, so that a newer client can talk to
 * an older gateway; a field of the wrong type is refused with its name. docs/protocol.md explains the commands.
 */
import { z } from "zod";
import { GatewayError } from "../errors.ts";
import { TRACEPARENT } from "../kit/traceparent.ts";
import { parseJson, reasonOf } from "./read-json.ts";
import { vendorOptions } from "./vendor-options.ts";
import {
  BANDS,
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
  SOUND_FORMATS,
} from "./vocabulary.ts";

/** How loud speech can be made: behind -10 hardly anything but the limiter is heard. */
export const MIN_LOUDNESS_LUFS = -40;
export const MAX_LOUDNESS_LUFS = -10;
/** Replacement rules of one utterance, and the length of each side. */
const MAX_REPLACEMENTS = 256;
const MAX_REPLACEMENT_CHARS = 200;
/** Longest sound that the gateway makes. */
const MAX_GENERATED_MS = 600_000;
/** What a text may hold, as text/check.ts has it, of which this layer takes nothing. */
const SPEAKABLE = /^(?:[\t\n\r]|[^\p{Cc}\p{Cs}])*$/u;

const id = z
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
const utterance_id = id.exactOptional();
const model_id = z.string().min(1).max(128).exactOptional();
const language_code = z.string().min(2).max(16).exactOptional();
const seed = z.number().int().min(0).max(4_294_967_295).exactOptional();
const apply_text_normalization = z.enum(["auto", "on", "off"]).exactOptional();
const loudness_lufs = z
  .union([z.literal(0), z.number().min(MIN_LOUDNESS_LUFS).max(MAX_LOUDNESS_LUFS)], {
    error: `expected ${MIN_LOUDNESS_LUFS} to ${MAX_LOUDNESS_LUFS}, or 0 for speech as it comes`,
  })
  .exactOptional()
  .describe("How loud it is made, EBU R128; 0: as it comes. Default: the gateway's");
const enable_logging = z.boolean().exactOptional();

const vendor_options = vendorOptions
  .exactOptional()
  .describe('Goes to the service as it is, under the name of its upstream, as {"elevenlabs": {}}');

const voiceOptions = {
  voice_id: voiceId.exactOptional(),
  model_id,
  language_code,
  voice_settings: z
    .object({
      stability: unit.exactOptional(),
      similarity_boost: unit.exactOptional(),
      style: unit.exactOptional(),
      use_speaker_boost: z.boolean().exactOptional(),
      speed: z.number().min(0.25).max(4).exactOptional(),
    })
    .exactOptional(),
  seed,
  apply_text_normalization,
  enable_logging,
  vendor_options,
};

/** Said in the middle of texts, which are refused with such characters of their own. */
const replacementSide = z
  .string()
  .max(MAX_REPLACEMENT_CHARS)
  .regex(SPEAKABLE, "it has half a surrogate pair or a control character, expected whole characters");
/** Says `to` where the text has `from`: pronunciations, brand names. */
export const replacements = z
  .array(
    z.object({
      from: replacementSide.min(1),
      to: replacementSide,
      ignore_case: z.boolean().exactOptional().describe("Default false"),
      whole_word: z
        .boolean()
        .exactOptional()
        .describe("`from` has to stand between characters that are no letters or digits; default true"),
    }),
  )
  .max(MAX_REPLACEMENTS)
  .readonly();
const fade = z.number().min(0).max(10_000).exactOptional();
/** How a sound under speech is mixed. */
const underOptions = {
  gain_db: z.number().min(-60).max(20).exactOptional().describe("Its gain under speech and alone; default 0"),
  duck_db: z
    .number()
    .min(0)
    .max(60)
    .exactOptional()
    .describe("So much softer while something is spoken; default 12"),
  fade_in_ms: fade.describe("Default 20"),
  fade_out_ms: fade.describe("At its end and on `stop`; default 20"),
  loop: z
    .union([z.boolean(), z.literal("speech")], { error: 'expected true, false or "speech"' })
    .exactOptional()
    .describe("true: again until it is stopped; speech: until nothing is queued any more; default false"),
};
const UNDER_NAMES = Object.keys(underOptions) as (keyof typeof underOptions)[];
/** What is played as it is. */
const sound = {
  audio: z.string().min(1).exactOptional().describe("Base64"),
  format: z
    .enum(["wav", ...SOUND_FORMATS])
    .exactOptional()
    .describe("Of `audio`; default wav"),
};
const hertz = z.number().min(20).max(20_000);
const dbfs = z.number().min(-90).max(0).exactOptional();
const generatedOptions = {
  ms: z.number().int().min(20).max(MAX_GENERATED_MS).describe("How long it lasts, at most"),
  until_speech: z
    .boolean()
    .exactOptional()
    .describe("It ends when what stands behind it in the queue has come; default false"),
};
/** What the gateway makes itself, in place of `audio`. */
const generated = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("tone"),
    hertz: z
      .union([hertz, z.array(hertz).min(1).max(2).readonly()], {
        error: "expected a frequency, or a list of one or two",
      })
      .describe("One frequency, or two at once"),
    on_ms: z
      .number()
      .int()
      .min(20)
      .max(60_000)
      .exactOptional()
      .describe("Heard for so long, then silent for off_ms, in turns"),
    off_ms: z.number().int().min(20).max(60_000).exactOptional(),
    dbfs: dbfs.describe("Its power; 0: of a sine of full scale; default -20"),
    ...generatedOptions,
  }),
  z.object({
    kind: z.literal("ring"),
    dbfs: dbfs.describe("Default -20"),
    ...generatedOptions,
  }),
  z.object({
    kind: z.literal("noise"),
    dbfs: dbfs.describe("Default -60"),
    ...generatedOptions,
  }),
]);
/** How a text is made ready for speaking. Without them the connection's own (`configure`), else the gateway's. */
const textOptions = {
  clean: z.array(z.enum(CLEANINGS)).readonly().exactOptional(),
  replacements: replacements.exactOptional(),
};
/** Where in the queue an utterance goes. */
const queueOptions = {
  priority: z
    .number()
    .int()
    .min(-100)
    .max(100)
    .exactOptional()
    .describe("Before those of a lower priority that have not begun; default 0"),
  replace: z
    .enum(REPLACES)
    .exactOptional()
    .describe("queued: cancels what has not begun; all: interrupts what speaks as well"),
};
/** In whose trace an utterance stands. */
const traced = {
  traceparent: z
    .string()
    .max(512)
    .regex(TRACEPARENT, "expected a traceparent of W3C Trace Context, 00-<32 hex>-<16 hex>-<2 hex>")
    .exactOptional()
    .describe("Of the client's span, as W3C Trace Context has it"),
};
const speech = {
  text: z.string(),
  utterance_id,
  ...voiceOptions,
  loudness_lufs,
  ...textOptions,
  ...queueOptions,
  ...traced,
};

const command = <T extends string, S extends z.core.$ZodLooseShape>(type: T, description: string, shape: S) =>
  z.object({ type: z.literal(type), ...shape }).meta({ description });

/** Command type -> its schema. */
export const COMMANDS = {
  speak: command("speak", "Says a whole text", speech),
  text: command("text", "Tokens as they come; the first one of an utterance may carry the options", {
    ...speech,
    offset: z
      .number()
      .int()
      .min(0)
      .exactOptional()
      .describe("Where it begins in the utterance's text: what came before is skipped"),
  }),
  flush: command("flush", "Speaks what has come of the text so far", { utterance_id }),
  end: command("end", "No more text comes for the utterance", { utterance_id }),
  dialogue: command("dialogue", "Says lines of several voices", {
    inputs: z
      .array(
        z.object({
          text: z.string(),
          voice_id: voiceId,
          speaker: speaker.exactOptional().describe("The name that captions have for who says it"),
        }),
      )
      .min(1)
      .readonly(),
    utterance_id,
    model_id,
    language_code,
    settings: z.object({ stability: unit.exactOptional() }).exactOptional(),
    seed,
    apply_text_normalization,
    enable_logging,
    vendor_options,
    loudness_lufs,
    ...queueOptions,
    ...traced,
  }),
  play: command("play", "Plays a sound, or what was prepared, in the queue", {
    audio: sound.audio,
    format: sound.format,
    prepared_id: id.exactOptional().describe("What `prepare` has made, in place of `audio`"),
    sound: generated.exactOptional().describe("A tone, a ring or noise, in place of `audio`"),
    utterance_id,
    ...queueOptions,
    ...traced,
    under: z.boolean().exactOptional().describe("Under speech and not in the queue; default false"),
    ...underOptions,
  })
    .refine(({ under, ...play }) => under === true || UNDER_NAMES.every((name) => play[name] === undefined), {
      path: ["under"],
      message: `expected true, as ${UNDER_NAMES.join(", ")} are of sounds under speech`,
    })
    .refine(
      ({ under, priority, replace, traceparent }) =>
        under !== true || (priority ?? replace ?? traceparent) === undefined,
      {
        path: ["under"],
        message:
          "expected no priority, replace or traceparent: what is played under speech is not in the queue",
      },
    )
    .refine(({ under, sound }) => under !== true || sound?.until_speech !== true, {
      path: ["sound", "until_speech"],
      message: "expected none under speech",
    })
    .refine(
      (play) => [play.audio, play.prepared_id, play.sound].filter((what) => what !== undefined).length === 1,
      {
        path: ["audio"],
        message: "expected audio, prepared_id or sound, one of the three",
      },
    )
    .refine(
      ({ sound }) => sound?.kind !== "tone" || (sound.on_ms === undefined) === (sound.off_ms === undefined),
      {
        path: ["sound", "off_ms"],
        message: "expected on_ms and off_ms, both or none",
      },
    ),
  prepare: command("prepare", "Synthesizes a text, or keeps a sound, to be played later and at once", {
    prepared_id: id.exactOptional().describe("Replaces what has it; default: a new one"),
    text: z.string().exactOptional(),
    ...voiceOptions,
    loudness_lufs,
    ...textOptions,
    audio: sound.audio,
    format: sound.format,
  }).refine((prepare) => (prepare.audio === undefined) !== (prepare.text === undefined), {
    path: ["text"],
    message: "expected text or audio, one of the two",
  }),
  interrupt: command(
    "interrupt",
    "Cuts one utterance; without an id the speaking one and all that are queued",
    {
      utterance_id,
      keep_ms: z
        .number()
        .min(0)
        .max(10_000)
        .exactOptional()
        .describe("Audio that is still played before the cut"),
    },
  ),
  stop: command("stop", "Ends a sound under speech; without an id all of them", {
    utterance_id,
    fade_ms: fade.describe("It falls to nothing in so long; default: its fade_out_ms"),
  }),
  cancel: command("cancel", "Takes what has not begun out of the queue: one utterance, or all of them", {
    utterance_id,
  }),
  resume: command("resume", "Goes on with an interrupted utterance (the latest, where none is named)", {
    utterance_id,
  }),
  mark: command("mark", "Is reported when all before it has been played", {
    name: z.string().min(1).max(256),
  }),
  played: command("played", "This listener has played the timeline up to at_ms, or up to a mark", {
    seq: z.number().int().min(0).exactOptional(),
    at_ms: z.number().min(0).exactOptional(),
    mark: z.string().min(1).max(256).exactOptional(),
  }).refine((played) => (played.at_ms === undefined) !== (played.mark === undefined), {
    path: ["at_ms"],
    message: "expected at_ms or mark, one of the two",
  }),
  configure: command(
    "configure",
    "Changes the settings of this connection, and how its later texts are cleaned",
    {
      format: z.enum(LISTENER_FORMATS).exactOptional(),
      frame_ms: z.number().int().exactOptional(),
      framing: z.enum(FRAMINGS).exactOptional(),
      band: z.enum(BANDS).exactOptional(),
      pace: z.enum(PACES).exactOptional(),
      lead_ms: z.number().min(0).exactOptional(),
      policy: z.enum(POLICIES).exactOptional(),
      events: z.array(z.enum(EVENT_KINDS)).readonly().exactOptional(),
      offsets: z.enum(OFFSET_UNITS).exactOptional(),
      cue_profile: z.enum(CUE_PROFILES).exactOptional(),
      cue_mode: z.enum(CUE_MODES).exactOptional(),
      ...textOptions,
    },
  ),
  ping: command("ping", "Asks for a `pong`", {
    id: z.union([z.string().max(128), z.number()]).exactOptional(),
  }),
  refresh: command("refresh", "Goes on with a new token, of the same subject and with no wider grants", {
    token: z.string().min(1).max(4096),
  }),
  close: command("close", "Leaves the session", {}),
  hangup: command("hangup", "Ends a phone call of the session: this one, or all", {
    call_id: z.string().min(1).max(256).exactOptional(),
  }),
} as const;

type CommandOf<T extends keyof typeof COMMANDS> = Readonly<z.infer<(typeof COMMANDS)[T]>>;
/** Any command. */
export type Command = { [T in keyof typeof COMMANDS]: CommandOf<T> }[keyof typeof COMMANDS];
export type SpeakCommand = CommandOf<"speak">;
export type TextCommand = CommandOf<"text">;
export type DialogueCommand = CommandOf<"dialogue">;
export type PlayCommand = CommandOf<"play">;
/** What `play` has in place of audio. */
export type SoundOptions = NonNullable<PlayCommand["sound"]>;
export type PrepareCommand = CommandOf<"prepare">;
export type InterruptCommand = CommandOf<"interrupt">;
export type StopCommand = CommandOf<"stop">;
export type CancelCommand = CommandOf<"cancel">;
export type ResumeCommand = CommandOf<"resume">;
export type PlayedCommand = CommandOf<"played">;
export type RefreshCommand = CommandOf<"refresh">;
export type ConfigureCommand = CommandOf<"configure">;

type OptionsOf<S extends z.core.$ZodLooseShape> = Readonly<z.infer<z.ZodObject<S>>>;
export type VoiceOptions = OptionsOf<typeof voiceOptions>;
export type TextOptions = OptionsOf<typeof textOptions>;
export type QueueOptions = OptionsOf<typeof queueOptions>;
export type Replacement = Readonly<z.infer<typeof replacements>[number]>;

const TYPE_NAMES = Object.keys(COMMANDS).join(", ");

interface ParsedCommand {
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
  return { command: result.data, ignored };
}

function parseObject(json: string): Record<string, unknown> {
  const value = parseJson(json, "Message");
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
