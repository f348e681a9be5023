/** One address for every carrier: the dialect is known from what each says first. */
import { describe, expect, it } from "vitest";
import { DIALECTS } from "../../../../src/protocol/carrier/index.ts";
import { sniffCarrier } from "../../../../src/protocol/carrier/sniff.ts";
import { WIRINGS, WiredCall } from "./wired-call.ts";

describe("sniffCarrier", () => {
  it.each(WIRINGS)("%s, from its first messages", (_, carrier, options) => {
    const texts = new WiredCall(carrier, options).peer.opening().filter((wire) => typeof wire === "string");
    const verdicts = texts.map((__, i) => sniffCarrier("", texts.slice(0, i + 1)));
    expect(verdicts.at(-1)).toBe(carrier);
    expect(verdicts.slice(0, -1).every((verdict) => verdict === "more")).toBe(true);
  });

  it.each(Object.values(DIALECTS))("$name, from its subprotocols", ({ name, subprotocols }) => {
    expect(subprotocols.map((subprotocol) => sniffCarrier(subprotocol, []))).toEqual(
      subprotocols.map(() => name),
    );
  });

  it("takes Twilio's messages with ids that are not Twilio's for SignalWire's", () => {
    const start = (streamSid: string) => [
      JSON.stringify({ event: "start", start: { streamSid, callSid: "c" } }),
    ];
    expect(sniffCarrier("", start(`MZ${"0a".repeat(16)}`))).toBe("twilio");
    expect(sniffCarrier("", start(`MZ${"0a".repeat(15)}`))).toBe("signalwire");
  });

  it("gives up after two messages, or at once for what no carrier says", () => {
    const connected = '{"event":"connected"}';
    expect(sniffCarrier("", [])).toBe("more");
    expect(sniffCarrier("", [connected])).toBe("more");
    expect(sniffCarrier("", [connected, connected])).toBeNull();
    expect(sniffCarrier("", ["hello"])).toBeNull();
    expect(sniffCarrier("", ["[]"])).toBeNull();
    expect(sniffCarrier("", ['{"event":"start"}'])).toBeNull();
    expect(sniffCarrier("", ['{"event":"start","start":{"who":"knows"}}'])).toBeNull();
    expect(sniffCarrier("", [" ".repeat(2_000_000)])).toBeNull();
  });
});
