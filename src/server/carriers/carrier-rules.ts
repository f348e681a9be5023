/** The settings that say which carriers are served, and what each of them has to show. */
import { GatewayError } from "../../errors.ts";
import { CARRIERS, type CallVia } from "../../protocol/carrier/carrier.ts";

/** Carriers that call over a WebSocket, and the two ways of a call that an HTTP request sets up before it. */
const NAMES: readonly CallVia[] = [...CARRIERS, "rtp", "audiosocket"];

/** Settings of the same names. */
export interface CarrierSettings {
  readonly carriers: string;
  readonly twilioAuthToken: string;
  readonly carrierToken: string;
  readonly publicUrl: string;
}

export interface CarrierRules {
  readonly served: ReadonlySet<CallVia>;
  /** By which Twilio signs; empty: it need not. */
  readonly twilioAuthToken: string;
  /** What the others have to show; none for a carrier that has no token. */
  readonly tokens: ReadonlyMap<CallVia, string>;
  /** What Twilio signs URLs with: `wss://host`, with a path before ours or none. */
  readonly publicUrl: string;
}

/** Throws invalid_config. */
export function readCarrierRules(settings: CarrierSettings): CarrierRules {
  const { twilioAuthToken, publicUrl } = settings;
  if (twilioAuthToken !== "" && publicUrl === "") {
    // By its Host header, a connection would choose which of the account's URLs its signature has to be for.
    throw new GatewayError(
      "invalid_config",
      "Setting public-url: empty, but twilio-auth-token is set; expected the URL that Twilio connects to, such as wss://voice.example.com",
      { field: "public-url" },
    );
  }
  return {
    served: readServed(settings.carriers),
    twilioAuthToken,
    tokens: readTokens(settings.carrierToken),
    publicUrl,
  };
}

function readServed(text: string): ReadonlySet<CallVia> {
  if (text.trim() === "") return new Set(NAMES);
  return new Set(
    entriesOf(text).map((entry) => {
      const carrier = nameOf(entry);
      if (carrier !== undefined) return carrier;
      throw new GatewayError(
        "invalid_config",
        `Setting carriers: "${entry}", expected names with commas, of ${NAMES.join(", ")}`,
        { field: "carriers" },
      );
    }),
  );
}

/** One token for all, or `telnyx=TOKEN,plivo=TOKEN`. The messages hold no part of a token. */
function readTokens(text: string): ReadonlyMap<CallVia, string> {
  if (text === "") return new Map();
  const [first = ""] = text.split("=", 1);
  if (nameOf(first.trim()) === undefined) return new Map(NAMES.map((known) => [known, text]));
  return new Map(
    entriesOf(text).map((entry) => {
      const [name = ""] = entry.split("=", 1);
      const carrier = nameOf(name.trim());
      const token = entry.slice(name.length + 1).trim();
      if (carrier !== undefined && token !== "") return [carrier, token];
      throw new GatewayError(
        "invalid_config",
        `Setting carrier-token: an entry is not NAME=TOKEN, expected one token for all or entries with commas, NAME of ${NAMES.join(", ")}`,
        { field: "carrier-token" },
      );
    }),
  );
}

function entriesOf(text: string): string[] {
  return text.split(",").map((entry) => entry.trim());
}

function nameOf(text: string): CallVia | undefined {
  return NAMES.find((known) => known === text);
}
