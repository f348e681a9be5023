import { describe, expect, it } from "vitest";
import { XAI_KEY, XAI_VOICE, xai } from "../../kit/vendors/xai.ts";
import { charactersOf } from "./rig.ts";
import { behavesAsSocket } from "./socket-services.ts";
import { behavesAsTimed, type TimedService, timedService } from "./timed-services.ts";

const XAI: TimedService = {
  service: "xai",
  socket: xai,
  key: XAI_KEY,
  voice: XAI_VOICE,
  nativeRate: 24_000,
  unknownVoice: { code: "upstream_failed", hint: /its log may say why/ },
};
const said = timedService(XAI);

describe("xAI", () => {
  behavesAsTimed(XAI);
  behavesAsSocket(XAI);

  it.each([
    ["ulaw_8000", "mulaw", "8000"],
    ["alaw_8000", "alaw", "8000"],
    ["pcm_48000", "pcm", "48000"],
  ])("%s is asked for as %s at %s", async (outputFormat, codec, rate) => {
    const { recorder, request } = await said({}, { outputFormat, languageCode: "de" });
    expect(recorder.failure).toBeNull();
    expect(Object.fromEntries(request?.query ?? [])).toEqual({
      voice: XAI_VOICE,
      language: "de",
      codec,
      sample_rate: rate,
      with_timestamps: "true",
    });
  });

  it("is asked for no times where nobody wants any", async () => {
    const { recorder, request } = await said({}, { wantsTiming: false });
    expect(request?.query.has("with_timestamps")).toBe(false);
    expect(charactersOf(recorder.chunks)).toEqual([]);
    expect(recorder.isEnded).toBe(true);
  });
});
