/**
 * How long a connection may stay. A token has two clocks: until when it opens connections (`exp`), and until when these stand:
 * `session_until`, or `seconds` from their beginning, or where it names neither, until it expires. Withdrawn and narrowed
 * keys, and withdrawn tokens, end theirs at once.
 */
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Clock, Timer } from "../kit/clock.ts";
import type { Access } from "./access.ts";
import type { Audit } from "./audit.ts";
import type { Caller } from "./caller.ts";
import { connectionEndOf } from "./connection-end.ts";

/** So long before its end a connection is warned. */
const WARN_BEFORE_MS = 60_000;
/** What was accepted before a token expired is spoken to its end, at most so long. */
const MAX_LAST_WORDS_MS = 600_000;
/** Timers of the runtime can't wait for longer than 24 days. */
const MAX_WAIT_MS = 24 * 3_600_000;

export interface LeaseHolder {
  /** The connection ends so soon unless a new token comes. */
  warn(endsInMs: number): void;
  /** Its time is over: it takes nothing new, and ends when what it says has been said. Then it closes the lease. */
  expired(error: GatewayError): void;
  /** It ends now: its key or token was withdrawn, or allows it no more, or its last words take too long. */
  revoked(error: GatewayError): void;
  /** Throws forbidden where its key, as it is now, does not allow what the connection does. */
  readonly mustStay?: (caller: Caller) => void;
}

export interface LeasesOptions {
  readonly access: Access;
  readonly audit: Audit;
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly wallMs: () => number;
}

/** The leases of all connections that came with a key or a token. Idempotent close. */
export class Leases {
  readonly #options: LeasesOptions;
  readonly #open = new Set<Lease>();

  constructor(options: LeasesOptions) {
    this.#options = options;
  }

  /** Calls the holder later, never before it returns. */
  begin(caller: Caller, holder: LeaseHolder): Lease {
    const { access, clock } = this.#options;
    const lease = new Lease({
      ...this.#options,
      caller,
      holder,
      onClose: (closed) => this.#open.delete(closed),
    });
    this.#open.add(lease);
    // The keys may have changed since the caller was let in: each reading of the file makes new grants.
    const isCurrent = access.renewed(caller)?.key?.grants === caller.key?.grants;
    if (!isCurrent) clock.at(clock.nowMs(), () => lease.recheck());
    return lease;
  }

  /** The keys are others now: who came with one that is gone has to go. */
  recheck(): void {
    for (const lease of [...this.#open]) lease.recheck();
  }

  close(): void {
    for (const lease of [...this.#open]) lease.close();
  }
}

interface LeaseOptions extends LeasesOptions {
  readonly caller: Caller;
  readonly holder: LeaseHolder;
  readonly onClose: (lease: Lease) => void;
}

export class Lease {
  readonly #options: LeaseOptions;
  readonly #begunMs: number;
  #caller: Caller;
  #timer: Timer | null = null;
  #hasWarned = false;
  /** So long before its end it warns: of a short life, half of it. */
  #warnBeforeMs = WARN_BEFORE_MS;
  /** What was accepted is still spoken: until it is closed, its key or token can be withdrawn. */
  #isExpired = false;
  #isClosed = false;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#caller = options.caller;
    this.#begunMs = options.wallMs();
    this.#begin();
  }

  /** By the keys as they are now. */
  get caller(): Caller {
    return this.#caller;
  }

  /** How long until the connection ends, ms; null: no end is set. */
  get endsInMs(): number | null {
    const endsMs = connectionEndOf(this.#caller, this.#begunMs);
    return endsMs === null ? null : Math.max(0, endsMs - this.#options.wallMs());
  }

  /** A new token of the same subject came: the end moves to where this one has it. */
  refresh(caller: Caller): void {
    this.#caller = caller;
    this.#begin();
  }

  recheck(): void {
    if (this.#isClosed) return;
    const now = this.#options.access.renewed(this.#caller);
    if (now === null) {
      this.#revoke("revoked", "Connection is closed: its key or token was withdrawn");
      return;
    }
    this.#caller = now;
    try {
      this.#options.holder.mustStay?.(now);
    } catch (thrown) {
      this.#revoke("narrowed", `Connection is closed: ${toGatewayError(thrown).message}`);
      return;
    }
    this.#wait();
  }

  #revoke(reason: string, message: string): void {
    const { audit, holder } = this.#options;
    audit.ended(this.#caller, reason);
    this.close();
    const error = new GatewayError("token_revoked", message);
    audit.sent(error);
    holder.revoked(error);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#options.onClose(this);
  }

  /** Its time is over, and what was accepted before may still be spoken. */
  #expire(): void {
    const { holder, audit, clock } = this.#options;
    audit.ended(this.#caller, "expired");
    this.#isExpired = true;
    const error = new GatewayError("token_expired", "The token has expired: come back with a new one");
    audit.sent(error);
    this.#timer = clock.at(clock.nowMs() + MAX_LAST_WORDS_MS, () => {
      this.close();
      holder.revoked(error);
    });
    holder.expired(error);
  }

  #begin(): void {
    this.#hasWarned = false;
    this.#warnBeforeMs = Math.min(WARN_BEFORE_MS, (this.endsInMs ?? Number.POSITIVE_INFINITY) / 2);
    this.#wait();
  }

  #wait(): void {
    if (this.#isExpired) return;
    this.#timer?.cancel();
    this.#timer = null;
    const endsInMs = this.endsInMs;
    if (this.#isClosed || endsInMs === null) return;
    const waitMs = this.#hasWarned ? endsInMs : Math.max(0, endsInMs - this.#warnBeforeMs);
    const { clock } = this.#options;
    this.#timer = clock.at(clock.nowMs() + shared(Math.min(waitMs, MAX_WAIT_MS)), () => this.#wake());
  }

  #wake(): void {
    const endsInMs = this.endsInMs ?? Number.POSITIVE_INFINITY;
    if (endsInMs <= 0) {
      this.#expire();
      return;
    }
    if (endsInMs <= this.#warnBeforeMs && !this.#hasWarned) {
      this.#hasWarned = true;
      this.#options.holder.warn(endsInMs);
    }
    this.#wait();
  }
}

/** In whole seconds, and then the rest: the runtime keeps a list for each length of timers, and thousands of leases begin at once. */
function shared(waitMs: number): number {
  return waitMs < 1000 ? waitMs : Math.floor(waitMs / 1000) * 1000;
}
