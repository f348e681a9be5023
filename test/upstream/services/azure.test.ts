import { describe, expect, it } from "vitest";
import { AZURE_KEY, AZURE_VOICE, azure } from "../../kit/vendors/azure.ts";
import { speak } from "../../kit/vendors/spoken.ts";
import { charactersOf, TEXT, wordTimes } from "./rig.ts";
import { behavesAsSocket } from "./socket-services.ts";
import { behavesAsTimed, type TimedService, timedService } from "./timed-services.ts";

const AZURE: TimedService = {
  service: "azure",
  socket: azure,
  key: AZURE_KEY,
  voice: AZURE_VOICE,
  nativeRate: 24_000,
  unknownVoice: { code: "upstream_invalid", hint: /code 1007/ },
};
const said = timedService(AZURE);

describe("Azure", () => {
  behavesAsTimed(AZURE);
  behavesAsSocket(AZURE);

  it("is not asked for 8 kHz: words lie where they are in telephone sound", async () => {
    const { recorder, request } = await said({}, { outputFormat: "ulaw_8000" });
    expect(request?.text).toContain('"outputFormat":"raw-16khz-16bit-mono-pcm"');
    const truth = speak(TEXT, { sampleRate: 16_000 }).words;
    expect(wordTimes(recorder, TEXT).map(({ end }) => end)).toEqual(
      truth.map(({ end }) => expect.closeTo(end, 6)),
    );
  });

  it("gets speed, language and pauses; nothing else of the text is markup", async () => {
    const text = 'Tom & <b>Jerry</b> <break time="1s"/> say "1 > 0" <break x="&"/> \u0001now.';
    const { recorder, request } = await said({}, { text, voiceSettings: { speed: 1.1 }, languageCode: "de" });
    expect(recorder.failure).toBeNull();
    expect(request?.text).toContain('xml:lang="de-DE"');
    expect(request?.text).toContain('<prosody rate="1.1">Tom &amp;');
    expect(request?.text).toMatch(/<break time="1s"\/> say &quot;1 &gt; 0&quot; +now\.<\/prosody>/);
    expect(recorder.heads).toMatchObject([{ ignored: ["text (markup)"] }]);
  });

  it("is asked for no words where nobody wants any", async () => {
    const { recorder, request } = await said({}, { wantsTiming: false });
    expect(request?.text).toContain('"wordBoundaryEnabled":false');
    expect(charactersOf(recorder.chunks)).toEqual([]);
    expect(recorder.isEnded).toBe(true);
  });
});
