/** What a session needs from outside: handed in by the gateway, small enough that a test can write a literal. */
import type { OpusPool } from "../audio/codecs/opus-pool.ts";
import type { Config } from "../config.ts";
import type { Pacer } from "../delivery/pacer.ts";
import type { BlockPool } from "../kit/block-pool.ts";
import type { ByteRoom } from "../kit/byte-room.ts";
import type { Clock } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import type { LedgerSink } from "../ledger/entries.ts";
import type { Counters } from "../metrics/counters.ts";
import type { TextOptions } from "../protocol/commands.ts";
import type { Limits } from "../protocol/events.ts";
import type { Aligner } from "../timing/aligner.ts";
import type { Tracer } from "../tracing/tracer.ts";
import type { Upstream } from "../upstream/types.ts";
import type { LanguageVoices } from "./language-voices.ts";
import type { Tape } from "./tape/tape.ts";
import type { VoiceLoudness } from "./voice-loudness.ts";

/** How segments of an utterance are joined. */
export type SpliceSettings = Pick<
  Config,
  "trimMs" | "pauseClauseMs" | "pauseSentenceMs" | "pauseParagraphMs"
>;

/** What a session remembers of captions for files. */
export type CaptionSettings = Pick<Config, "captionsMaxCues" | "captionsKeepMs">;

/** Bounds that nobody sets. */
export const SESSION_BOUNDS = {
  /** Longest lead a client may ask for, ms. */
  maxLeadMs: 10_000,
  maxDialogueInputs: 100,
  /** Marks that wait on an utterance, and marks that are remembered. */
  maxMarks: 256,
};

/** What shapes a session: settings (config/speech.ts explains them), bounds, and what is worked out from settings. */
export type SessionSettings = Pick<
  Config,
  | "maxMessageBytes"
  | "maxTextChars"
  | "maxQueuedUtterances"
  | "maxListeners"
  | "maxOutboxBytes"
  | "maxConnectionMinutes"
  | "creditChars"
  | "speculateMs"
  | "speculateChars"
  | "leadMs"
  | "aheadMs"
  | "keepMs"
  | "graceMs"
  | "resumeMs"
  | "resumeReachMs"
  | "stallMs"
  | "textIdleMs"
  | "firstAudioMs"
  | "nobodyListens"
  | "opusBitrateKbps"
  | "loudnessLufs"
  | "preparedMs"
  | "model"
  | "captions"
> &
  SpliceSettings &
  CaptionSettings &
  Readonly<typeof SESSION_BOUNDS> & {
    /** Messages of a connection that wait for their turn. */
    readonly maxInboxBytes: number;
    /** Which voice speaks a language, where a client names none. */
    readonly languageVoices: LanguageVoices;
    /** How texts are made ready where a client does not say. */
    readonly textDefaults: Required<TextOptions>;
    /** Names of voices that several upstreams may speak; default: none. */
    readonly ownVoices?: ReadonlySet<string>;
  };

/** As `hello` names what a client can run into. */
export function limitsOf(settings: SessionSettings): Limits {
  return {
    message_bytes: settings.maxMessageBytes,
    inbox_bytes: settings.maxInboxBytes,
    text_chars: settings.maxTextChars,
    dialogue_inputs: settings.maxDialogueInputs,
    queued_utterances: settings.maxQueuedUtterances,
    listeners: settings.maxListeners,
    lead_ms: settings.maxLeadMs,
    outbox_bytes: settings.maxOutboxBytes,
    marks: settings.maxMarks,
    connection_minutes: settings.maxConnectionMinutes,
    credit_chars: settings.creditChars,
    keep_ms: settings.keepMs,
    resume_ms: settings.resumeMs,
    resume_reach_ms: settings.resumeReachMs,
    speculate_ms: settings.speculateMs,
    speculate_chars: settings.speculateChars,
  };
}

export interface SessionDeps {
  readonly clock: Clock;
  readonly pacer: Pick<Pacer, "register" | "isHeld">;
  readonly upstream: Upstream;
  readonly opusPool: OpusPool;
  /** Finds words in audio that comes without times. */
  readonly aligner: Aligner;
  /** Memory for the audio that waits in all sessions. */
  readonly blocks: BlockPool;
  readonly log: Logger;
  readonly counters: Counters;
  readonly settings: SessionSettings;
  /** Memory for the sounds of all sessions. */
  readonly sounds: Pick<ByteRoom, "hasRoomFor" | "take">;
  /** Shared by all sessions: what one has learned of a voice another one knows. */
  readonly loudness: Pick<VoiceLoudness, "known" | "levelFor">;
  /** Default: nothing is traced. */
  readonly tracer?: Tracer | undefined;
  /** Where it is written down what was heard. Default: nowhere. */
  readonly ledger?: LedgerSink | undefined;
  /** Between the session and all else, where it is recorded or run again. Default: none. */
  readonly tape?: Tape | undefined;
  /** Name and version for `hello`. */
  readonly server: string;
  /** The voice used where a client names none. Rejects with an upstream error. */
  defaultVoice(): Promise<string>;
}
