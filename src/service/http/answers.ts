/** What endpoints answer with, for the OpenAPI document: JSON, audio, nothing, and the errors that all have in common. */
import { type JsonSchema, listOf, named, nullable, record, STRING } from "./json-schema.ts";
import { audioTypeOf } from "./output-format.ts";

export interface Answer {
  readonly description: string;
  /** By content type. */
  readonly content?: Readonly<Record<string, JsonSchema>>;
  readonly headers?: Readonly<Record<string, JsonSchema>>;
}

/** Error statuses that only some endpoints have; 400, 401, 422 and 500 come by themselves. */
export type ErrorStatus = 403 | 404 | 429 | 503;

/** 32 hex characters; equals the `request_id` of an error. */
const TRACE_ID: JsonSchema = { ...STRING, pattern: "^[0-9a-f]{32}$" };
export const TRACE_HEADERS: Readonly<Record<string, JsonSchema>> = { "x-trace-id": TRACE_ID };
const COUNT: JsonSchema = { ...STRING, pattern: "^\\d+$" };
/** Headers of all answers that count for the plan's concurrency. */
export const CONCURRENCY_HEADERS: Readonly<Record<string, JsonSchema>> = {
  "current-concurrent-requests": COUNT,
  "maximum-concurrent-requests": COUNT,
};
/** Headers of a sound, and of speech. Seen on live answers. */
export const SOUND_HEADERS: Readonly<Record<string, JsonSchema>> = {
  ...CONCURRENCY_HEADERS,
  "request-id": STRING,
  "character-cost": { ...COUNT, description: "Characters billed." },
  "x-region": STRING,
};
export const SPEECH_HEADERS: Readonly<Record<string, JsonSchema>> = {
  ...SOUND_HEADERS,
  "history-item-id": { ...STRING, description: "Absent with enable_logging=false." },
  "tts-latency-ms": COUNT,
  "x-voicewire-behind-ms": {
    ...COUNT,
    description: "How late streams are with what is played, as a stream says; absent of what is sent whole.",
  },
  "x-voicewire-timing": {
    ...STRING,
    enum: ["estimated"],
    description: "The times were found in the audio: those of a voice of a model; absent of exact ones.",
  },
  "x-left-out-tags": {
    ...STRING,
    description:
      "Tags that the voice can do nothing of, audio tags and phonemes too; each cut to 80 characters; absent without.",
  },
};

export function json(schema: JsonSchema, description = "Done."): Answer {
  return { description, content: { "application/json": schema } };
}

/** Lines of JSON, each an object of the schema and each ended by a newline. */
export function jsonLines(schema: JsonSchema, description: string): Answer {
  return { description, content: { "application/json": { ...schema, "x-lines": true } } };
}

/** Bytes, under one of these content types. */
export function bytes(contentTypes: readonly string[], description: string): Answer {
  const binary = { type: "string", format: "binary" };
  return { description, content: Object.fromEntries(contentTypes.map((type) => [type, binary])) };
}

/** The audio of any of these output formats. */
export function audioOf(formats: readonly string[], description: string): Answer {
  return bytes([...new Set(formats.map(audioTypeOf))], description);
}

export const STATUS_OK = json(named("StatusOk", record({ status: { ...STRING, const: "ok" } })));

const REFUSED = named(
  "Refused",
  record({
    detail: {
      anyOf: [
        record(
          {
            type: STRING,
            code: STRING,
            message: STRING,
            status: { ...STRING, description: "The older status string; the code where none is known." },
            request_id: TRACE_ID,
            param: { ...STRING, description: "The offending field." },
          },
          ["param"],
        ),
        STRING,
      ],
    },
  }),
);

const INVALID = named(
  "HTTPValidationError",
  record({
    detail: listOf(
      named(
        "ValidationError",
        record(
          {
            type: STRING,
            loc: listOf({ anyOf: [STRING, { type: "integer" }] }),
            msg: STRING,
            input: { description: "What was sent." },
            ctx: { type: "object" },
          },
          ["ctx"],
        ),
      ),
    ),
  }),
);

/** The error of each status, as `components/responses` names it. */
export const ERROR_ANSWERS: Readonly<Record<number, { readonly name: string; readonly answer: Answer }>> = {
  400: { name: "BadRequest", answer: json(REFUSED, "What is asked for can't be done.") },
  401: { name: "Unauthorized", answer: json(REFUSED, "The key is missing or wrong.") },
  403: { name: "Forbidden", answer: json(REFUSED, "Not for this plan, or not for anybody.") },
  404: { name: "NotFound", answer: json(REFUSED, "What is named is not there.") },
  422: {
    name: "Invalid",
    answer: json(INVALID, "The request is not of the shape; looked at before the key."),
  },
  429: { name: "TooMany", answer: json(REFUSED, "Too much is under way.") },
  500: { name: "Failed", answer: json(REFUSED, "A fault of the service's own.") },
  503: { name: "Unavailable", answer: json(REFUSED, "The service is shutting down, or its disk is full.") },
};

/** POST /v1/history/download refuses in a shape of its own, but for what no endpoint can read. */
export const DOWNLOAD_REFUSED = json(
  { anyOf: [record({ error: STRING, message: STRING }), REFUSED] },
  "What is asked for can't be done.",
);

const CHARACTERS = listOf(STRING);
const TIMES = listOf({ type: ["number", "null"] });
/** Three lists of one length; times in seconds from the start of the response. */
export const ALIGNMENT = named(
  "Alignment",
  record({
    characters: CHARACTERS,
    character_start_times_seconds: TIMES,
    character_end_times_seconds: TIMES,
  }),
);
export const NULLABLE_ALIGNMENT = nullable(ALIGNMENT);
