/** What the ledger is told: what each request to a speech service cost, and what was heard. No texts, no keys. */

/** The form of a line that this version writes and reads. */
export const LEDGER_VERSION = 1;

/** Who pays; empty where nobody is known. */
export interface Payer {
  /** Its id in the key file. */
  readonly key: string;
  readonly tenant: string;
}

/** How it is known what a request cost. `refused`: an error status, which is not billed. */
export type CostSource = "header" | "body" | "counted" | "refused" | "cache";

interface Spoken extends Payer {
  /** Empty: it belongs to none. */
  readonly session: string;
  /** The session's epoch, as `hello` says it. After a takeover the lines of one utterance have two. */
  readonly epoch: string;
  readonly utterance: string;
  readonly model: string;
  readonly voice: string;
}

/** One request that has left, or that the phrase cache answered. */
export interface RequestEntry extends Spoken {
  readonly type: "request";
  readonly upstream: string;
  readonly region: string;
  /** Code points of its text; null: nobody has counted them. */
  readonly chars_sent: number | null;
  /** null: the upstream has not said it. */
  readonly chars_billed: number | null;
  readonly source: CostSource;
  /** Length of the audio that came; null: it is not known. */
  readonly audio_ms: number | null;
  readonly cached: boolean;
  /** From 1. */
  readonly try: number;
  /** `done`, `aborted`, or the code of its error. */
  readonly outcome: string;
  readonly request_id: string | null;
}

/** An utterance is over. One that was interrupted and goes on is over twice: each time with what was heard since. */
export interface HeardEntry extends Spoken {
  readonly type: "heard";
  readonly outcome: string;
  /** UTF-16 code units of the client's text, as in `characters_spoken`. */
  readonly chars_heard: number;
  readonly heard_ms: number;
  /** How that is known: as in receipts. */
  readonly source: string;
}

export type LedgerEntry = RequestEntry | HeardEntry;

/** What every line has beside its entry. */
export interface LineFacts {
  readonly v: number;
  /** Unique among all nodes. */
  readonly id: string;
  /** Rises by one with each line of a process: their order, whatever the clock says. */
  readonly seq: number;
  /** ISO 8601. */
  readonly at: string;
  readonly node: string;
}

export interface LedgerSink {
  add(entry: LedgerEntry): void;
}
