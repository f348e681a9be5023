/**
 * Every event that the gateway emits, as it goes to a client: one schema per event. The types of the program, the
 * AsyncAPI document and the checks of the tests all come from here; so does the mapping of offsets to the unit that a
 * client counts in. docs/protocol.md explains the events.
 */
import { z } from "zod";
import { ERRORS, type GatewayError } from "../errors.ts";
import {
  BANDS,
  CALLER_FORMATS,
  CUE_MODES,
  CUE_PROFILES,
  EVENT_KINDS,
  FRAMINGS,
  LISTENER_FORMATS,
  OFFSET_UNITS,
  PACES,
  POLICIES,
  PROTOCOL_VERSION,
  ROLES,
  TIMINGS,
  VISEME_KINDS,
} from "./vocabulary.ts";

const count = z.number().int().min(0);
const ms = z.number();
const list = <T extends z.ZodType>(item: T) => z.array(item).readonly();

const seq = count.describe(
  "Rises by one with each event of the session. Events for one connection repeat the latest number.",
);
const at_ms = ms.describe("Position of the event on the session's timeline");
const utterance_id = z.string().describe("The utterance");
const start = count.describe("Start offset in the client's text");
const end = count.describe("End offset in the client's text, exclusive");
const start_ms = ms.describe("Start on the timeline");
const end_ms = ms.describe("End on the timeline");
const bound_ms = ms
  .exactOptional()
  .describe("Of `estimated` times: the truth is hardly ever further away than this; absent: not known");
const timing = z.enum(TIMINGS).describe("How the times are known");
const listener_id = z.string().describe("The connection, as receipts and presence name it");

/** An object that may hold these fields and no other; what it emits is never changed. */
const exactly = <S extends z.core.$ZodLooseShape>(shape: S) => z.strictObject(shape).readonly();
const event = <T extends string, S extends z.core.$ZodLooseShape>(type: T, description: string, shape: S) =>
  z
    .strictObject({ type: z.literal(type), seq, at_ms, ...shape })
    .readonly()
    .meta({ title: type, description });

const audioDescription = exactly({
  codec: z.enum(["ulaw", "alaw", "opus", "pcm_s16le"]),
  sample_rate: count.describe("Samples per second"),
  channels: z.literal(1),
  frame_ms: ms,
  frame_samples: count.describe("Samples per frame, at sample_rate"),
  frame_bytes: count
    .nullable()
    .describe("Bytes per message without an RTP header; null where frames vary in size (Opus)"),
  start_ms: ms.describe("Position of the first frame that this connection will get"),
}).describe("How to read the binary messages that follow; null with format=none");

const listenerSettings = exactly({
  role: z.enum(ROLES),
  format: z.enum(LISTENER_FORMATS),
  frame_ms: ms.describe("10 to 100, a multiple of 10; Opus: 10, 20, 40 or 60"),
  framing: z.enum(FRAMINGS),
  band: z.enum(BANDS).describe("telephone: 300 to 3400 Hz of the speech"),
  pace: z.enum(PACES),
  lead_ms: ms.describe("How far ahead of playout frames are sent, 0 to 10000"),
  policy: z.enum(POLICIES),
  events: list(z.enum(EVENT_KINDS)),
  offsets: z.enum(OFFSET_UNITS),
  cue_profile: z.enum(CUE_PROFILES).exactOptional().describe("With events=cues only"),
  cue_mode: z.enum(CUE_MODES).exactOptional().describe("With events=cues only"),
  caller: z
    .enum(CALLER_FORMATS)
    .exactOptional()
    .describe("Format of the caller's voice, for a speaker that takes it"),
}).describe("The settings of this connection, defaults filled in");

const limits = exactly({
  message_bytes: count.describe("One message to the gateway"),
  inbox_bytes: count.describe("Messages of a connection that wait to be handled"),
  text_chars: count.describe("Text of one utterance, UTF-16 code units"),
  dialogue_inputs: count,
  queued_utterances: count,
  listeners: count,
  lead_ms: ms,
  outbox_bytes: count,
  marks: count,
  credit_chars: count.describe("Waiting text of one utterance at which its speaker gets `paused`"),
  keep_ms: ms.describe("Frames and events are kept this long for listeners that come back"),
  resume_ms: ms.describe("An interrupted utterance can be resumed from its own audio this long"),
  resume_reach_ms: ms.describe("How far behind the playhead a listener that acknowledges may be resumed"),
  speculate_ms: ms.describe("Speech that is asked of the upstream ahead of what is played"),
  connection_minutes: count.describe("Longest age of a connection; then it is closed with 1001; 0: no limit"),
  speculate_chars: count.describe("Text that is asked of the upstream ahead of what is played"),
}).describe("Every limit that a client can run into");

