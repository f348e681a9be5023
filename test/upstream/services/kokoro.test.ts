import { describe, expect, it } from "vitest";
import { KOKORO_VOICE, kokoro } from "../../kit/vendors/kokoro.ts";
import { bytesOf, speak } from "../../kit/vendors/spoken.ts";
import { wordTimes } from "./rig.ts";
import { behavesAsTimed, type TimedService, timedService } from "./timed-services.ts";

const KOKORO: TimedService = {
  service: "kokoro",
  script: kokoro,
  key: "",
  voice: KOKORO_VOICE,
  nativeRate: 24_000,
  hasChunks: true,
  unknownVoice: { code: "upstream_invalid", hint: /expected a voice/ },
};
const said = timedService(KOKORO);

describe("Kokoro-FastAPI", () => {
  behavesAsTimed(KOKORO);

  it("gets speed, its letter for the language, and its own words for pauses", async () => {
    const text = 'Wait <break time="500ms"/> here.';
    const { recorder, request } = await said({}, { text, voiceSettings: { speed: 1.2 }, languageCode: "en" });
    expect(recorder.failure).toBeNull();
    expect(request?.json).toMatchObject({ input: "Wait [pause:0.5s] here.", speed: 1.2, lang_code: "a" });
  });

  it("names a language that it has not", async () => {
    const { recorder, request } = await said({}, { languageCode: "de" });
    expect(recorder.heads[0]?.ignored).toEqual(["language_code"]);
    expect(request?.json).not.toHaveProperty("lang_code");
    expect((await said({}, { languageCode: "es-MX" })).request?.json).toMatchObject({ lang_code: "e" });
  });

  it("may be asked not to keep texts: it is one's own", async () => {
    expect((await said({}, { enableLogging: false })).recorder.failure).toBeNull();
  });

  it("a sentence that it leaves out is missed, and nothing behind it is spoken", async () => {
    const text = "This is the first one. Then comes another one. And this is the last.";
    const losing: TimedService = {
      ...KOKORO,
      script: (options) => kokoro({ ...options, loses: /Then [^.]*\./ }),
    };
    const { recorder } = await timedService(losing)({}, { text });
    expect(recorder.failure).toMatchObject({ code: "upstream_truncated" });
  });

  it("a sentence that it speaks without times is no lost one", async () => {
    const text = "This is the first one. Then comes another piece. And last a third.";
    const leaving: TimedService = {
      ...KOKORO,
      script: (options) => kokoro({ ...options, leavesUntimed: /Then [^.]*\./ }),
    };
    const { recorder } = await timedService(leaving)({}, { text });
    expect(recorder.failure).toBeNull();
    expect(recorder.audio.equals(bytesOf(speak(text, { sampleRate: 24_000 }).pcm))).toBe(true);
    const third = speak(text, { sampleRate: 24_000 }).words.at(-1);
    expect(wordTimes(recorder, text).at(-1)?.start).toBeCloseTo(third?.start ?? 0, 6);
  });

  it("something short that is not said is no sentence", async () => {
    const text = "This (ahem) is fine, all of it.";
    const losing: TimedService = {
      ...KOKORO,
      script: (options) => kokoro({ ...options, loses: /\(ahem\)/ }),
    };
    const { recorder } = await timedService(losing)({}, { text });
    expect(recorder.failure).toBeNull();
    expect(wordTimes(recorder, text).map(({ text: word }) => word)).toContain("ahem");
  });
});
