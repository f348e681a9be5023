/**
 * The words of the native protocol, version 1: every message that a client or the gateway can send.
 * docs/protocol.md explains them; `native.ts` reads and writes them. Times are milliseconds on the session's
 * timeline unless said otherwise; `start`/`end` are offsets into the text that the client sent for the utterance
 * (a dialogue's text is its inputs' texts joined without a separator), end exclusive, UTF-16 code units or, with
 * `offsets=cp`, code points.
 */

export const PROTOCOL_VERSION = 1;

/** Formats that a listener can ask for: headerless, one exact frame a message. `none` = events only. */
export const LISTENER_FORMATS = [
  "ulaw_8000",
  "alaw_8000",
  "opus_48000",
  "pcm_8000",
  "pcm_16000",
  "pcm_22050",
  "pcm_24000",
  "pcm_32000",
  "pcm_44100",
  "pcm_48000",
  "none",
] as const;
export type ListenerFormat = (typeof LISTENER_FORMATS)[number];
/** A listener format that carries audio. */
export type AudioFormat = Exclude<ListenerFormat, "none">;

export const EVENT_KINDS = ["characters", "words", "segments", "cues", "visemes", "marks"] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

export const ROLES = ["both", "speaker", "listener"] as const;
export type Role = (typeof ROLES)[number];
export const PACES = ["realtime", "burst"] as const;
export type Pace = (typeof PACES)[number];
export const FRAMINGS = ["raw", "rtp"] as const;
export type Framing = (typeof FRAMINGS)[number];
export const POLICIES = ["live", "lossless", "captions"] as const;
export type Policy = (typeof POLICIES)[number];
export const OFFSET_UNITS = ["utf16", "cp"] as const;
export type OffsetUnit = (typeof OFFSET_UNITS)[number];
export const TIMINGS = ["exact", "scaled", "estimated"] as const;
/** How an event's times were come by: as the upstream measured them, stretched to the samples, or guessed. */
export type Timing = (typeof TIMINGS)[number];

/** What a connection asked for, with defaults filled in; `hello` and `configured` send it back. */
export interface ListenerSettings {
  readonly role: Role;
  readonly format: ListenerFormat;
  /** 10-100, a multiple of 10; Opus: 10, 20, 40 or 60. */
  readonly frame_ms: number;
  readonly framing: Framing;
  readonly pace: Pace;
  /** How far ahead of playout frames are sent, 0-10000. */
  readonly lead_ms: number;
  readonly policy: Policy;
  readonly events: readonly EventKind[];
  readonly offsets: OffsetUnit;
}

// ---- client -> gateway -----------------------------------------------------------------------------------------

export interface VoiceOptions {
  readonly voice_id?: string;
  readonly model_id?: string;
  readonly language_code?: string;
  readonly voice_settings?: {
    readonly stability?: number;
    readonly similarity_boost?: number;
    readonly style?: number;
    readonly use_speaker_boost?: boolean;
    readonly speed?: number;
  };
  readonly seed?: number;
  readonly apply_text_normalization?: "auto" | "on" | "off";
  readonly enable_logging?: boolean;
}

export interface SpeakCommand extends VoiceOptions {
  readonly type: "speak";
  readonly text: string;
  readonly utterance_id?: string;
}
/** Tokens as they come; the first one of an utterance may carry the voice options. */
export interface TextCommand extends VoiceOptions {
  readonly type: "text";
  readonly text: string;
  readonly utterance_id?: string;
}
export interface FlushCommand {
  readonly type: "flush";
  readonly utterance_id?: string;
}
export interface EndCommand {
  readonly type: "end";
  readonly utterance_id?: string;
}
export interface DialogueCommand {
  readonly type: "dialogue";
  readonly inputs: readonly { readonly text: string; readonly voice_id: string }[];
  readonly utterance_id?: string;
  readonly model_id?: string;
  readonly language_code?: string;
  readonly settings?: { readonly stability?: number };
  readonly seed?: number;
  readonly apply_text_normalization?: "auto" | "on" | "off";
  readonly enable_logging?: boolean;
}
export interface InterruptCommand {
  readonly type: "interrupt";
  /** Only this utterance; without it the speaking one and all that are queued. */
  readonly utterance_id?: string;
  /** Let this much more of the audio play before the cut, ms. */
  readonly keep_ms?: number;
}
export interface MarkCommand {
  readonly type: "mark";
  readonly name: string;
}
/** Playout acknowledgement: this listener has played the timeline up to `at_ms`. */
export interface PlayedCommand {
  readonly type: "played";
  readonly seq?: number;
  readonly at_ms: number;
}
export interface ConfigureCommand extends Partial<Omit<ListenerSettings, "role">> {
  readonly type: "configure";
}
export interface PingCommand {
  readonly type: "ping";
  readonly id?: string | number;
}
export interface CloseCommand {
  readonly type: "close";
}

export type Command =
  | SpeakCommand
  | TextCommand
  | FlushCommand
  | EndCommand
  | DialogueCommand
  | InterruptCommand
  | MarkCommand
  | PlayedCommand
  | ConfigureCommand
  | PingCommand
  | CloseCommand;

// ---- gateway -> client -----------------------------------------------------------------------------------------

interface EventBase {
  /** Rises by one with each event of the session; events to one connection only repeat the latest. */
  readonly seq: number;
  /** Where on the timeline this event belongs, ms. */
  readonly at_ms: number;
}

