/** What the processes of a bench say to each other over IPC: options of each fixture and the commands it answers. */
import type { Config } from "../../src/config.ts";
import type { ServiceConfig } from "../../src/upstream/services/service-config.ts";
import type { VoiceConfig } from "../../src/upstream/voices/voice-config.ts";
import type { HostileKind } from "./hostile-kinds.ts";

/** Any fixture that only listens. */
export type NoCommands = Record<never, never>;

export interface VendorOptions {
  /** How long it takes to answer, ms. */
  readonly workMs: number;
  /** Of the JSON that a GET is answered with; default 2000. */
  readonly jsonBytes?: number;
}

export interface RelayOptions {
  readonly vendorPort: number;
}

// ---- scripted services ------------------------------------------------------------------------------------------

export interface ScriptedServicesOptions {
  /** From a request to the first piece of its answer, ms. */
  readonly workMs: number;
  /** Voices of the first upstream that speak PCM of this level (see syntheticSpeech); default: none. */
  readonly levels?: Readonly<Record<string, number>>;
}

export interface ScriptedServicesCommands {
  /** Where each is, by its adapter's name. */
  urls(): Readonly<Record<string, string>>;
  /** The next answer of the service ends at one of so many places. It is never late from then on. */
  kill(args: { readonly service: string; readonly place: number; readonly places: number }): null;
  mend(args: { readonly service: string }): null;
}

// ---- upstream --------------------------------------------------------------------------------------------------

export interface UpstreamOptions {
  /** Multiple of real time at which audio is sent. */
  readonly speed: number;
  /** Real time between two chunks of one response, ms. */
  readonly chunkMs: number;
  /** How long a character lasts in a text that does not begin with its length, ms; default: such a text lasts 1 s. */
  readonly msPerChar?: number;
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
  /** Settings that differ from the defaults; not used by the baseline. */
  readonly settings?: Partial<Config>;
  /** Other speech services, and voices that several of them stand for; not used by the baseline. */
  readonly services?: readonly ServiceConfig[];
  readonly voices?: readonly VoiceConfig[];
  /** Its warnings are not shown: what it would warn of is what is measured. */
  readonly isQuiet?: boolean;
}

/** A gateway that is one of several. */
export interface ClusterNodeOptions extends GatewayOptions {
  readonly natsUrl: string;
  readonly nodeName: string;
}

export interface ClusterNodeCommands {
  /** Takes nothing new, gives its sessions away, and ends. */
  drain(): Promise<void>;
  /** Other nodes that it takes for alive, and sessions that have gone on here. */
  cluster(): { readonly alive: number; readonly takenOver: number };
}

export interface GatewayCommands {
  /** Where its /metrics are. The baseline has none. */
  opsUrl(): string | null;
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
  /** `{i}` stands for the connection's number, `{i%10}` for the number modulo ten. */
  readonly path: string;
  /** Key or token that each connection shows. */
  readonly credential?: string;
  /** Time over which the connections are opened, evenly, ms. */
  readonly rampMs: number;
  /** Sent on each connection when it is open. */
  readonly messages?: readonly string[];
  /** Whether text messages are decoded; without it they are only counted. */
  readonly wantsText?: boolean;
  /** Note how late each frame is. */
  readonly grid?: Grid;
}

/** When frames are due from a server that sends `leadMs` ahead in batches of `batchMs`. */
export interface Grid {
  readonly leadMs: number;
  readonly batchMs: number;
  /** A listener's frames of its first so many ms are not counted; default 0. */
  readonly settleMs?: number;
  /** Frames are counted only from the `anchor` command on, against the server's playhead. */
  readonly isAnchored?: boolean;
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
  /** In the seconds that the host of a virtual machine left alone (undisturbed.ts). */
  readonly undisturbed: {
    readonly frames: number;
    /** null = no frames: NaN does not come through as it is. */
    readonly p99Ms: number | null;
    readonly maxMs: number;
  };
}

