/** What a session needs from outside: handed in by the gateway, small enough that a test can write a literal. */
import type { OpusPool } from "../audio/codecs/opus-pool.ts";
import type { Pacer } from "../delivery/pacer.ts";
import type { BlockPool } from "../kit/block-pool.ts";
import type { Clock } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import type { Counters } from "../metrics/counters.ts";
import type { TextOptions } from "../protocol/commands.ts";
import type { Limits } from "../protocol/events.ts";
import type { Upstream } from "../upstream/types.ts";

/** The numbers that shape a session; config.ts says where each comes from. */
export interface SessionTuning {
  readonly limits: Limits;
  /** Lead where a client does not say, ms. */
  readonly leadMs: number;
  /** Audio buffered ahead of what is sent before the upstream is made to wait, ms. */
  readonly aheadMs: number;
  /** Audio kept after it was due, ms. */
  readonly keepMs: number;
  /** How long a session without any connection lives on, ms. */
  readonly graceMs: number;
  /** How long an interrupted utterance's audio is kept, ms. */
  readonly resumeMs: number;
  /** Audio is kept so far behind the playhead where a listener says that it plays so late, ms. */
  readonly resumeReachMs: number;
  /** Text waiting to be spoken at which a speaker is asked to pause, UTF-16 code units. */
  readonly creditChars: number;
  /** Longest wait for the rest of a sentence when tokens dry up, ms. */
  readonly stallMs: number;
  /** A text that nothing has come of for this long is taken to be complete, ms. */
  readonly textIdleMs: number;
  /** The next segment is requested when no more than this is unheard. */
  readonly speculateMs: number;
  readonly speculateChars: number;
  /** Longest wait for the first audio of a request that has left, ms; then it is asked again. 0 = as long as it takes. */
  readonly firstAudioMs: number;
  /** Whether to speak on where nobody listens. */
  readonly speaksToNobody: boolean;
  readonly splices: SpliceTuning;
  /** How texts are made ready where a client does not say. */
  readonly textDefaults: Required<TextOptions>;
  readonly opusBitrateKbps: string;
  readonly defaultModel: string;
  /** What is remembered of captions; default: 2000 cues, an hour, from the first that asks. */
  readonly captions?: CaptionTuning;
}

/** Captions that a session remembers for files. */
export interface CaptionTuning {
  /** From the session's beginning, and not only once somebody has asked for captions. */
  readonly isAlways: boolean;
  /** Of each style; the oldest go. */
  readonly maxCues: number;
  /** So long after it was heard a cue goes. */
  readonly keepMs: number;
}

/** How segments of an utterance are joined; ms. */
export interface SpliceTuning {
  /** Most silence taken off each end of an upstream response; 0 = none. */
  readonly trimMs: number;
  readonly pauseClauseMs: number;
  readonly pauseSentenceMs: number;
  readonly pauseParagraphMs: number;
}

export interface SessionDeps {
  readonly clock: Clock;
  readonly pacer: Pacer;
  readonly upstream: Upstream;
  readonly opusPool: OpusPool;
  /** Memory for the audio that waits in all sessions. */
  readonly blocks: BlockPool;
  readonly log: Logger;
  readonly counters: Counters;
  readonly tuning: SessionTuning;
  /** Name and version for `hello`. */
  readonly server: string;
  /** The voice used where a client names none. Rejects with an upstream error. */
  defaultVoice(): Promise<string>;
}