/** How the binary messages that follow are to be read; null with format=none. */
export interface AudioDescription {
  readonly codec: "ulaw" | "alaw" | "opus" | "pcm_s16le";
  readonly sample_rate: number;
  readonly channels: 1;
  readonly frame_ms: number;
  /** Samples a frame, at `sample_rate`. */
  readonly frame_samples: number;
  /** Bytes a message without any RTP header; null where frames vary in size (Opus). */
  readonly frame_bytes: number | null;
  /** Timeline position of the first frame that this connection will get. */
  readonly start_ms: number;
}

export interface HelloEvent extends EventBase {
  readonly type: "hello";
  readonly protocol: typeof PROTOCOL_VERSION;
  /** Name and version of the gateway. */
  readonly server: string;
  readonly session: string;
  readonly epoch: string;
  readonly settings: ListenerSettings;
  readonly audio: AudioDescription | null;
  readonly limits: Limits;
  /** Query keys and values that were not understood. */
  readonly ignored: readonly string[];
}

/** Every limit that a client can run into. */
export interface Limits {
  readonly message_bytes: number;
  /** UTF-16 code units of one utterance. */
  readonly text_chars: number;
  readonly dialogue_inputs: number;
  readonly queued_utterances: number;
  readonly listeners: number;
  readonly lead_ms: number;
  readonly outbox_bytes: number;
  readonly marks: number;
}

export interface ConfiguredEvent extends EventBase {
  readonly type: "configured";
  readonly settings: ListenerSettings;
  readonly audio: AudioDescription | null;
  readonly ignored: readonly string[];
}

/** To the speaker only: the utterance was accepted. */
export interface UtteranceQueuedEvent extends EventBase {
  readonly type: "utterance.queued";
  readonly utterance_id: string;
  /** Utterances before it that are queued or speaking. */
  readonly ahead: number;
}

export interface UtteranceStartedEvent extends EventBase {
  readonly type: "utterance.started";
  readonly utterance_id: string;
  readonly voice_ids: readonly string[];
  readonly model_id?: string;
  readonly start_ms: number;
  /** The upstream's output_format, and whether it is passed through untouched. */
  readonly source_format: string;
}

export interface Waterfall {
  /** Accepted -> request written upstream. */
  readonly queued_ms: number;
  /** Request written -> response headers. */
  readonly headers_ms: number;
  /** Headers -> first audio byte. */
  readonly first_byte_ms: number;
  /** First audio byte -> first frame handed to a socket. */
  readonly first_frame_ms: number;
  /** The sum of the four. */
  readonly total_ms: number;
  /** First audio byte -> first sample that is not silence, on the timeline; null where all was silence. */
  readonly leading_silence_ms: number | null;
}

export interface UtteranceDoneEvent extends EventBase {
  readonly type: "utterance.done";
  readonly utterance_id: string;
  readonly outcome: "done" | "interrupted" | "failed";
  readonly start_ms: number;
  /** End of the speech itself. */
  readonly end_ms: number;
  /** Silence after `end_ms` that fills the last frame. */
  readonly pad_ms: number;
  /** As the upstream billed it; null where it did not say. */
  readonly characters_billed: number | null;
  /** Characters (UTF-16) of the client's text that were sent upstream; where it was cut or failed, that were heard. */
  readonly characters_spoken: number;
  readonly timing: Timing | "none";
  readonly latency: Waterfall | null;
  readonly error?: ErrorBody;
}

export interface CharactersEvent extends EventBase {
  readonly type: "characters";
  readonly utterance_id: string;
  readonly start: number;
  readonly end: number;
  readonly characters: readonly string[];
  readonly start_ms: readonly number[];
  readonly end_ms: readonly number[];
  readonly timing: Timing;
}

export interface Word {
  readonly text: string;
  readonly start_ms: number;
  readonly end_ms: number;
  readonly start: number;
  readonly end: number;
}
export interface WordsEvent extends EventBase {
  readonly type: "words";
  readonly utterance_id: string;
  readonly words: readonly Word[];
  readonly timing: Timing;
}

export interface SegmentEvent extends EventBase {
  readonly type: "segment";
  readonly utterance_id: string;
  readonly voice_id: string;
  readonly dialogue_input_index: number;
  readonly start_ms: number;
  readonly end_ms: number;
  readonly start: number;
  readonly end: number;
}

export interface MarkEvent extends EventBase {
  readonly type: "mark";
  readonly name: string;
  readonly source: "estimate" | "ack";
}

export interface InterruptedEvent extends EventBase {
  readonly type: "interrupted";
  readonly utterance_id: string;
  readonly heard: {
    readonly text: string;
    readonly end: number;
    readonly ms: number;
    readonly source: "mark" | "ack" | "estimate";
    readonly bound_ms: number;
  };
  readonly unheard_text: string;
  /**
   * Where the next audio frame stands on the timeline: frames beyond `at_ms` that were sent are to be dropped. null when
   * no audio was cut because the utterance had not begun.
   */
  readonly next_ms: number | null;
}

export interface GapEvent extends EventBase {
  readonly type: "gap";
  readonly frames: number;
  readonly ms: number;
}

export interface PongEvent extends EventBase {
  readonly type: "pong";
  readonly id?: string | number;
}

export interface ErrorBody {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly retry_after_ms?: number;
  readonly field?: string;
}
export interface ErrorEvent extends EventBase, ErrorBody {
  readonly type: "error";
  readonly utterance_id?: string;
}
export interface WarningEvent extends EventBase {
  readonly type: "warning";
  readonly code: string;
  readonly message: string;
}

export type Event =
  | HelloEvent
  | ConfiguredEvent
  | UtteranceQueuedEvent
  | UtteranceStartedEvent
  | UtteranceDoneEvent
  | CharactersEvent
  | WordsEvent
  | SegmentEvent
  | MarkEvent
  | InterruptedEvent
  | GapEvent
  | PongEvent
  | ErrorEvent
  | WarningEvent;
