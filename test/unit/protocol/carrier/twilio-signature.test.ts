/** Vectors made with the vendor's own SDK (twilio 6.2.0: getExpectedTwilioSignature, token "12345", no parameters). */
import { describe, expect, it } from "vitest";
import { isTwilioSignature, twilioSignature } from "../../../../src/protocol/carrier/twilio-signature.ts";

const authToken = "12345";
const VECTORS = [
  ["wss://example.com/media", "7PR3qMkpDyEJtMrVOY/LDyNq8J8="],
  ["wss://example.com/media/", "T+WBXwUXC0/CyoZ1DA+p9ilZORs="],
  ["https://example.com/media", "6HZQ7Cq/dSYDCAiy3qRA6PZfACI="],
] as const;
const [, signature] = VECTORS[0];

describe("twilio signatures", () => {
  it.each(VECTORS)("%s", (url, expected) => {
    expect(twilioSignature(authToken, url)).toBe(expected);
    expect(isTwilioSignature({ authToken, url, signature: expected })).toBe(true);
  });

  it("hold with and without port 443, and with no other", () => {
    expect(isTwilioSignature({ authToken, url: "wss://example.com:443/media", signature })).toBe(true);
    const withPort = twilioSignature(authToken, "wss://example.com:443/media");
    expect(isTwilioSignature({ authToken, url: "wss://example.com/media", signature: withPort })).toBe(true);
    expect(isTwilioSignature({ authToken, url: "wss://example.com:8443/media", signature })).toBe(false);
    const other = twilioSignature(authToken, "wss://example.com:8443/media");
    expect(isTwilioSignature({ authToken, url: "wss://example.com:8443/media", signature: other })).toBe(
      true,
    );
  });

  it("fail for another scheme, path, token or byte, and for none at all", () => {
    const url = "wss://example.com/media";
    expect(isTwilioSignature({ authToken, url: "https://example.com/media", signature })).toBe(false);
    expect(isTwilioSignature({ authToken, url: `${url}/`, signature })).toBe(false);
    expect(isTwilioSignature({ authToken: "12346", url, signature })).toBe(false);
    expect(isTwilioSignature({ authToken, url, signature: signature.replace("7", "8") })).toBe(false);
    expect(isTwilioSignature({ authToken, url, signature: `${signature}=` })).toBe(false);
    expect(isTwilioSignature({ authToken, url, signature: "" })).toBe(false);
  });
});
