/** Where the live view gets what it shows: of this process, or of several together. */
import type { LiveView, OpenedSession, RowOrder } from "../../protocol/live-view.ts";

/** What somebody may see, and wants to. Plain data: it goes to other processes. */
export interface Look {
  readonly order: RowOrder;
  readonly prefix: string;
  readonly rows: number;
  /** A session's name has to be in all of these lists: see Caller.sessionLists. */
  readonly sessions: readonly (readonly string[])[];
}

export interface OpenLook {
  readonly name: string;
  /** Words have their text. */
  readonly showsText: boolean;
}

export interface LiveSource {
  look(look: Look): Promise<LiveView>;
  /** null: no session has this name. */
  open(look: OpenLook): Promise<OpenedSession | null>;
}
