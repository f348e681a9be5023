/**
 * Whom the gateway takes calls from: Twilio by its signature, the other carriers by a token. Where neither is set up,
 * everybody who reaches the port.
 */
import type { HttpRequest } from "uWebSockets.js";
import { createHash, timingSafeEqual } from "node:crypto";
import { GatewayError } from "../../errors.ts";
import type { CarrierName } from "../../protocol/carrier/carrier.ts";
import { isTwilioSignature } from "../../protocol/carrier/twilio-signature.ts";

export interface CarrierAuth {
  /** Empty: Twilio need not sign. */
  readonly twilioAuthToken: string;
  /** Empty: no token is asked for. */
  readonly carrierToken: string;
  /** How carriers reach the gateway, `wss://host` with a path before ours or none; empty: by their Host header. */
  readonly publicUrl: string;
}

/** A carrier's request to connect. */
export interface CarrierRequest {
  /** null where the carrier is found out later. */
  readonly carrier: CarrierName | null;
  readonly path: string;
  /** The query of the URL, still encoded, without the question mark. */
  readonly query: string;
  readonly headers: ReadonlyMap<string, string>;
}

/** Only before the request's handler returns. */
export function carrierRequestOf(req: HttpRequest, carrier: CarrierName | null): CarrierRequest {
  const headers = new Map<string, string>();
  req.forEach((name, value) => {
    headers.set(name, value);
  });
  return { carrier, path: req.getUrl(), query: req.getQuery() ?? "", headers };
}

/**
 * Whether the request is signed by Twilio. Throws carrier_signature and carrier_unauthorized for one that may not
 * connect; where the carrier is not known yet, an unsigned one may still turn out to be Twilio and has to be refused then.
 */
export function admitCarrier(request: CarrierRequest, auth: CarrierAuth): { readonly isSigned: boolean } {
  const { carrier } = request;
  const signature = request.headers.get("x-twilio-signature") ?? "";
  const mustSign =
    auth.twilioAuthToken !== "" && (carrier === "twilio" || (carrier === null && signature !== ""));
  if (mustSign) {
    const url = urlOf(request, auth.publicUrl);
    if (!isTwilioSignature({ authToken: auth.twilioAuthToken, url, signature })) throw notSigned();
    return { isSigned: true };
  }
  if (auth.carrierToken !== "" && !tokensOf(request).some((token) => isSame(token, auth.carrierToken))) {
    throw new GatewayError(
      "carrier_unauthorized",
      "Carrier shows no valid token: expected it as a bearer token, as basic password, or as token= in the URL",
    );
  }
  return { isSigned: false };
}

export function notSigned(): GatewayError {
  return new GatewayError(
    "carrier_signature",
    "Connection is not signed by Twilio for this URL: check twilio-auth-token and public-url",
  );
}

/** As the carrier has it. */
function urlOf({ path, query, headers }: CarrierRequest, publicUrl: string): string {
  const base = publicUrl === "" ? (headers.get("host") ?? "") : publicUrl;
  const origin = base.replace(/^(?:wss?|https?):\/\//, "").replace(/(?<!\/)\/+$/, "");
  return `wss://${origin}${path}${query === "" ? "" : `?${query}`}`;
}

/** Every place where a carrier can be made to show a token. */
function tokensOf({ query, headers }: CarrierRequest): string[] {
  const [scheme = "", value = ""] = (headers.get("authorization") ?? "").split(" ", 2);
  const credentials = scheme.toLowerCase() === "basic" ? Buffer.from(value, "base64").toString("utf8") : "";
  return [
    scheme.toLowerCase() === "bearer" ? value : "",
    credentials.slice(credentials.indexOf(":") + 1),
    headers.get("x-telnyx-streaming-auth-token") ?? "",
    new URLSearchParams(query).get("token") ?? "",
  ];
}

/** Takes the same time for any token: their digests are of one length. */
function isSame(token: string, expected: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(token), digest(expected));
}
