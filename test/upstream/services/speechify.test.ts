import { describe, expect, it } from "vitest";
import { SPEECHIFY_KEY, SPEECHIFY_VOICE, speechify } from "../../kit/vendors/speechify.ts";
import { behavesAsTimed, type TimedService, timedService } from "./timed-services.ts";

const SPEECHIFY: TimedService = {
  service: "speechify",
  script: speechify,
  key: SPEECHIFY_KEY,
  voice: SPEECHIFY_VOICE,
  nativeRate: 24_000,
  hasChunks: true,
};
const said = timedService(SPEECHIFY);

describe("Speechify", () => {
  behavesAsTimed(SPEECHIFY);

  it("gets mu-law as its own format, a language with its region, and no pictures", async () => {
    const text = "Well done \u{1f44d} everybody.";
    const { recorder, request } = await said({}, { text, outputFormat: "ulaw_8000", languageCode: "en" });
    expect(recorder.failure).toBeNull();
    expect(request?.json).toMatchObject({ output_format: "ulaw_8000", language: "en-US" });
    expect(request?.text).not.toContain("\u{1f44d}");
  });

  it("a text that is too long is refused before anything is asked", async () => {
    const { recorder, request } = await said({}, { text: "a".repeat(20_001) });
    expect(recorder.failure).toMatchObject({ code: "text_too_long", field: "text" });
    expect(request).toBeUndefined();
  });

  it("says when it may be asked again", async () => {
    const { recorder } = await said({ fault: "too many" });
    expect(recorder.failure).toMatchObject({ retryAfterMs: 3000 });
  });
});
