import { describe, expect, it } from "vitest";
import { CARTESIA_KEY, CARTESIA_VOICE, cartesia, FIRST_PHONEME } from "../../kit/vendors/cartesia.ts";
import { speak } from "../../kit/vendors/spoken.ts";
import { charactersOf, TEXT } from "./rig.ts";
import { behavesAsTimed, type TimedService, timedService } from "./timed-services.ts";

const CARTESIA: TimedService = {
  service: "cartesia",
  script: cartesia,
  key: CARTESIA_KEY,
  voice: CARTESIA_VOICE,
  nativeRate: 24_000,
};
const said = timedService(CARTESIA);

describe("Cartesia", () => {
  behavesAsTimed(CARTESIA);

  it.each([
    ["ulaw_8000", "pcm_mulaw", 8000],
    ["alaw_8000", "pcm_alaw", 8000],
    ["pcm_48000", "pcm_s16le", 48_000],
    ["pcm_32000", "pcm_s16le", 44_100],
    ["opus_48000_64", "pcm_s16le", 48_000],
    ["mp3_44100_128", "pcm_s16le", 44_100],
  ])("%s is asked for as %s at %i", async (outputFormat, encoding, rate) => {
    const { recorder, request } = await said({}, { outputFormat });
    expect(recorder.failure).toBeNull();
    expect(request?.json).toMatchObject({ output_format: { container: "raw", encoding, sample_rate: rate } });
    expect(recorder.bytes).toBeGreaterThan(1000);
  });

  it("converts to a rate that it does not make: as long as it was", async () => {
    const { recorder } = await said({}, { outputFormat: "pcm_32000" });
    expect(recorder.bytes / 64_000).toBeCloseTo(speak(TEXT, { sampleRate: 44_100 }).seconds, 3);
  });

  it("gets speed and language; what it can't do is named", async () => {
    const voiceSettings = { speed: 1.1, stability: 0.4, style: 0.2 };
    const { recorder, request } = await said({}, { voiceSettings, languageCode: "en", seed: 7 });
    expect(request?.json).toMatchObject({ language: "en", generation_config: { speed: 1.1 } });
    expect(recorder.heads).toMatchObject([
      { ignored: ["voice_settings.stability", "voice_settings.style", "seed"] },
    ]);
  });

  it("gets pauses, and no other tags: its words are found all the same", async () => {
    const text = 'Wait <break time="1s"/> for <say-as interpret-as="characters">it</say-as>.';
    const { recorder, request } = await said({}, { text });
    expect((request?.json as { transcript?: string } | undefined)?.transcript).toMatch(
      /^Wait <break time="1s"\/> for +it +\.$/,
    );
    const spoken = charactersOf(recorder.chunks).map(({ character }) => character);
    expect(spoken.join("").trim()).toBe(text);
    expect(recorder.heads[0]?.ignored).toEqual(["text (markup)"]);
  });

  it.each(["before their words", "behind their words"] as const)(
    "phonemes %s place the characters inside each word, whose own times stay as they are",
    async (phonemes) => {
      const service = timedService({ ...CARTESIA, script: (options) => cartesia({ ...options, phonemes }) });
      const { recorder, request } = await service();
      expect(request?.json).toMatchObject({ add_phoneme_timestamps: true });
      const characters = charactersOf(recorder.chunks);
      const said = characters.map(({ character }) => character).join("");
      let halves = 0;
      for (const { text, start, end } of speak(TEXT, { sampleRate: 24_000 }).words) {
        const at = said.indexOf(text);
        expect(characters[at]?.start).toBeCloseTo(start, 6);
        expect(characters[at + text.length - 1]?.end).toBeCloseTo(end, 6);
        if (text.length % 2 === 1) continue;
        halves += 1;
        const second = characters[at + text.length / 2];
        expect(second?.start).toBeCloseTo(start + FIRST_PHONEME * (end - start), 6);
      }
      expect(halves).toBeGreaterThan(1);
    },
  );

  it("its words in another order are no other rate", async () => {
    const say = "and sleeps lazy dog over the jumps fox brown quick The".split(" ");
    const { recorder } = await said({ say });
    expect(recorder.failure).toBeNull();
    expect(recorder.isEnded).toBe(true);
  });

  it("is asked for no times where nobody wants any", async () => {
    const { recorder, request } = await said({}, { wantsTiming: false });
    expect(request?.json).toMatchObject({ add_timestamps: false });
    expect(charactersOf(recorder.chunks)).toEqual([]);
    expect(recorder.isEnded).toBe(true);
  });

  it("a voice that is not listed is refused before anything is asked", async () => {
    const { recorder, request } = await said({}, {}, { voices: ["b*"] });
    expect(recorder.failure).toMatchObject({ code: "unknown_voice", field: "voice_id" });
    expect(request).toBeUndefined();
  });

  it("zero retention is refused before anything is asked", async () => {
    const { recorder, request } = await said({}, { enableLogging: false });
    expect(recorder.failure).toMatchObject({ code: "upstream_invalid", field: "enable_logging" });
    expect(request).toBeUndefined();
  });
});
