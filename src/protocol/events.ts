/** What the gateway tells: every event, as it goes to a client. `native.ts` writes them; docs/protocol.md explains them. */
import type {
  AudioFormat,
  ListenerSettings,
  PROTOCOL_VERSION,
  Timing,
  Viseme,
  VisemeSet,
} from "./vocabulary.ts";

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
  /** Of this connection, as receipts and presence name it. */
  readonly listener_id: string;
  /** Only where the connection asked to resume: whether it gets what it missed (a `warning` says why not). */
  readonly resumed?: boolean;
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
  /** What may wait of a connection that brings many messages at once. */
  readonly inbox_bytes: number;
  readonly listeners: number;
  readonly lead_ms: number;
  readonly outbox_bytes: number;
  readonly marks: number;
  /** Text of one utterance that waits to be spoken (UTF-16 code units) at which its speaker gets `paused`. */
  readonly credit_chars: number;
  /** Frames and events are kept this long for listeners that come back. */
  readonly keep_ms: number;
  /** An interrupted utterance can be resumed from its own audio this long. */
  readonly resume_ms: number;
  /** So far behind the playhead a listener that acknowledges may play and be resumed from where it was. */
  readonly resume_reach_ms: number;
  /** Speech asked of the upstream ahead of what is heard. */
  readonly speculate_ms: number;
  readonly speculate_chars: number;
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

/** Stages from the first character of a text to the first frame of its speech; they sum to the total. */
export interface Waterfall {
  /** First character in -> the text is cut and ready to be spoken. */
  readonly text_ms: number;
  /** Cut -> its request was given to the upstream client (its turn in the queue, the speculation budget). */
  readonly queued_ms: number;
  /** Given -> the request was written to a connected socket. */
  readonly connected_ms: number;
  /** Written -> response headers. */
  readonly headers_ms: number;
  /** Headers -> first audio byte. */
  readonly first_byte_ms: number;
  /** First audio byte -> the first sample that is not silence has come. */
  readonly first_sound_ms: number;
  /** First sound -> first frame handed to a socket; for a segment behind others mostly waiting for them to be spoken. */
  readonly first_frame_ms: number;
  /** The sum of the stages. */
  readonly total_ms: number;
  /** Silence before the first sound in the upstream's audio; null where all was silence, or where it was not looked at. */
  readonly leading_silence_ms: number | null;
}

/** The waterfall of one segment; `start`, `end`: its place in the client's text. */
export interface SegmentWaterfall extends Waterfall {
  readonly start: number;
  readonly end: number;
}

export interface UtteranceDoneEvent extends EventBase {
  readonly type: "utterance.done";
  readonly utterance_id: string;
  /** `cancelled`: taken out of the queue before it began. */
  readonly outcome: "done" | "interrupted" | "cancelled" | "failed";
  readonly start_ms: number;
  /** End of the speech itself. */
  readonly end_ms: number;
  /** Silence after `end_ms` that fills the last frame. */
  readonly pad_ms: number;
  /** What the upstream has said all requests for it cost, spoken or not; null where it did not say. */
  readonly characters_billed: number | null;
  /** Characters (UTF-16) of the client's text that were sent upstream; where it was cut or failed, that were heard. */
  readonly characters_spoken: number;
  readonly timing: Timing | "none";
  /** Of the first segment: what the listener waited for. */
  readonly latency: Waterfall | null;
  /** Of every segment that was heard, the first 64. */
  readonly segments: readonly SegmentWaterfall[];
  readonly error?: ErrorBody;
}

/** To the speaker: the text runs ahead of the speech; send no more of it until `resumed`. */
export interface PausedEvent extends CreditEvent {
  readonly type: "paused";
}
/** To the speaker: there is room for more text. */
export interface ResumedEvent extends CreditEvent {
  readonly type: "resumed";
}
interface CreditEvent extends EventBase {
  readonly utterance_id: string;
  /** UTF-16 code units that wait to be spoken. */
  readonly pending_chars: number;
  readonly limit_chars: number;
}