const errorFields = {
  code: z.string(),
  message: z.string(),
  retryable: z.boolean().describe("Whether the same request may succeed later"),
  retry_after_ms: ms.exactOptional(),
  field: z.string().exactOptional().describe("The field that is at fault"),
};
const errorShape = exactly(errorFields);

const waterfallFields = {
  text_ms: ms.describe("First character in, until the text was divided for speaking"),
  queued_ms: ms.describe("Until its request was given to the upstream client"),
  connected_ms: ms.describe("Until the request was written to a connected socket"),
  headers_ms: ms.describe("Until the response headers"),
  first_byte_ms: ms.describe("Until the first byte of audio"),
  first_sound_ms: ms.describe("Until the first sample that is not silence"),
  first_frame_ms: ms.describe("Until the first frame was handed to a socket"),
  total_ms: ms.describe("Sum of the stages"),
  leading_silence_ms: ms
    .nullable()
    .describe("Silence before the first sound; null where it was not looked at"),
};
const waterfall = exactly(waterfallFields);
const segmentWaterfall = exactly({ ...waterfallFields, start, end });

const credit = {
  utterance_id,
  pending_chars: count.describe("UTF-16 code units that wait to be spoken"),
  limit_chars: count,
};

/** A word in `words` and in `cue`: a field here is in both. */
const word = exactly({ text: z.string(), start_ms, end_ms, start, end });

const heardFields = {
  text: z.string().describe("The text that was played"),
  end: count.describe("Offset in the client's text up to which it was played"),
  ms: ms.describe("How much of the utterance was played"),
  source: z.enum(["mark", "ack", "estimate"]).describe("How that is known"),
  bound_ms: ms.describe("The truth is no further away than this"),
};