/** How the frames of a group's listeners lie against the server's own timeline, since they were anchored to it. */
export interface GridSummary {
  readonly listeners: number;
  /** The longest time that one listener was watched, ms. */
  readonly spanMs: number;
  /** From when a frame may leave (its playout less the lead) to its arrival; up to a batch by design. */
  readonly delayP99Ms: number;
  /** Slope of arrival against the grid, of all listeners together; positive = the server is slow. */
  readonly driftPpm: number;
  /** The slope furthest from 0 of a single listener, ppm. */
  readonly worstDriftPpm: number;
  /** Frames that came before their lead. */
  readonly earlyFrames: number;
  /** The furthest that a frame came before its lead, ms; 0 = none did. */
  readonly earliestMs: number;
}

export interface AnchorResult {
  readonly anchored: number;
  /** The longest round trip that an anchor was taken with: it may be that much too early, ms. */
  readonly worstRoundTripMs: number;
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

/** A text in tokens; the last of them completes its first sentence. */
export interface BoundaryArgs {
  readonly group: string;
  readonly rounds: number;
  /** Tokens up to the one that completes a sentence, which is the last; `{key}` becomes the round's key. */
  readonly tokens: readonly string[];
  /** Each round is one `speak` with the only token, for who takes no tokens: it tells of its end without naming it. */
  readonly isSpeak?: boolean;
  readonly voiceId: string;
  /** Pause before the last token, ms. */
  readonly pauseMs: number;
  /** Longest wait for the end of the utterance, ms. */
  readonly deadlineMs: number;
}

export interface BoundarySample {
  readonly key: string;
  /** Just before the last token was written. */
  readonly sentMs: number;
  /** Of that the gateway's own part, as its waterfall tells it: sentence cut -> request written. null: it tells none. */
  readonly gatewayMs: number | null;
}

export interface BoundaryResult {
  readonly samples: BoundarySample[];
  /** Rounds whose utterance did not end in time. */
  readonly failed: number;
}

export interface LoadCommands {
  open(args: OpenArgs): Promise<{ opened: number; failed: number }>;
  send(args: { group: string; messages: readonly string[] }): null;
  counters(args: { group: string }): Counters;
  lateness(args: { group: string }): LatenessSummary;
  /** Asks where the server's playhead is (`ping`) and hangs each connection's grid on that; wants texts. */
  anchor(args: { group: string }): Promise<AnchorResult>;
  grid(args: { group: string }): GridSummary;
  /**
   * Hangs each grid on the earliest frame of the next `ms`, which has to be calm: after a pause of the speech, frames are
   * no more where their number says.
   */
  rebase(args: { group: string; ms: number }): Promise<null>;
  /** Frames that came so far are not in the next `lateness`, nor in the delays of `grid`. */
  restart(args: { group: string }): null;
  /** The group's connections stop reading, for good. */
  stall(args: { group: string }): null;
  turns(args: TurnArgs): Promise<TurnResult>;
  interrupts(args: InterruptArgs): Promise<InterruptResult>;
  boundaries(args: BoundaryArgs): Promise<BoundaryResult>;
  close(args: { group: string }): null;
}

// ---- hostile clients -------------------------------------------------------------------------------------------

export interface AttackArgs {
  readonly kind: HostileKind;
  readonly port: number;
  readonly count: number;
  /** Over which they come, ms. */
  readonly rampMs: number;
  /** They leave after so long, whatever becomes of the bench, ms. */
  readonly lifeMs: number;
  /** A token of the gateway, for kinds that have one. */
  readonly token: string;
  /** One whose signature does not hold. */
  readonly badToken: string;
  /** Sessions that speak, `NAME-0` and so on, for who listens to them. */
  readonly sessions: number;
  readonly sessionName: string;
}

export interface AttackCounters {
  /** TCP connections now. */
  readonly connected: number;
  /** TCP connections since the attack began. */
  readonly connections: number;
  /** Of them, those that are over: the gateway has ended them, or refused what they asked for. */
  readonly ended: number;
  /** Connections that could not be made. */
  readonly failed: number;
  /** First answers by their HTTP status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** What was written after the first piece of a connection: one a second of each. */
  readonly writes: number;
  readonly readBytes: number;
  /** Errors that the gateway said to those that flood in `crowd`, by their code. */
  readonly codes: Readonly<Record<string, number>>;
}

export interface HostileCommands {
  /** Begins an attack, beside those of other kinds; the one before it of its kind has to be over. */
  attack(args: AttackArgs): null;
  attackers(kind: HostileKind): AttackCounters;
  /** All leave at once, by a reset. */
  leave(): null;
}
