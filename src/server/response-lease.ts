/** How long a response over HTTP may go on: no longer than the key or token of who asked for it, or than any connection may. */
import type { Caller } from "../access/caller.ts";
import type { Door } from "../access/door.ts";
import type { GatewayError } from "../errors.ts";

export interface ResponseTerms {
  readonly door: Pick<Door, "leases" | "ages">;
  readonly caller: Caller;
  /** Throws forbidden where the key, as it is now, does not allow what the response has. */
  readonly mustStay: (caller: Caller) => void;
  /** It has no end but its token's or its age. Else what was accepted is sent to its end, as far as a lease lets it. */
  readonly isEndless: boolean;
}

/** `end`: the response has to end now. Gives what is to be called when it is over (idempotent). */
export function beginResponse(
  { door, caller, mustStay, isEndless }: ResponseTerms,
  end: (error: GatewayError) => void,
): () => void {
  const lease = caller.isAnybody
    ? null
    : door.leases.begin(caller, {
        warn: () => undefined,
        expired: isEndless ? end : () => undefined,
        revoked: end,
        mustStay,
      });
  const closeAge = isEndless ? door.ages.begin(end) : () => undefined;
  return () => {
    lease?.close();
    closeAge();
  };
}
