/** What an exchange (exchange.ts) is given: the request, who hears of the answer, and its bounds. */
import type { Dispatcher } from "undici";
import type { ErrorCode, GatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Governor, Wanted } from "../governor.ts";
import type { ResponseHeaders } from "../headers.ts";
import type { FaultLog } from "../vendors/fault-log.ts";
import type { Connections } from "./connections.ts";

/** Called in order: sent, head, data*, then one of end and error. `head`, `data`, `end` may throw: that is the error. */
export interface ExchangeReceiver {
  sent(): void;
  /** Turned away for too many, it waits for its turn again: `sent` follows once more. */
  turnedAway?(): void;
  head(status: number, headers: ResponseHeaders): void;
  data(piece: Buffer): void;
  end(): void;
  error(error: GatewayError): void;
}

export interface ExchangeOptions {
  readonly request: Dispatcher.DispatchOptions;
  readonly receiver: ExchangeReceiver;
  readonly governor: Governor;
  readonly wanted: Wanted;
  /**
   * How long from the beginning it may be asked again after it was turned away for too many (429), ms; 0: not at all. Only
   * where the body can be sent again.
   */
  readonly patienceMs: number;
  readonly connections: Connections;
  readonly clock: Clock;
  /** Longest silence between two pieces of the body while not paused, ms. */
  readonly timeoutMs: number;
  /** Longest wait for headers once there is a permit, ms. */
  readonly headersMs: number;
  /** Longest wait for the first piece of the body from there, ms. */
  readonly firstPieceMs: number;
  /** Hears what went wrong below HTTP. */
  readonly faults: FaultLog;
  /** Behind each piece that was read, and behind each that was held and is handed on. Must not throw. */
  readonly onRead: () => void;
  /** The connection and the permit are free again; called once. */
  readonly onReleased: () => void;
  /**
   * What this request says of the upstream, once: null = it works (the answer came to its end, or was a refusal of
   * this request alone), else how it failed. Not called where that stays open.
   */
  readonly onOutcome: (fault: ErrorCode | null) => void;
}
