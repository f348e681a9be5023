/** A socket that speaks for a caller who is known: it counts as a connection, and lasts no longer than the caller's key or token. */
import type { Caller } from "../../access/caller.ts";
import type { Door } from "../../access/door.ts";
import type { Lease } from "../../access/lease.ts";
import type { SpeakingSocket, VendorSocket } from "../../vendor-sockets/ports.ts";
import { mustSetSame } from "../speech-access.ts";

/** Where a socket comes from, for the audit log and for tokens that pages of one origin may use. */
export interface SocketSource {
  /** Pattern of the route. */
  readonly surface: string;
  readonly address: string;
  /** The Origin header, possibly empty. */
  readonly origin: string;
}

export interface SpeakingRights {
  /** What the caller may have of what was asked for. `now`: the caller by the keys as they are. Throws forbidden. */
  readonly open: (now: () => Caller) => SpeakingSocket;
  /** Throws forbidden where the key, as it is now, does not allow what the socket speaks with. */
  readonly mustStay: (caller: Caller) => void;
}

export interface LeasedSocketOptions extends SpeakingRights {
  readonly door: Door;
  readonly source: SocketSource;
  readonly caller: Caller;
}

export class LeasedSocket implements VendorSocket {
  readonly #options: LeasedSocketOptions;
  readonly #socket: SpeakingSocket;
  /** Gives back its place among the caller's connections. */
  readonly #leave: () => void;
  #lease: Lease | null = null;

  /** Throws forbidden, connection_limit, rate_limited. */
  constructor(options: LeasedSocketOptions) {
    this.#options = options;
    const { door, source, caller, open } = options;
    this.#leave = door.limits.enter(caller, source.address);
    try {
      this.#socket = open(() => this.#lease?.caller ?? caller);
    } catch (thrown) {
      this.#leave();
      throw thrown;
    }
    if (caller.isAnybody) return;
    door.audit.admitted(caller, { ...source, sessionId: null });
    this.#lease = door.leases.begin(caller, {
      // Neither dialect has a message for it.
      warn: () => undefined,
      expired: (error) => this.#socket.expire(error),
      revoked: (error) => this.#socket.refuse(error),
      mustStay: (now) => this.#mustStay(now),
    });
  }

  receive(json: string): void {
    this.#socket.receive(json);
  }

  refuse(thrown: unknown): void {
    this.#socket.refuse(thrown);
  }

  drained(): void {
    this.#socket.drained();
  }

  closed(): void {
    this.#lease?.close();
    this.#leave();
    this.#socket.closed();
  }

  /** Throws forbidden. */
  #mustStay(now: Caller): void {
    const { caller, mustStay } = this.#options;
    now.must("speak");
    mustSetSame(now, caller);
    mustStay(now);
  }
}
