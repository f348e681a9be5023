/** A client's WebSocket as a listener; the only place that sends. Events become JSON here. */
import type { Caller } from "../../access/caller.ts";
import type { ConnectionAudit } from "../../access/connection-audit.ts";
import type { Lease } from "../../access/lease.ts";
import type { Traffic } from "../../access/traffic.ts";
import type { Delivery, Listener, SendResult } from "../../delivery/listener.ts";
import type { GatewayError } from "../../errors.ts";
import type { Event } from "../../protocol/events.ts";
import type { OffsetUnit } from "../../protocol/vocabulary.ts";
import type { Connection } from "../../session/commands.ts";
import type { Inbox } from "./inbox.ts";
import type { Refusals } from "./refusals.ts";
import { UwsBatchSocket } from "./uws-port.ts";

/** What the server library keeps for each socket. */
export interface SocketData {
  readonly sessionId: string;
  /** Who is connected; another one of the same subject after `refresh`. */
  caller: Caller;
  /** How long the caller may stay; null: no keys are set, or it has not joined. */
  lease: Lease | null;
  /** What the connection sends; null: it may send as much as it likes. */
  readonly traffic: Traffic | null;
  /** Set when the token has expired: what was accepted is still spoken, nothing new is taken. */
  expiry: GatewayError | null;
  readonly origin: string;
  readonly address: string;
  readonly query: string;
  listener: SocketListener | null;
  inbox: Inbox<SocketData> | null;
  /** null until it has joined its session, and when it has left. */
  joined: Connection | null;
  /** The `resume_token` of the connection that it goes on with. */
  resumedToken: string | null;
  readonly refusals: Refusals;
  /** null: nothing was refused for what its caller may do. */
  audit: ConnectionAudit | null;
}

export class SocketListener extends UwsBatchSocket<SocketData, Delivery> implements Listener {
  #offsets: OffsetUnit = "utf16";

  deliver(batch: readonly Delivery[], offsets: OffsetUnit): SendResult {
    this.#offsets = offsets;
    return this.sendBatch(batch);
  }

  notify(event: Event): SendResult {
    return this.sendOne(JSON.stringify(event));
  }

  /** Frames are binary messages, events are text. */
  protected override hand(item: Delivery): number {
    return item instanceof Uint8Array
      ? this.ws.send(item, true)
      : this.ws.send(item.json(this.#offsets), false);
  }
}
