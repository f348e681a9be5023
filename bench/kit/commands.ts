/** What the processes of a bench say to each other over IPC: options of each fixture and the commands it answers. */

/** Any fixture that only listens. */
export type NoCommands = Record<never, never>;

// ---- upstream --------------------------------------------------------------------------------------------------

export interface UpstreamOptions {
  /** Multiple of real time at which audio is sent. */
  readonly speed: number;
  /** Real time between two chunks of one response, ms. */
  readonly chunkMs: number;
}

/** What became of one response whose text carried a key (` k<key>` behind the length). */
export interface ResponseRecord {
  readonly key: string;
  /** Before the write of the headers and the first audio; monotonic ms. */
  readonly firstByteMs: number;
  /** The client went away before the end; null if it did not. */
  abortMs: number | null;
}

export interface UpstreamCommands {
  /** Everything since the last call, at most the newest 20,000. */
  records(): ResponseRecord[];
}

// ---- gateways --------------------------------------------------------------------------------------------------

export interface GatewayOptions {
  readonly upstreamUrl: string;
  /** File URL of the build that is measured, with a slash at the end; not used by the baseline. */
  readonly distUrl: string;
}

/** The fan-out without a gateway around it. */
export interface FanoutOptions {
  readonly framesPerBatch: number;
}

export interface FanoutCommands {
  /** Sends to everybody from now on. */
  start(): null;
}

// ---- load ------------------------------------------------------------------------------------------------------

export interface OpenArgs {
  readonly group: string;
  readonly port: number;
  readonly count: number;
  /** `{i}` stands for the connection's number. */
  readonly path: string;
  /** Time over which the connections are opened, evenly, ms. */
  readonly rampMs: number;
  /** Sent on each connection when it is open. */
  readonly messages?: readonly string[];
  /** Whether text messages are decoded; without it they are only counted. */
  readonly wantsText?: boolean;
  /** Note how late each frame is, for a server that sends `leadMs` ahead in batches of `batchMs`. */
  readonly grid?: { readonly leadMs: number; readonly batchMs: number };
}

export interface Counters {
  readonly atMs: number;
  /** Binary messages. */
  readonly frames: number;
  /** Text messages. */
  readonly texts: number;
  readonly payloadBytes: number;
  readonly open: number;
  readonly closed: number;
}

export interface LatenessSummary {
  readonly frames: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** Speak, wait until it is done, pause, again. */
export interface TurnArgs {
  readonly group: string;
  readonly rounds: number;
  /** `{key}` in it becomes the turn's key. */
  readonly text: string;
  readonly voiceId: string | null;
  /** Longest a turn may take, ms. */
  readonly deadlineMs: number;
  /** Pause between turns: from half of this to one and a half, ms. */
  readonly pauseMs: number;
}

export interface TurnSample {
  readonly key: string;
  readonly round: number;
  readonly sentMs: number;
  readonly firstFrameMs: number;
  /** The gateway's own `latency.first_frame_ms`; null where it says none. */
  readonly stampMs: number | null;
}

export interface TurnResult {
  readonly samples: TurnSample[];
  /** Turns without a frame or an end in time. */
  readonly failed: number;
}

/** Speak, let it run, interrupt, watch, again. */
export interface InterruptArgs {
  readonly group: string;
  readonly rounds: number;
  /** `{key}` in it becomes the turn's key. */
  readonly text: string;
  readonly voiceId: string;
  /** Speech before the interruption: from this to twice this, ms. */
  readonly speakMs: number;
  /** How long after the interruption frames are watched for, ms. */
  readonly watchMs: number;
}

export interface InterruptSample {
  readonly key: string;
  readonly sentMs: number;
  /** The last frame after the interruption was sent; null if none came any more. */
  readonly lastFrameMs: number | null;
  /** The receipt; null if none came. */
  readonly receiptMs: number | null;
}

export interface InterruptResult {
  readonly samples: InterruptSample[];
  readonly failed: number;
}

export interface LoadCommands {
  open(args: OpenArgs): Promise<{ opened: number; failed: number }>;
  send(args: { group: string; messages: readonly string[] }): null;
  counters(args: { group: string }): Counters;
  lateness(args: { group: string }): LatenessSummary;
  turns(args: TurnArgs): Promise<TurnResult>;
  interrupts(args: InterruptArgs): Promise<InterruptResult>;
  close(args: { group: string }): null;
}
