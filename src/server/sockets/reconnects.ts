/**
 * A speaker that comes back while messages of its former connection still wait for their turn: what it sends now belongs
 * behind them, and so does its greeting, because only then it is known which of its texts are open.
 */
import type { Inbox } from "./inbox.ts";
import type { LiveConnection } from "./live-connection.ts";

export class Reconnects {
  /** Connections whose messages waited when it was looked at last; in the order in which that began. */
  readonly #busy = new Set<LiveConnection>();

  /** A message has come. */
  note(data: LiveConnection): void {
    if (data.inbox?.isWaiting) this.#busy.add(data);
  }

  forget(data: LiveConnection): void {
    this.#busy.delete(data);
  }

  /** The inbox that a connection's own messages come behind; null: none waits. */
  formerOf({ sessionId, returnToken }: LiveConnection): Inbox<LiveConnection> | null {
    if (returnToken === null) return null;
    let found: Inbox<LiveConnection> | null = null;
    for (const other of this.#busy) {
      const { inbox, joined } = other;
      const isIt = joined?.participant.returnToken === returnToken || other.returnToken === returnToken;
      if (inbox?.isWaiting !== true) this.#busy.delete(other);
      // The last of several: it has come back before, and waits itself.
      else if (other.sessionId === sessionId && isIt) found = inbox;
    }
    return found;
  }
}
