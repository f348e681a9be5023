/**
 * What the live view of operators says, and what it is asked: the one shape of /admin/state, of /admin/live and of what workers
 * answer. Times with `_ms` beside `playhead_ms` are places on the session's timeline.
 */
import { z } from "zod";

/** Rows of sessions in one view. */
export const MAX_ROWS = 500;
/** Budgets in one view: those that are nearest to their limits. */
export const MAX_BUDGETS = 50;

export const ROW_ORDERS = ["lag", "name", "age", "underruns", "drops"] as const;

/** Which sessions somebody looks at. */
const ASKED = {
  order: z.enum(ROW_ORDERS).default("lag"),
  /** What names begin with. */
  prefix: z.string().max(64).default(""),
  rows: z.coerce.number().int().min(1).max(MAX_ROWS).default(100),
  /** The one that is opened; empty: none. */
  session: z.string().max(64).default(""),
};

/** The query of /admin/state. */
export const LOOK_QUERY = z.object(ASKED);

/** What a watcher says on /admin/live. */
export const WATCH = z.strictObject({ type: z.literal("watch"), ...ASKED });
export type Watch = z.input<typeof WATCH>;
export type RowOrder = (typeof ROW_ORDERS)[number];

/** A gateway process. */
export interface LiveNode {
  readonly name: string;
  readonly version: string;
  readonly uptime_s: number;
  readonly is_draining: boolean;
  /** How late the event loop was since the last look, worst of a hundred; null: nobody has looked for long enough. */
  readonly loop_delay_ms: number | null;
  /** Percent of one core that was used since the last look; null: there was no look before. */
  readonly cpu_percent: number | null;
  readonly memory_bytes: number;
  readonly heap_bytes: number;
  readonly sessions: number;
  readonly connections: number;
}

/** Another node of the cluster: its sessions are in a live view of its own. */
export interface OtherNode {
  readonly name: string;
  readonly state: string;
  /** 0 is idle, 1 is full. */
  readonly load: number;
  readonly is_draining: boolean;
}

/** A region of the first upstream, or another speech service. */
export interface LiveUpstream {
  readonly name: string;
  readonly is_healthy: boolean;
  /** Requests under way, and those that wait for a place. */
  readonly open: number;
  readonly queued: number;
  /** Most that may be open at once. */
  readonly limit: number;
  readonly requests: number;
  readonly failovers: number;
  /** Requests that failed in the last minute because of it. */
  readonly errors_last_minute: number;
}

/** A bound of a key or a tenant. */
export interface LiveBudget {
  /** `key app`, `tenant acme`. */
  readonly of: string;
  readonly what: string;
  readonly used: number;
  readonly limit: number;
  /** Four fifths of it are used. */
  readonly is_low: boolean;
}

export interface LiveSession {
  readonly name: string;
  /** At which process it is. */
  readonly node: string;
  /** Empty: nobody's. */
  readonly tenant: string;
  readonly age_s: number;
  /** `waiting`: something is to be said, and nothing is heard. */
  readonly state: "speaking" | "waiting" | "idle";
  /** Audio that is made and not heard yet. */
  readonly lead_ms: number;
  /** Utterances that are not over. */
  readonly utterances: number;
  /** The first one's voice; empty: none, or the default one that is not known yet. Services' voices begin with their name. */
  readonly voice: string;
  readonly listeners: number;
  readonly speakers: number;
  readonly calls: number;
  /** Lag of the listener that is furthest behind. */
  readonly lag_ms: number;
  /** Bytes that wait for the listener with the most. */
  readonly queue_bytes: number;
  readonly dropped_frames: number;
  readonly underruns: number;
  readonly interrupts: number;
}

/** What a listener gets its audio by. */
export const SURFACES = ["socket", "audio", "captions", "call", "other node"] as const;
export type Surface = (typeof SURFACES)[number];

export interface LiveListener {
  readonly id: string;
  readonly surface: Surface;
  readonly role: string;
  readonly format: string;
  readonly policy: string;
  /** Where on the timeline it is, and how far that is behind the playhead. */
  readonly at_ms: number;
  readonly lag_ms: number;
  /** `ack`: by its own word; `sent`: by what its socket has taken. */
  readonly lag_by: "ack" | "sent";
  readonly queue_bytes: number;
  readonly dropped_frames: number;
  /** How long ago it has acknowledged something; null: never. */
  readonly acknowledged_ms_ago: number | null;
  /** Its last answer to a ping; null: it has none, or none is known here. */
  readonly round_trip_ms: number | null;
}

export interface LiveSpan {
  readonly start_ms: number;
  readonly end_ms: number;
}

export interface LiveWord extends LiveSpan {
  /** Empty where the grants do not allow to listen. */
  readonly text: string;
}

export interface LiveUtterance {
  readonly id: string;
  readonly state: "queued" | "speaking" | "played" | "failed";
  /** null: it has not begun. */
  readonly start_ms: number | null;
  /** null: it goes on. */
  readonly end_ms: number | null;
  readonly voice: string;
  readonly characters: number;
  /** Where one segment meets the next is a splice. */
  readonly segments: readonly LiveSpan[];
  /** None where no listener asks for times. */
  readonly words: readonly LiveWord[];
}

/** Something that has happened to the session. */
export interface LiveMoment {
  readonly type: "done" | "interrupted" | "failed" | "cancelled" | "recovered" | "underrun";
  readonly at_ms: number;
  /** Empty: it is about none. */
  readonly utterance_id: string;
  /** Where the utterance that is over began. */
  readonly start_ms: number;
}

/** One session, as it runs. */
export interface OpenedSession {
  readonly session: LiveSession;
  /** What is heard now by a listener without delay, and whether that moves. */
  readonly playhead_ms: number;
  readonly is_moving: boolean;
  /** End of the audio that is made. */
  readonly made_ms: number;
  /** Whether words have their text. */
  readonly shows_text: boolean;
  readonly utterances: readonly LiveUtterance[];
  /** The ones that are furthest behind. */
  readonly listeners: readonly LiveListener[];
  readonly moments: readonly LiveMoment[];
}

export interface LiveView {
  readonly nodes: readonly LiveNode[];
  readonly other_nodes: readonly OtherNode[];
  readonly upstreams: readonly LiveUpstream[];
  readonly budgets: readonly LiveBudget[];
  readonly sessions: {
    /** Those that the watcher may see, and those of them that were asked for. */
    readonly total: number;
    readonly matching: number;
    readonly rows: readonly LiveSession[];
  };
}

/** What a watcher is sent. `opened` null: there is no such session, or none that the watcher may see. */
export type LiveMessage =
  | { readonly type: "view"; readonly view: LiveView }
  | { readonly type: "session"; readonly name: string; readonly opened: OpenedSession | null };
