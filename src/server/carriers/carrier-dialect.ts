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
 * What it returns is asked with each message until it answers, and throws carrier_protocol for those of no carrier and
 * carrier_signature for Twilio's that had to be signed. It keeps messages only until then.
 */
export function dialectFinder(
  { carrier, subprotocol, isSigned }: CarrierKnown,
  { twilioAuthToken }: Pick<CarrierAuth, "twilioAuthToken">,
): (message: Wire) => CarrierDialect | null {
  let known = carrier;
  let texts: string[] = [];
  return (message) => {
    if (known !== null) return DIALECTS[known];
    if (typeof message === "string") texts.push(message);
    const found = sniffCarrier(subprotocol, texts);
    if (found === "more") return null;
    texts = [];
    if (found === null) {
      throw new GatewayError("carrier_protocol", "First messages are those of no carrier that is known here");
    }
    if (found === "twilio" && twilioAuthToken !== "" && !isSigned) throw notSigned();
    known = found;
    return DIALECTS[found];
  };
}
