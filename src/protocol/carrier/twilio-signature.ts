/**
 * The `X-Twilio-Signature` of a WebSocket's upgrade request: base64 of HMAC-SHA1 over the whole URL, keyed with the
 * account's auth token (https://www.twilio.com/docs/usage/security). The URL is the public one with the scheme `wss`; a
 * GET has no parameters of its own to sign.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

interface SignedUpgrade {
  readonly authToken: string;
  /** As Twilio has it, e.g. `wss://example.com/carrier/twilio`. */
  readonly url: string;
  /** The header's value; empty where there is none. */
  readonly signature: string;
}

/** The signature that Twilio gives to an upgrade at `url`. */
export function twilioSignature(authToken: string, url: string): string {
  return createHmac("sha1", authToken).update(url, "utf8").digest("base64");
}

/** Whether the signature is Twilio's for this URL, with or without its port 443. Takes the same time for any signature. */
export function isTwilioSignature({ authToken, url, signature }: SignedUpgrade): boolean {
  const withoutPort = url.replace(/^(wss:\/\/[^/?#]+?):443(?=[/?#]|$)/, "$1");
  const withPort = withoutPort.replace(/^(wss:\/\/(?:\[[^\]]*\]|[^/?#:]+))(?=[/?#]|$)/, "$1:443");
  const matches = [url, withoutPort, withPort].map((candidate) =>
    isSame(twilioSignature(authToken, candidate), signature),
  );
  return matches.includes(true);
}

function isSame(expected: string, actual: string): boolean {
  const a = Buffer.from(expected, "utf8");
  const b = Buffer.from(actual, "utf8");
  return a.length === b.length && timingSafeEqual(a, b);
}
