/** A whole answer, whatever its status, for the small things of the interface: lists of voices and models. */
import { GatewayError } from "../../errors.ts";
import type { Forwarded, ForwardHandlers } from "./forward.ts";

export interface FetchedBody {
  readonly status: number;
  /** Empty where the upstream named none. */
  readonly contentType: string;
  readonly body: Buffer;
}

const MAX_BYTES = 8 * 1024 * 1024;

/** Collects the answer of a request that `begin` makes. Rejects with what it fails with, and upstream_protocol over 8 MiB. */
export function fetchBody(begin: (handlers: ForwardHandlers) => Forwarded): Promise<FetchedBody> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    let status = 0;
    let contentType = "";
    const forwarded = begin({
      head: (answered, headers) => {
        status = answered;
        contentType = headers.find(([name]) => name === "content-type")?.[1] ?? "";
      },
      data: (piece) => {
        bytes += piece.length;
        // Good until this returns.
        if (bytes <= MAX_BYTES) pieces.push(Buffer.from(piece));
        else {
          forwarded.abort();
          reject(
            new GatewayError(
              "upstream_protocol",
              `The upstream's answer is too long: over ${MAX_BYTES} bytes`,
            ),
          );
        }
      },
      end: () => resolve({ status, contentType, body: Buffer.concat(pieces) }),
      error: reject,
    });
  });
}
