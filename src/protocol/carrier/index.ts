/** All dialects by their names. */
import { asterisk } from "./asterisk.ts";
import type { CarrierDialect, CarrierName } from "./carrier.ts";
import { exotel } from "./exotel.ts";
import { jambonz } from "./jambonz.ts";
import { plivo } from "./plivo.ts";
import { telnyx } from "./telnyx.ts";
import { signalwire, twilio } from "./twilio.ts";
import { vonage } from "./vonage.ts";

export const DIALECTS: Readonly<Record<CarrierName, CarrierDialect>> = {
  twilio,
  signalwire,
  telnyx,
  plivo,
  vonage,
  exotel,
  jambonz,
  asterisk,
};
