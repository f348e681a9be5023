import { describe, expect, it } from "vitest";
import { INWORLD_KEY, INWORLD_VOICE, inworld } from "../../kit/vendors/inworld.ts";
import { behavesAsTimed, type TimedService, timedService } from "./timed-services.ts";

const INWORLD: TimedService = {
  service: "inworld",
  script: inworld,
  key: INWORLD_KEY,
  voice: INWORLD_VOICE,
  nativeRate: 24_000,
  hasChunks: true,
  unknownVoice: { code: "upstream_not_found", hint: /a voice and model that it has/ },
};
const said = timedService(INWORLD);

describe("Inworld", () => {
  behavesAsTimed(INWORLD);

  it.each([
    ["ulaw_8000", "MULAW", 8000],
    ["alaw_8000", "ALAW", 8000],
    ["pcm_32000", "PCM", 32_000],
    ["mp3_44100_128", "PCM", 44_100],
  ])("%s is asked for as %s at %i", async (outputFormat, audioEncoding, sampleRateHertz) => {
    const { recorder, request } = await said({}, { outputFormat });
    expect(recorder.failure).toBeNull();
    expect(request?.json).toMatchObject({ audioConfig: { audioEncoding, sampleRateHertz } });
  });

  it("gets speed, a language with its region, and normalization; its audio does not wait for times", async () => {
    const { recorder, request } = await said(
      {},
      {
        voiceSettings: { speed: 0.9 },
        languageCode: "de",
        applyTextNormalization: "off",
      },
    );
    expect(request?.json).toMatchObject({
      language: "de-DE",
      audioConfig: { speakingRate: 0.9 },
      applyTextNormalization: "OFF",
      timestampType: "WORD",
      timestampTransportStrategy: "ASYNC",
    });
    expect(recorder.heads[0]?.ignored).toBeUndefined();
  });
});
