import { describe, expect, it } from "vitest";
import { SONIOX_KEY, SONIOX_VOICE, soniox } from "../../kit/vendors/soniox.ts";
import { behavesAsSocket } from "./socket-services.ts";
import { behavesAsTimed, type TimedService, timedService } from "./timed-services.ts";

const SONIOX: TimedService = {
  service: "soniox",
  socket: soniox,
  key: SONIOX_KEY,
  voice: SONIOX_VOICE,
  nativeRate: 24_000,
  unknownVoice: { code: "upstream_invalid", hint: /expected a voice/ },
};
const said = timedService(SONIOX);

describe("Soniox", () => {
  behavesAsTimed(SONIOX);
  behavesAsSocket(SONIOX);

  it("gets its key, what it is asked for and the text in messages", async () => {
    const { recorder, request } = await said({}, { voiceSettings: { speed: 1.1 }, languageCode: "es" });
    expect(recorder.failure).toBeNull();
    expect(request?.json).toEqual({
      api_key: SONIOX_KEY,
      stream_id: "1",
      model: "tts-rt-v1",
      voice: SONIOX_VOICE,
      language: "es",
      audio_format: "pcm_s16le",
      sample_rate: 24_000,
      speed: 1.1,
      return_timestamps: true,
    });
    expect(JSON.stringify(request?.headers)).not.toContain(SONIOX_KEY);
  });

  it("a text that takes longer than its streams last is refused before anything is asked", async () => {
    const { recorder, request } = await said({}, { text: "Well. ".repeat(300) });
    expect(recorder.failure).toMatchObject({ code: "text_too_long", field: "text" });
    expect(request).toBeUndefined();
  });
});
