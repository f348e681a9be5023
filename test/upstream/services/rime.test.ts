import { describe, expect, it } from "vitest";
import { RIME_KEY, RIME_VOICE, rime } from "../../kit/vendors/rime.ts";
import { behavesAsSocket } from "./socket-services.ts";
import { behavesAsTimed, type TimedService, timedService } from "./timed-services.ts";

const RIME: TimedService = {
  service: "rime",
  socket: rime,
  key: RIME_KEY,
  voice: RIME_VOICE,
  nativeRate: 24_000,
};
const said = timedService(RIME);

describe("Rime", () => {
  behavesAsTimed(RIME);
  behavesAsSocket(RIME);

  it.each([
    ["ulaw_8000", "mulaw", "8000"],
    ["alaw_8000", "pcm", "8000"],
    ["pcm_48000", "pcm", "48000"],
  ])("%s is asked for as %s at %s", async (outputFormat, audioFormat, samplingRate) => {
    const { recorder, request } = await said({}, { outputFormat });
    expect(recorder.failure).toBeNull();
    expect(Object.fromEntries(request?.query ?? [])).toEqual({
      speaker: RIME_VOICE,
      modelId: "arcana",
      audioFormat,
      samplingRate,
    });
  });

  it("gets a language in three letters; what it can't do is named", async () => {
    const { recorder, request } = await said({}, { languageCode: "es-MX", seed: 7, modelId: "coda" });
    expect(Object.fromEntries(request?.query ?? [])).toMatchObject({ lang: "spa", modelId: "coda" });
    expect(recorder.heads).toMatchObject([{ ignored: ["seed"] }]);
  });
});
