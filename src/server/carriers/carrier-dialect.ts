/** Which carrier a connection is, where its first messages say. */
import { GatewayError } from "../../errors.ts";
import type { CarrierDialect, CarrierName, Wire } from "../../protocol/carrier/carrier.ts";
import { DIALECTS } from "../../protocol/carrier/index.ts";
import { sniffCarrier } from "../../protocol/carrier/sniff.ts";
import type { Admission } from "./carrier-auth.ts";

export interface CarrierKnown {
  /** As the path says; null: its first messages say. */
  readonly carrier: CarrierName | null;
  /** That was agreed on; "": none. */
  readonly subprotocol: string;
  readonly admission: Pick<Admission, "mustBe">;
}

/**
 * By the connection's messages so far; null: they do not say yet. Throws carrier_protocol for those of no carrier, and for
 * a carrier's that the connection was not let in for what its admission does.
 */
export function dialectOf(
  messages: readonly Wire[],
  { carrier, subprotocol, admission }: CarrierKnown,
): CarrierDialect | null {
  if (carrier !== null) return DIALECTS[carrier];
  const texts = messages.filter((message) => typeof message === "string");
  const found = sniffCarrier(subprotocol, texts);
  if (found === "more") return null;
  if (found === null) {
    throw new GatewayError("carrier_protocol", "First messages are those of no carrier that is known here");
  }
  admission.mustBe(found);
  return DIALECTS[found];
}
