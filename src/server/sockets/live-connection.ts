/** One client of the native protocol, whatever its messages come by. */
import type { Caller } from "../../access/caller.ts";
import type { ConnectionAudit } from "../../access/connection-audit.ts";
import type { Door } from "../../access/door.ts";
import type { Lease } from "../../access/lease.ts";
import type { Traffic } from "../../access/limits/traffic.ts";
import type { ArrivedSocket, OwnerConnection } from "../../cluster/relay/relay.ts";
import type { Listener } from "../../delivery/listener.ts";
import type { GatewayError } from "../../errors.ts";
import type { Connection } from "../../session/carry-out.ts";
import type { Inbox } from "./inbox.ts";
import { Refusals } from "./refusals.ts";

/** What a client is sent by. */
export interface ClientListener extends Listener {
  readonly isClosed: boolean;
  /** Whether the gateway has ended it: what its client still says is not wanted. */
  readonly isEnded: boolean;
  /** It is gone: nothing more is sent. */
  markClosed(): void;
  /** What is sent in `work` leaves in one system call, where there is one for it. */
  corked?(work: () => void): void;
  /** For messages of the session's node, which is another one; null: it has come from another node itself. */
  arrived(): ArrivedSocket | null;
}

/** What a client comes with. */
export interface Arrival {
  readonly sessionId: string;
  readonly caller: Caller;
  readonly origin: string;
  readonly address: string;
  /** The URL's query, without the question mark. */
  readonly query: string;
  /** null: it comes by a socket. */
  readonly http: HttpArrival | null;
}

/** What an answer over HTTP at another node joins with. Its query has what the caller's key and token set. */
export interface HttpArrival {
  /** The last event that a reader of captions has, "" for one that has none; null: the answer is audio. */
  readonly lastEventId: string | null;
}

/** One client of the native protocol, and what is known of it. */
export interface LiveConnection {
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
  readonly http: HttpArrival | null;
  listener: ClientListener | null;
  inbox: Inbox<LiveConnection> | null;
  /** null until it has joined its session, and when it has left. */
  joined: Connection | null;
  /** The `resume_token` of the connection that it goes on with. */
  returnToken: string | null;
  readonly refusals: Refusals;
  /** Its way to the session's node, where that is another one. */
  owner: OwnerConnection | null;
  /** null: nothing was refused for what its caller may do. */
  audit: ConnectionAudit | null;
}

export function newConnection(arrival: Arrival, { limits }: Pick<Door, "limits">): LiveConnection {
  // Field by field: a spread is ten times as slow, and each join makes one.
  const { sessionId, caller, origin, address, query, http } = arrival;
  return {
    sessionId,
    caller,
    origin,
    address,
    query,
    http,
    lease: null,
    traffic: limits.traffic(caller, address),
    expiry: null,
    listener: null,
    inbox: null,
    joined: null,
    returnToken: null,
    refusals: new Refusals(),
    owner: null,
    audit: null,
  };
}
