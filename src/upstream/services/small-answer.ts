/** A small answer of a service, whole: not speech, so that it is worth a short wait and little memory. */
import { GatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import type { ResponseHeaders } from "../headers.ts";
import type { Exchange, ExchangeReceiver } from "../transport/exchange.ts";

export interface SmallAnswer {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: Buffer;
}

export interface SmallAnswerOptions {
  /** Throws as Requester.begin. */
  readonly begin: (receiver: ExchangeReceiver) => Exchange;
  readonly clock: Clock;
  /** Longest wait for all of it, a place in the queue included. */
  readonly deadlineMs: number;
  readonly maxBytes: number;
}

/** Rejects with what it fails with, upstream_timeout behind the deadline, upstream_protocol over `maxBytes`. */
export function fetchSmallAnswer({
  begin,
  clock,
  deadlineMs,
  maxBytes,
}: SmallAnswerOptions): Promise<SmallAnswer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let [bytes, status] = [0, 0];
    let headers: ResponseHeaders = {};
    const exchange = begin({
      sent: () => undefined,
      head: (answered, answeredHeaders) => {
        status = answered;
        headers = answeredHeaders;
      },
      data: (piece) => {
        bytes += piece.length;
        if (bytes > maxBytes) {
          throw new GatewayError("upstream_protocol", `The upstream's answer has over ${maxBytes} bytes`);
        }
        // Good until this returns.
        pieces.push(Buffer.from(piece));
      },
      end: () => {
        deadline.cancel();
        resolve({ status, headers, body: Buffer.concat(pieces) });
      },
      error: (error) => {
        deadline.cancel();
        reject(error);
      },
    });
    const deadline = clock.at(clock.nowMs() + deadlineMs, () => {
      exchange.fail(new GatewayError("upstream_timeout", `The upstream did not answer for ${deadlineMs} ms`));
    });
  });
}