/** Event type -> its schema. */
export const EVENTS = {
  hello: event("hello", "The first message of a connection", {
    protocol: z.literal(PROTOCOL_VERSION),
    server: z.string().describe("Name and version of the gateway"),
    session: z.string(),
    epoch: z.string().describe("This life of the session"),
    former_epoch: z
      .string()
      .exactOptional()
      .describe("The life before it, at a node that has gone: speech goes on at the word that was not heard"),
    utterances: list(z.string())
      .exactOptional()
      .describe("With `former_epoch`: ids of the utterances that are not over"),
    listener_id,
    resume_token: z.string().describe("Comes back as this connection, as `resume` in the address"),
    texts: list(
      exactly({
        utterance_id,
        text_received: count.describe("Offset in the client's text up to which it has come"),
        ended: z.boolean().describe("Whether it is complete"),
      }),
    )
      .exactOptional()
      .describe("After `resume`: texts in tokens that are not over, of the speaker or its key"),
    resumed: z
      .boolean()
      .exactOptional()
      .describe("After `resume`: whether this connection gets what it missed"),
    settings: listenerSettings,
    audio: audioDescription.nullable(),
    limits,
    ignored: list(z.string()).describe("Query keys that the gateway does not know"),
  }),
  configured: event("configured", "Answer to `configure`", {
    settings: listenerSettings,
    audio: audioDescription.nullable(),
    ignored: list(z.string()),
  }),
  "utterance.queued": event("utterance.queued", "To the speaker: the utterance was accepted", {
    utterance_id,
    ahead: count.describe("Utterances before it that are queued or speaking"),
  }),
  "utterance.started": event("utterance.started", "The utterance begins", {
    utterance_id,
    voice_ids: list(z.string()),
    model_id: z.string().exactOptional(),
    start_ms,
    source_format: z.string().describe("The upstream's output_format"),
  }),
  "utterance.done": event("utterance.done", "The utterance has been played, or is over", {
    utterance_id,
    outcome: z.enum(["done", "interrupted", "cancelled", "failed"]),
    start_ms,
    end_ms: ms.describe("End of the speech itself"),
    pad_ms: ms.describe("Silence after end_ms that fills the last frame"),
    characters_billed: count
      .nullable()
      .describe("What the upstream said its requests cost; null where it did not say"),
    characters_spoken: count.describe(
      "Characters (UTF-16) sent upstream; those played where it was cut or failed",
    ),
    timing: z.enum([...TIMINGS, "none"]),
    latency: waterfall.nullable().describe("Stages of the first segment"),
    segments: list(segmentWaterfall).describe("Stages of each segment that was played, the first 64"),
    error: errorShape.exactOptional(),
  }),
  "sound.started": event("sound.started", "A sound under speech begins", { utterance_id, start_ms }),
  "sound.ended": event("sound.ended", "A sound under speech is over", {
    utterance_id,
    outcome: z
      .enum(["done", "stopped", "interrupted"])
      .describe("done: its end, or with loop=speech that of the speech"),
    start_ms,
    end_ms,
  }),
  prepared: event("prepared", "Answer to `prepare`: it can be played now", {
    prepared_id: z.string(),
    characters: count.describe("Of the text; 0 for a sound"),
    ms: ms.describe("Its audio, with what silence will be trimmed"),
    expires_in_ms: ms.describe("It is let go when it was not played for so long"),
  }),
  paused: event("paused", "To the speaker: send no more text of this utterance until `resumed`", credit),
  resumed: event("resumed", "To the speaker: there is room for more text", credit),
  "utterance.resumed": event("utterance.resumed", "An interrupted utterance goes on", {
    utterance_id,
    start,
    start_ms,
    kept_end: count.describe(
      "The text up to here is spoken from kept audio; the rest is asked of the upstream",
    ),
    timing,
  }),
  characters: event("characters", "Times of characters", {
    utterance_id,
    start,
    end,
    characters: list(z.string()),
    start_ms: list(ms),
    end_ms: list(ms),
    timing,
    bound_ms,
  }),
  normalized: event("normalized", "Times of characters after the upstream's text normalization", {
    utterance_id,
    characters: list(z.string()),
    start_ms: list(ms),
    end_ms: list(ms),
    timing,
  }),
  words: event("words", "Times of words", { utterance_id, words: list(word), timing, bound_ms }),
  viseme: event("viseme", "Mouth shapes as parallel arrays, in order, never overlapping", {
    utterance_id,
    set: z.enum(Object.keys(VISEME_KINDS) as [keyof typeof VISEME_KINDS]),
    visemes: list(z.union([z.string(), z.number()])),
    vtimes_ms: list(ms),
    vdurations_ms: list(ms),
    weights: list(z.record(z.string(), z.number()).readonly())
      .exactOptional()
      .describe("Blendshape weights of each shape, 0 to 1 (set arkit only)"),
    timing,
  }),
  segment: event("segment", "A stretch of one voice", {
    utterance_id,
    voice_id: z.string(),
    dialogue_input_index: count,
    start_ms,
    end_ms,
    start,
    end,
  }),
  cue: event("cue", "A caption", {
    utterance_id,
    start_ms,
    end_ms,
    start,
    end,
    voice_id: z.string().exactOptional(),
    speaker: z
      .string()
      .exactOptional()
      .describe("In a dialogue: the name that its input gave, or Speaker 1, Speaker 2"),
    lines: list(exactly({ text: z.string(), words: list(word) })).describe("One or two lines"),
  }),
  presence: event("presence", "Who is there, after somebody came or left", {
    joined: listener_id.exactOptional(),
    left: listener_id.exactOptional(),
    listeners: count,
    speakers: count,
  }),
  call: event("call", "A phone call joined the session, or left it", {
    state: z.enum(["started", "ended"]),
    call_id: z.string(),
    carrier: z.string(),
    listener_id,
    from: z.string().exactOptional(),
    to: z.string().exactOptional(),
    parameters: z.record(z.string(), z.string()).readonly(),
    caller_format: z
      .enum(LISTENER_FORMATS)
      .exclude(["none"])
      .nullable()
      .describe("Format of the caller's voice; null where none is sent"),
    reason: z.string().exactOptional().describe("Of `ended`"),
  }),
  dtmf: event("dtmf", "The caller pressed a key", {
    call_id: z.string(),
    digit: z.string().describe("One of 0-9, *, #, A-D"),
    duration_ms: ms.exactOptional(),
  }),
  mark: event("mark", "A mark has been played", { name: z.string(), source: z.enum(["estimate", "ack"]) }),
  interrupted: event("interrupted", "The receipt of an interruption", {
    utterance_id,
    heard: exactly(heardFields).describe("Of the listener that has played least, where they differ"),
    unheard_text: z.string(),
    listeners: list(exactly({ ...heardFields, listener_id }))
      .exactOptional()
      .describe("Each listener's own receipt, where they differ; at most 16"),
    resumable: z.boolean(),
    next_ms: ms.nullable().describe("Position of the next audio frame; null where no audio was cut"),
  }),
  gap: event("gap", "What this connection missed", {
    frames: count,
    ms,
    events: count.exactOptional().describe("Missed events that are gone"),
  }),
  pong: event("pong", "Answer to `ping`", { id: z.union([z.string(), z.number()]).exactOptional() }),
  error: event("error", "Something was refused or failed", {
    ...errorFields,
    utterance_id: utterance_id.exactOptional(),
    prepared_id: z.string().exactOptional().describe("Of the `prepare` that failed"),
    closing: z.literal(true).exactOptional().describe("The connection is closed right behind it"),
  }),
  warning: event("warning", "Something is not as you may expect; nothing was refused", {
    code: z.string(),
    message: z.string(),
    utterance_id: utterance_id.exactOptional(),
    start: start.exactOptional(),
    cause: errorShape.exactOptional(),
    fields: list(z.string()).exactOptional().describe("settings_ignored: fields of the command"),
    expires_in_ms: z.number().exactOptional().describe("token_expiring: until the connection ends"),
  }),
  refreshed: event("refreshed", "Answer to `refresh`: the connection goes on with the new token", {
    expires_in_ms: z.number().nullable().describe("Until the connection ends; null: no end is set"),
  }),
} as const;

