/**
 * What the gateway itself has refused, closed or broken off, by reason: for what somebody may do or have, since it is full or shuts
 * down, since the other nodes can't be asked, or since a part of it failed. Faults of a request do not count, nor does what the
 * upstream did.
 */
import { type ErrorCode, type GatewayError, toGatewayError } from "../errors.ts";

export const OWN: ReadonlySet<ErrorCode> = new Set([
  "host_not_allowed",
  "origin_not_allowed",
  "unauthorized",
  "token_expired",
  "token_revoked",
  "forbidden",
  "budget_exhausted",
  "rate_limited",
  "connection_limit",
  "carrier_unauthorized",
  "carrier_signature",
  "queue_full",
  "sounds_full",
  "session_limit",
  "listener_limit",
  "memory_limit",
  "upload_limit",
  "too_many_refusals",
  "inbox_full",
  "slow_consumer",
  "bus_lost",
  "bus_no_answer",
  "bus_timeout",
  "bus_full",
  "bus_too_large",
  "node_version",
  "encoder_failed",
  "port_in_use",
  "draining",
  "connection_age",
  "internal",
]);

export class RefusalCounts {
  readonly #byReason = new Map<string, number>();
  /** One error may be seen at several places on its way out. */
  readonly #counted = new WeakSet<object>();

  get byReason(): ReadonlyMap<string, number> {
    return this.#byReason;
  }

  /** Somebody was refused something: each time. */
  count(reason: string, thrown: unknown): void {
    if (typeof thrown === "object" && thrown !== null) this.#counted.add(thrown);
    this.#byReason.set(reason, (this.#byReason.get(reason) ?? 0) + 1);
  }

  /** This goes out to a client: it counts where it is the gateway's own, and was not counted before. */
  sent(thrown: unknown): void {
    const isKnown = typeof thrown === "object" && thrown !== null && this.#counted.has(thrown);
    const { code } = toGatewayError(thrown);
    if (!isKnown && OWN.has(code)) this.count(code, thrown);
  }

  /** One more client gets this error, maybe beside others. */
  sentToOneMore(error: GatewayError): void {
    if (OWN.has(error.code)) this.count(error.code, error);
  }
}
