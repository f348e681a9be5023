import { describe, expect, it } from "vitest";
import { HUME_KEY, HUME_VOICE, hume } from "../../kit/vendors/hume.ts";
import { behavesAsTimed, type TimedService, timedService } from "./timed-services.ts";

const HUME: TimedService = {
  service: "hume",
  script: hume,
  key: HUME_KEY,
  voice: HUME_VOICE,
  nativeRate: 48_000,
  hasChunks: true,
  unknownVoice: { code: "upstream_not_found", hint: /a voice and model that it has/ },
};
const said = timedService(HUME);

describe("Hume", () => {
  behavesAsTimed(HUME);

  it("is asked for a voice of its library by name, for another by id", async () => {
    const own = await said();
    expect(own.request?.json).toMatchObject({
      utterances: [{ voice: { name: HUME_VOICE, provider: "HUME_AI" } }],
      include_timestamp_types: ["word"],
    });
    const voiceId = "5bb7de05-c8fe-426a-8fcc-ba4fc4ce9f9c";
    const { request } = await said({}, { voiceId, voiceSettings: { speed: 1.2 } });
    expect(request?.json).toMatchObject({ utterances: [{ voice: { id: voiceId }, speed: 1.2 }] });
  });
});
