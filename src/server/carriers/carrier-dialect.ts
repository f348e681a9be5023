/** Which carrier a connection is, where its first messages say. */
import { GatewayError } from "../../errors.ts";
import type { CarrierDialect, CarrierName, Wire } from "../../protocol/carrier/carrier.ts";
import { DIALECTS } from "../../protocol/carrier/index.ts";
import { sniffCarrier } from "../../protocol/carrier/sniff.ts";
import { type CarrierAuth, notSigned } from "./carrier-auth.ts";

export interface CarrierKnown {
  /** As the path says; null: its first messages say. */
  readonly carrier: CarrierName | null;
  /** That was agreed on; "": none. */
  readonly subprotocol: string;
  readonly isSigned: boolean;
}

/**
 * By the connection's messages so far; null: they do not say yet. Throws carrier_protocol for those of no carrier and
 * carrier_signature for Twilio's that had to be signed.
 */
export function dialectOf(
  messages: readonly Wire[],
  { carrier, subprotocol, isSigned }: CarrierKnown,
  { twilioAuthToken }: Pick<CarrierAuth, "twilioAuthToken">,
): CarrierDialect | null {
  if (carrier !== null) return DIALECTS[carrier];
  const texts = messages.filter((message) => typeof message === "string");
  const found = sniffCarrier(subprotocol, texts);
  if (found === "more") return null;
  if (found === null) {
    throw new GatewayError("carrier_protocol", "First messages are those of no carrier that is known here");
  }
  if (found === "twilio" && twilioAuthToken !== "" && !isSigned) throw notSigned();
  return DIALECTS[found];
}