/** An interrupted utterance goes on. */
export interface UtteranceResumedEvent extends EventBase {
  readonly type: "utterance.resumed";
  readonly utterance_id: string;
  /** Offset in the text, and place on the timeline, where it goes on. */
  readonly start: number;
  readonly start_ms: number;
  /** End of the text that is spoken from kept audio; what follows is asked of the upstream. */
  readonly kept_end: number;
  /** How `start` is known. */
  readonly timing: Timing;
  /** Where nothing was timed: how far from `start` the text that is heard at `start_ms` may be, ms. */
  readonly bound_ms?: number;
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

/** Mouth shapes of words and of the pauses between them, as parallel arrays: in order, never overlapping. */
export interface VisemeEvent extends EventBase {
  readonly type: "viseme";
  readonly utterance_id: string;
  readonly set: VisemeSet;
  readonly visemes: readonly Viseme[];
  /** Where on the timeline each begins, and how long it lasts. */
  readonly vtimes_ms: readonly number[];
  readonly vdurations_ms: readonly number[];
  /** Of the set `arkit`: blendshape weights of each, 0 to 1; what is not named is 0. */
  readonly weights?: readonly Readonly<Record<string, number>>[];
  /** How the times of their words were come by; where they change within a word is told from its spelling. */
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

/** Characters after the upstream's text normalization ("twelve" for "12"), where it sent them. */
export interface NormalizedEvent extends EventBase {
  readonly type: "normalized";
  readonly utterance_id: string;
  readonly characters: readonly string[];
  readonly start_ms: readonly number[];
  readonly end_ms: readonly number[];
  readonly timing: Timing;
}

export interface CueEvent extends EventBase {
  readonly type: "cue";
  readonly utterance_id: string;
  readonly start_ms: number;
  readonly end_ms: number;
  readonly start: number;
  readonly end: number;
  /** Who says it: a cue has words of one voice only. */
  readonly voice_id?: string;
  /** Of a dialogue: the name that its input gave, else "Speaker 1", "Speaker 2" in the order of the voices. */
  readonly speaker?: string;
  /**
   * One or two lines to show, with their words. Where cues roll up, the upper one is the line before once more: `start`
   * and `end` are the lower one's.
   */
  readonly lines: readonly { readonly text: string; readonly words: readonly Word[] }[];
}

/** Who is there, after somebody came or left. */
export interface PresenceEvent extends EventBase {
  readonly type: "presence";
  readonly joined?: string;
  readonly left?: string;
  /** Connections that hear or follow, and connections that may speak (`both` counts in both). */
  readonly listeners: number;
  readonly speakers: number;
}

/** A phone call has joined the session, or has left it. To who is there at once, to who joins later once. */
export interface CallEvent extends EventBase {
  readonly type: "call";
  readonly state: "started" | "ended";
  /** The carrier's. */
  readonly call_id: string;
  readonly carrier: string;
  /** The call among the listeners, as receipts and presence name it. */
  readonly listener_id: string;
  readonly from?: string;
  readonly to?: string;
  /** What the application has handed to the carrier to be passed on. */
  readonly parameters: Readonly<Record<string, string>>;
  /** What the carrier sends of the caller's voice; null where it sends none. */
  readonly caller_format: AudioFormat | null;
  /** Of `ended`, in the carrier's words or ours. */
  readonly reason?: string;
}

/** The caller has pressed a key. */
export interface DtmfEvent extends EventBase {
  readonly type: "dtmf";
  readonly call_id: string;
  /** One of 0-9, *, #, A-D. */
  readonly digit: string;
  readonly duration_ms?: number;
}

export interface MarkEvent extends EventBase {
  readonly type: "mark";
  readonly name: string;
  readonly source: "estimate" | "ack";
}

/** What was heard of an utterance, and how that is known. */
export interface Heard {
  readonly text: string;
  readonly end: number;
  readonly ms: number;
  readonly source: "mark" | "ack" | "estimate";
  /** The truth is no further away than this. */
  readonly bound_ms: number;
}

export interface InterruptedEvent extends EventBase {
  readonly type: "interrupted";
  readonly utterance_id: string;
  /** By the listener that has heard least, where they differ. */
  readonly heard: Heard;
  readonly unheard_text: string;
  /** Listeners that told what they have played, where they differ: each with its own receipt. At most 16. */
  readonly listeners?: readonly (Heard & { readonly listener_id: string })[];
  /** Whether `resume` can go on from audio that is kept, for `limits.resume_ms`. */
  readonly resumable: boolean;
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
  /** Events that a resumed connection missed and that are gone. */
  readonly events?: number;
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
  /** `speech_taken_up` only, which everybody gets: the utterance whose upstream broke off and was asked anew. */
  readonly utterance_id?: string;
  /** Offset from which on the text comes from another response: times told for what is behind it are void. */
  readonly start?: number;
  /** Why it broke off. */
  readonly cause?: ErrorBody;
}

export type Event =
  | HelloEvent
  | ConfiguredEvent
  | UtteranceQueuedEvent
  | UtteranceStartedEvent
  | UtteranceDoneEvent
  | CharactersEvent
  | WordsEvent
  | VisemeEvent
  | SegmentEvent
  | NormalizedEvent
  | CueEvent
  | PresenceEvent
  | CallEvent
  | DtmfEvent
  | PausedEvent
  | ResumedEvent
  | UtteranceResumedEvent
  | MarkEvent
  | InterruptedEvent
  | GapEvent
  | PongEvent
  | ErrorEvent
  | WarningEvent;
