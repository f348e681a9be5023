/** What jambonz sends to a custom speech vendor, and what it is answered. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../../src/errors.ts";
import {
  endsSentence,
  jambonzAudio,
  jambonzConnect,
  jambonzError,
  jointOf,
  parseJambonzAddress,
  parseJambonzMessage,
  parseJambonzTts,
  speakableSsml,
  upstreamLanguage,
} from "../../../../src/protocol/carrier/jambonz-tts.ts";

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown.code;
    throw thrown;
  }
  return "none";
}

const BODY = { language: "en-US", voice: "Anna", type: "text", text: "Hello there." };
const parse = (more: object) => parseJambonzTts(JSON.stringify({ ...BODY, ...more }));

describe("a request", () => {
  it("is voice, language and text; type and language may be missing, other fields are ignored", () => {
    const said = { language: "en-US", voice: "Anna", text: "Hello there." };
    expect(parse({ more: 1 })).toEqual(said);
    expect(parse({ type: undefined, language: null })).toEqual({ ...said, language: "" });
  });

  it("without what it needs, or with anything else, is refused without the text in the message", () => {
    for (const more of [{ voice: "" }, { text: 7 }, { text: null }, { type: "poem" }, { voice: ["a"] }]) {
      expect(codeOf(() => parse(more))).toBe("carrier_protocol");
    }
    for (const json of ["", "{", "[]", "null"])
      expect(codeOf(() => parseJambonzTts(json))).toBe("carrier_protocol");
    expect(() => parse({ type: "poem" })).not.toThrow(/Hello/);
  });

  it("is at most 5000 characters long, the markup of SSML not counted", () => {
    expect(parse({ text: "a".repeat(5000) }).text).toHaveLength(5000);
    expect(codeOf(() => parse({ text: "a".repeat(5001) }))).toBe("text_too_long");
    const text = `<speak>${"a".repeat(5000)}</speak>`;
    expect(parse({ type: "ssml", text }).text).toHaveLength(5000);
    expect(codeOf(() => parse({ type: "text", text }))).toBe("text_too_long");
  });

  it("SSML has at most 20,000 characters with its markup, and longer SSML is not read", () => {
    const commented = (chars: number) => `Hi<!--${"-".repeat(chars - 9)}-->`;
    expect(parse({ type: "ssml", text: commented(20_000) }).text).toBe("Hi");
    expect(codeOf(() => parse({ type: "ssml", text: commented(20_001) }))).toBe("text_too_long");
  });
});

describe("SSML", () => {
  it.each([
    ["<speak>Hello there.</speak>", "Hello there."],
    [
      '<?xml version="1.0"?><speak version="1.1" xml:lang="en">Wait<break time="1s"/>now</speak>',
      'Wait<break time="1s"/>now',
    ],
    ["<speak><p>One.</p><s>Two.</s></speak>", "One.  Two."],
    ['<speak>A <prosody rate="slow">slow</prosody>ly word<!-- not this --></speak>', "A slowly word"],
    [
      '<speak>Say <phoneme alphabet="ipa" ph="x">it</phoneme></speak>',
      'Say <phoneme alphabet="ipa" ph="x">it</phoneme>',
    ],
    ["<speak>Tom &amp; Jerry &lt; 3 &#65;&#x42; &nbsp; &#0;</speak>", "Tom & Jerry < 3 AB &nbsp; &#0;"],
    // Not read twice.
    ["<speak>&amp;lt;b&amp;gt;</speak>", "&lt;b&gt;"],
    ["<speak>1 < 2 and 3 > 2</speak>", "1 < 2 and 3 > 2"],
  ])("%s", (ssml, spoken) => {
    expect(speakableSsml(ssml)).toBe(spoken);
  });

  it("that is no markup, or not closed, is text", () => {
    for (const ssml of ["<?>", "<? a > b", "<!-->", "<!-- a", "<!--->", "< p>", "<p", "<1>", "</>", "<"])
      expect(speakableSsml(ssml)).toBe(ssml);
    for (const ssml of ["<??>", "<!---->", "<!-- <p> -->", "<?<p?>", "</p>"])
      expect(speakableSsml(ssml)).toBe("");
  });

  it("is read as by one pattern for all markup", () => {
    const markup = /<\?[^>]*\?>|<!--[\s\S]*?-->|<\/?[a-z][^<>]*>/gi;
    const part = fc.constantFrom("<", "<?", "?>", "?", ">", "<!--", "-->", "-", "/", "emphasis", "b", " ");
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
        const ssml = parts.join("");
        expect(speakableSsml(ssml)).toBe(ssml.replace(markup, "").trim());
      }),
      { numRuns: 2000 },
    );
  });
});

describe("the accept header", () => {
  it("is MP3 unless jambonz's other formats are asked for, the first one", () => {
    for (const accept of ["", "*/*", "audio/mpeg", "audio/mp3", "text/html, image/png"])
      expect(jambonzAudio(accept)).toEqual({ kind: "mp3" });
    expect(jambonzAudio("audio/l16;rate=8000")).toEqual({ kind: "l16", sampleRate: 8000 });
    expect(jambonzAudio("audio/L16; rate=48000, audio/mpeg")).toEqual({ kind: "l16", sampleRate: 48_000 });
    expect(jambonzAudio("audio/x-wav")).toEqual({ kind: "wav", sampleRate: 16_000 });
    expect(jambonzAudio("audio/mpeg, audio/wav")).toEqual({ kind: "mp3" });
    expect(codeOf(() => jambonzAudio("audio/l16;rate=11025"))).toBe("unknown_format");
  });
});

