/**
 * The words of the native protocol, version 1, that its messages share: `commands.ts` has what a client says, `events.ts`
 * what the gateway emits. docs/protocol.md explains them. Times are milliseconds on the
 * session's timeline unless said otherwise; `start`/`end` are offsets into the text that the client sent for the utterance
 * (a dialogue's text is its inputs' texts joined without a separator), end exclusive, UTF-16 code units or, with
 * `offsets=cp`, code points.
 */

export const PROTOCOL_VERSION = 1;

const PCM_FORMATS = [
  "pcm_8000",
  "pcm_16000",
  "pcm_22050",
  "pcm_24000",
  "pcm_32000",
  "pcm_44100",
  "pcm_48000",
] as const;

/** Formats that a listener can ask for: headerless, one exact frame a message. `none` = events only. */
export const LISTENER_FORMATS = ["ulaw_8000", "alaw_8000", "opus_48000", ...PCM_FORMATS, "none"] as const;
export type ListenerFormat = (typeof LISTENER_FORMATS)[number];
/** A listener format that carries audio. */
export type AudioFormat = Exclude<ListenerFormat, "none">;

/** Formats of a sound that is to be played, beside WAV files of these: formats of the upstream, as whose audio it is read. */
export const SOUND_FORMATS = ["ulaw_8000", "alaw_8000", ...PCM_FORMATS] as const;

export const EVENT_KINDS = [
  "characters",
  "normalized",
  "words",
  "segments",
  "cues",
  "visemes",
  "visemes-microsoft",
  "visemes-arkit",
  "marks",
  "presence",
  "call",
  "dtmf",
] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

/** Sets of mouth shapes -> the `events=` name that asks for it. */
export const VISEME_KINDS = {
  oculus: "visemes",
  microsoft: "visemes-microsoft",
  arkit: "visemes-arkit",
} as const satisfies Record<string, EventKind>;
export type VisemeSet = keyof typeof VISEME_KINDS;
/** A mouth shape: a name of Oculus' 15 ("PP"; with ARKit, too), or a number of Microsoft's 22. */
export type Viseme = string | number;

/** Formats in which a speaker can hear the callers of its session: 20 ms frames. */
export const CALLER_FORMATS = [
  "ulaw_8000",
  "alaw_8000",
  ...PCM_FORMATS,
] as const satisfies readonly AudioFormat[];
export type CallerFormat = (typeof CALLER_FORMATS)[number];

export const ROLES = ["both", "speaker", "listener"] as const;
type Role = (typeof ROLES)[number];
export const PACES = ["realtime", "burst"] as const;
export type Pace = (typeof PACES)[number];
export const FRAMINGS = ["raw", "rtp"] as const;
export type Framing = (typeof FRAMINGS)[number];
/** What a listener hears of speech: all of it, or what a telephone passes (300 to 3400 Hz). */
export const BANDS = ["full", "telephone"] as const;
export type Band = (typeof BANDS)[number];
export const POLICIES = ["live", "lossless", "captions"] as const;
export type Policy = (typeof POLICIES)[number];
export const OFFSET_UNITS = ["utf16", "cp"] as const;
export type OffsetUnit = (typeof OFFSET_UNITS)[number];
/** For whom captions are laid out; the numbers are in docs/captions.md. */
export const CUE_PROFILES = ["web", "broadcast", "phone"] as const;
export type CueProfile = (typeof CUE_PROFILES)[number];
/** `pop-on`: whole cues at once. `roll-up`: a line as its first word is spoken, with the line before above it. */
export const CUE_MODES = ["pop-on", "roll-up"] as const;
export type CueMode = (typeof CUE_MODES)[number];
/** What is taken out of a text before it is spoken; offsets stay those of the text as it was sent. */
export const CLEANINGS = ["markdown", "emoji", "urls", "code"] as const;
export type Cleaning = (typeof CLEANINGS)[number];
export const REPLACES = ["queued", "all"] as const;
export type Replace = (typeof REPLACES)[number];
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
  readonly band: Band;
  readonly pace: Pace;
  /** How far ahead of playout frames are sent, 0-10000. */
  readonly lead_ms: number;
  readonly policy: Policy;
  readonly events: readonly EventKind[];
  readonly offsets: OffsetUnit;
  /** For listeners that get cues. */
  readonly cue_profile?: CueProfile;
  readonly cue_mode?: CueMode;
  /** A speaker without audio of its own has it: its binary messages are what the caller says, in 20 ms frames. */
  readonly caller?: CallerFormat;
}