type EventOf<T extends keyof typeof EVENTS> = z.infer<(typeof EVENTS)[T]>;
/** Any event. */
export type Event = { [T in keyof typeof EVENTS]: EventOf<T> }[keyof typeof EVENTS];
export type HelloEvent = EventOf<"hello">;
export type ConfiguredEvent = EventOf<"configured">;
export type UtteranceQueuedEvent = EventOf<"utterance.queued">;
export type UtteranceStartedEvent = EventOf<"utterance.started">;
export type UtteranceDoneEvent = EventOf<"utterance.done">;
export type UtteranceResumedEvent = EventOf<"utterance.resumed">;
export type CharactersEvent = EventOf<"characters">;
export type NormalizedEvent = EventOf<"normalized">;
export type WordsEvent = EventOf<"words">;
export type VisemeEvent = EventOf<"viseme">;
export type SegmentEvent = EventOf<"segment">;
export type CueEvent = EventOf<"cue">;
export type PresenceEvent = EventOf<"presence">;
export type CallEvent = EventOf<"call">;
export type DtmfEvent = EventOf<"dtmf">;
export type InterruptedEvent = EventOf<"interrupted">;
export type GapEvent = EventOf<"gap">;
export type PongEvent = EventOf<"pong">;
export type PreparedEvent = EventOf<"prepared">;
export type RefreshedEvent = EventOf<"refreshed">;
export type ErrorEvent = EventOf<"error">;
export type WarningEvent = EventOf<"warning">;

export type AudioDescription = z.infer<typeof audioDescription>;
export type Limits = z.infer<typeof limits>;
/** Stages from the first character of a text to the first frame of its speech. */
export type Waterfall = z.infer<typeof waterfall>;
/** The stages of one segment, with its offsets in the client's text. */
export type SegmentWaterfall = z.infer<typeof segmentWaterfall>;
export type Word = z.infer<typeof word>;
/** What was played of an utterance, and how that is known. */
export type Heard = EventOf<"interrupted">["heard"];
export type ErrorBody = z.infer<typeof errorShape>;

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

/** An error as `error`, `utterance.done` and HTTP answers have it. */
export function errorBody(error: GatewayError): ErrorBody {
  return {
    code: error.code,
    message: error.message,
    retryable: ERRORS[error.code].isRetryable,
    ...(error.retryAfterMs === undefined ? {} : { retry_after_ms: error.retryAfterMs }),
    ...(error.field === undefined ? {} : { field: error.field }),
  };
}

/** The error right before a connection is closed for it; without `base` where no session says the place. */
export function closingEvent(
  error: GatewayError,
  base: { readonly seq: number; readonly at_ms: number } = { seq: 0, at_ms: 0 },
): ErrorEvent {
  return { type: "error", ...base, ...errorBody(error), closing: true };
}
