import { ElevenLabsClient } from "@elevenlabs/elevenlabs-js";
import { describe, expect, it } from "vitest";
import { newSecret, sign } from "../../../../src/service/webhooks/signature.ts";

const { webhooks } = new ElevenLabsClient({ apiKey: "unused" });
const BODY = JSON.stringify({
  type: "flows_generation",
  event_timestamp: 1,
  data: { text: "Grüße, 世界 🎧" },
});

describe("signature", () => {
  it("is accepted by the official SDK, for text of any script", async () => {
    const secret = newSecret();
    const header = sign(BODY, { secret, timeMs: Date.now() });
    expect(await webhooks.constructEvent(BODY, header, secret)).toEqual(JSON.parse(BODY));
  });

  it("is refused by it for another body, another secret or an old time", async () => {
    const secret = newSecret();
    const header = sign(BODY, { secret, timeMs: Date.now() });
    await expect(webhooks.constructEvent(`${BODY} `, header, secret)).rejects.toThrow(/does not match/);
    await expect(webhooks.constructEvent(BODY, header, newSecret())).rejects.toThrow(/does not match/);
    const old = sign(BODY, { secret, timeMs: Date.now() - 31 * 60_000 });
    await expect(webhooks.constructEvent(BODY, old, secret)).rejects.toThrow(/tolerance/);
  });

  it("has the vendor's shape: whole seconds, lower-case hex, no spaces", () => {
    // Reckoned with: printf '1700000000.{}' | openssl dgst -sha256 -hmac wsec_a
    expect(sign("{}", { secret: "wsec_a", timeMs: 1_700_000_000_999 })).toBe(
      "t=1700000000,v0=bbfff49fa04a7e96bdbfa4b6f65533cee9bb6a5bbf63a425a5b083276f0a800d",
    );
  });

  it("has secrets that begin like the vendor's and never come twice", () => {
    const secrets = Array.from({ length: 100 }, newSecret);
    for (const secret of secrets) expect(secret).toMatch(/^wsec_[0-9a-f]{64}$/);
    expect(new Set(secrets).size).toBe(100);
  });
});
