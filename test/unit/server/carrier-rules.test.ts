/** The settings of carriers: which are served, and by which check. */
import { describe, expect, it } from "vitest";
import { CARRIERS } from "../../../src/protocol/carrier/carrier.ts";
import { type CarrierSettings, readCarrierRules } from "../../../src/server/carriers/carrier-rules.ts";

const NONE: CarrierSettings = { carriers: "", twilioAuthToken: "", carrierToken: "", publicUrl: "" };
const ALL = [...CARRIERS, "rtp", "audiosocket"];
const read = (settings: Partial<CarrierSettings>) => readCarrierRules({ ...NONE, ...settings });

describe("carrier-token", () => {
  it("is one for all, whatever is in it", () => {
    for (const token of ["s3cret", "YWJj==", "a,b=c"]) {
      const { tokens } = read({ carrierToken: token });
      expect([...tokens.keys()]).toEqual(ALL);
      expect(new Set(tokens.values())).toEqual(new Set([token]));
    }
  });

  it("is one for each that it names", () => {
    const { tokens } = read({ carrierToken: "telnyx=abc, plivo=YWJj==" });
    expect([...tokens]).toEqual([
      ["telnyx", "abc"],
      ["plivo", "YWJj=="],
    ]);
  });

  it.each(["telnyx=abc,pigeon=def", "telnyx=", "telnyx=abc,", "telnyx"])(
    "%s is refused, without a word of a token",
    (carrierToken) => {
      expect(() => read({ carrierToken })).toThrow(
        expect.objectContaining({
          code: "invalid_config",
          field: "carrier-token",
          message: expect.not.stringContaining("abc"),
        }),
      );
    },
  );

  it("leaves all without a token where it is empty", () => {
    expect(read({}).tokens.size).toBe(0);
  });
});

describe("carriers", () => {
  it("names those that are served; empty: all", () => {
    expect([...read({}).served]).toEqual(ALL);
    expect([...read({ carriers: "twilio, rtp" }).served]).toEqual(["twilio", "rtp"]);
  });

  it("is refused where it names none that is known", () => {
    expect(() => read({ carriers: "twilio,pigeon" })).toThrow(
      expect.objectContaining({ code: "invalid_config", field: "carriers" }),
    );
  });
});

describe("twilio-auth-token", () => {
  it("needs public-url, as the Host header is the connection's own word", () => {
    expect(() => read({ twilioAuthToken: "12345" })).toThrow(
      expect.objectContaining({ code: "invalid_config", field: "public-url" }),
    );
    expect(read({ twilioAuthToken: "12345", publicUrl: "wss://a.example" }).twilioAuthToken).toBe("12345");
  });
});