describe("the address of a socket", () => {
  it("is decoded; the rate is one that the upstream has, not less than asked for", () => {
    expect(parseJambonzAddress("voice=Tone%20A&language=de-DE&sampleRate=8000")).toEqual({
      voice: "Tone A",
      language: "de-DE",
      sampleRate: 8000,
    });
    const rateOf = (rate: string) => parseJambonzAddress(`voice=a&sampleRate=${rate}`).sampleRate;
    expect(["", "11025", "22050", "96000"].map(rateOf)).toEqual([16_000, 16_000, 22_050, 48_000]);
  });

  it("is refused without a voice, and with an invalid rate", () => {
    for (const query of ["", "voice=", `voice=${"a".repeat(513)}`, "voice=a&sampleRate=fast"])
      expect(codeOf(() => parseJambonzAddress(query))).toBe("invalid_field");
    expect(codeOf(() => parseJambonzAddress("voice=a&sampleRate=-1"))).toBe("invalid_field");
  });
});

describe("messages", () => {
  it("are those that jambonz sends; what it may send one day is no error", () => {
    const read = (message: object) => parseJambonzMessage(JSON.stringify(message));
    expect(read({ type: "stream", text: "Hi. " })).toEqual({ type: "stream", text: "Hi. " });
    for (const type of ["flush", "stop", "clear", "keepalive"]) expect(read({ type })).toEqual({ type });
    expect(read({ type: "hum" })).toEqual({ type: "other" });
    for (const message of [{}, { type: 1 }, { type: "stream" }, { type: "stream", text: [] }])
      expect(codeOf(() => read(message))).toBe("carrier_protocol");
  });

  it("the gateway's messages are connect and error", () => {
    expect(JSON.parse(jambonzConnect(8000))).toEqual({
      type: "connect",
      data: { sample_rate: 8000, base64_encoding: false },
    });
    expect(JSON.parse(jambonzError(new GatewayError("unknown_voice", "No voice")))).toEqual({
      type: "error",
      error: "unknown_voice: No voice",
    });
  });
});

it("the language is sent to models that take one, without its region", () => {
  expect(upstreamLanguage("en-US", "eleven_flash_v2_5")).toBe("en");
  expect(upstreamLanguage("yue_HK", "eleven_v3")).toBe("yue");
  for (const [language, model] of [
    ["en-US", ""],
    ["en-US", "eleven_multilingual_v2"],
    ["", "eleven_v3"],
    ["english", "eleven_v3"],
  ] as const)
    expect(upstreamLanguage(language, model)).toBeUndefined();
});

it("sentences end where jambonz ends them", () => {
  for (const text of ["Hello.", "Really?! ", 'He said "no."', "你好。", "هل؟", "One\n \n"])
    expect([text, endsSentence(text)]).toEqual([text, true]);
  for (const text of ["Hello", "Hello, ", "3.5", "(so"])
    expect([text, endsSentence(text)]).toEqual([text, false]);
  expect(endsSentence("\n".repeat(20_000))).toBe(true);
  expect(endsSentence(`${"\n".repeat(20_000)}a`)).toBe(false);
});

it("a blank stands between two texts where words would run together", () => {
  expect(jointOf("the quick", "brown")).toBe(" ");
  expect(jointOf("one,", "two")).toBe(" ");
  for (const [before, next] of [
    ["", "brown"],
    ["the ", "quick"],
    ["the", " quick"],
    ["the", ", quick"],
    ["今日", "は"],
    ["สวัส", "ดี"],
  ] as const)
    expect(jointOf(before, next)).toBe("");
});
