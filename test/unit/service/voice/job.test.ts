/** Alignment on the real engine, in this thread: what is said, when, and how it maps back to what was written. */

import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { Locales } from "../../../../src/service/text/locale.ts";
import { Engine } from "../../../../src/service/voice/engine/engine.ts";
import { findLanguage, LISTED_LANGUAGES } from "../../../../src/service/voice/engine/languages.ts";
import { VOICES } from "../../../../src/service/voice/engine/voices.ts";
import { VoiceJob } from "../../../../src/service/voice/job.ts";
import type { JobChunk, JobSpec } from "../../../../src/service/voice/messages.ts";
import { planPieces } from "../../../../src/service/voice/plan/utterance-plan.ts";
import type { Alignment } from "../../../../src/timing/alignment.ts";
import { JOB_DEFAULTS, sayJob } from "../../../helpers/voice-job.ts";

const VOICE = "21m00Tcm4TlvDq8ikWAM";
const BYTES_PER_SECOND = 32_000;
let engine: Engine;

beforeAll(async () => {
  engine = await Engine.load();
});

function spec(text: string, more: Partial<JobSpec> = {}): JobSpec {
  return {
    ...JOB_DEFAULTS,
    inputs: [{ text, voiceId: VOICE, languageCode: null }],
    ...more,
  };
}

const speak = (jobSpec: JobSpec): JobChunk[] => sayJob(engine, jobSpec);

function gather(chunks: readonly JobChunk[], key: "alignment" | "normalizedAlignment") {
  const parts = chunks.flatMap((chunk): readonly Alignment[] => {
    const part = chunk.timing?.[key];
    return part === null || part === undefined ? [] : [part];
  });
  return {
    text: parts.flatMap((part) => part.characters).join(""),
    characters: parts.flatMap((part) => part.characters),
    starts: parts.flatMap((part) => part.character_start_times_seconds),
    ends: parts.flatMap((part) => part.character_end_times_seconds),
  };
}

function seconds(chunks: readonly JobChunk[]): number {
  return chunks.reduce((sum, chunk) => sum + chunk.audio.length, 0) / BYTES_PER_SECOND;
}

function expectSound(chunks: readonly JobChunk[], text: string): void {
  const total = seconds(chunks);
  expect(gather(chunks, "alignment").text).toBe(text);
  for (const key of ["alignment", "normalizedAlignment"] as const) {
    const { characters, starts, ends } = gather(chunks, key);
    expect(starts).toHaveLength(characters.length);
    expect(ends).toHaveLength(characters.length);
    let last = 0;
    let lastEnd = 0;
    for (const [index, start] of starts.entries()) {
      expect([...(characters[index] ?? "")]).toHaveLength(1);
      expect(start).toBeGreaterThanOrEqual(last);
      expect(ends[index]).toBeGreaterThanOrEqual(start);
      expect(ends[index]).toBeGreaterThanOrEqual(lastEnd);
      expect(ends[index]).toBeLessThanOrEqual(total + 0.001);
      last = start;
      lastEnd = ends[index] ?? 0;
    }
  }
  for (const chunk of chunks) expect(chunk.audio.length % 2).toBe(0);
}

describe("VoiceJob with timing", () => {
  it("begins every word at the engine's own word event, within 1 ms", () => {
    const text = "The quick brown fox, as they say, jumps over the lazy dog! It does.";
    const chunks = speak(spec(text));
    const { characters, starts } = gather(chunks, "alignment");
    const truth = chunks.flatMap((chunk) => chunk.timing?.truth ?? []);
    expect(truth.length).toBeGreaterThanOrEqual(11);
    for (const word of truth) {
      const atWord = word.character_index === 0 || characters[word.character_index - 1] === " ";
      expect(atWord).toBe(true);
      expect(Math.abs((starts[word.character_index] ?? -1) - word.start_time_seconds)).toBeLessThanOrEqual(
        0.001,
      );
    }
  });

  it("ends a word where its sound ends, and fills the pause with punctuation", () => {
    const { characters, starts, ends } = gather(speak(spec("Hello there, friend.")), "alignment");
    const comma = characters.indexOf(",");
    expect((ends[comma] ?? 0) - (starts[comma] ?? 0)).toBeGreaterThan(0.05);
    expect(starts[comma]).toBe(ends[comma - 1]);
    expect(starts[comma + 2]).toBe(ends[comma + 1]);
  });

  it("maps what is said back to what was written", () => {
    const text = "It costs $1,234.56 in Dr. Smith's shop.";
    const chunks = speak(spec(text));
    expectSound(chunks, text);
    const said = gather(chunks, "normalizedAlignment");
    expect(said.text).toBe(
      "It costs one thousand two hundred thirty-four dollars and fifty-six cents in Doctor Smith's shop.",
    );
    const written = gather(chunks, "alignment");
    expect(written.starts[text.indexOf("$")]).toBe(said.starts[said.text.indexOf("one")]);
    expect(written.starts[text.indexOf("in ")]).toBe(said.starts[said.text.indexOf("in ")]);
    expect(written.starts[text.indexOf("Smith")]).toBe(said.starts[said.text.indexOf("Smith")]);
  });

  it("leaves the text as written without normalization, and in other languages", () => {
    const text = "Das kostet 1234 Euro.";
    for (const more of [
      { normalization: "off" as const },
      { inputs: [{ text, voiceId: VOICE, languageCode: "de" }] },
    ]) {
      const chunks = speak(spec(text, more));
      expectSound(chunks, text);
      expect(gather(chunks, "normalizedAlignment").text).toBe(text);
    }
  });

  it("pauses for breaks, drops other tags and audio tags from speech and keeps their characters", () => {
    const plain = seconds(speak(spec("Hello world")));
    const text = 'Hello <break time="1.5s"/><b>world</b>';
    const chunks = speak(spec(text));
    expectSound(chunks, text);
    expect(seconds(chunks)).toBeGreaterThan(plain + 1.4);
    const tagged = "[gunshot] Hello world";
    const leftOut = speak(spec(tagged, { audioTags: true }));
    expectSound(leftOut, tagged);
    expect(gather(leftOut, "normalizedAlignment").text).toBe(" Hello world");
    expect(Math.abs(seconds(leftOut) - plain)).toBeLessThan(0.1);
    expect(seconds(speak(spec(tagged)))).toBeGreaterThan(plain + 0.3);
  });

  it.each([
    ["emoji and joined emoji", "Hi 😀 family 👨‍👩‍👧‍👦 flag 🇩🇪 ok"],
    ["combining marks", "cafe\u0301 nai\u0308ve Z\u0351\u0343alg\u0300o"],
    ["Hebrew and Arabic", "שלום עולם. مرحبا بالعالم، هذا اختبار."],
    ["Chinese", "你好，世界。这是一个测试！"],
    ["Japanese", "こんにちは、世界。カタカナと漢字です。"],
    ["Thai", "สวัสดีชาวโลก นี่คือการทดสอบ"],
    ["scripts side by side", "Hello мир 世界 สวัสดี مرحبا end"],
    ["a null character in the middle", "one\u0000two \u0007three"],
    ["ampersands and angle brackets", "a < b & c > d &amp; </ x"],
    ["only punctuation", "...!?"],
    ["one emoji", "🙂"],
  ])("keeps %s aligned", (_name, text) => {
    for (const normalization of ["on", "auto", "off"] as const) {
      const chunks = speak(spec(text, { normalization }));
      expectSound(chunks, text);
      expect(seconds(chunks)).toBeGreaterThan(0.09);
    }
  });

  it("reads two brackets as marks, not as the engine's phonemes", () => {
    for (const text of ["Say [[h@l'oU]] now.", "[[[a]]] [", "[[]]"]) {
      const chunks = speak(spec(text));
      expectSound(chunks, text);
      expect(gather(chunks, "normalizedAlignment").text).toBe(text);
    }
    const hello = seconds(speak(spec("Say hello now.")));
    expect(seconds(speak(spec("Say [[h@l'oU]] now.")))).toBeGreaterThan(hello + 0.4);
  });

  it("bounds a piece by what is said in it, not by what is written", () => {
    const text = "a ".repeat(60);
    const respellings = Array.from({ length: 60 }, (_, at) => ({
      start: at * 2,
      end: at * 2 + 1,
      said: { text: "a rather long alias" },
    }));
    const pieces = [
      ...planPieces(
        spec(text, { inputs: [{ text, voiceId: VOICE, languageCode: null, respellings }] }),
        new Locales(),
      ),
    ];
    expect(pieces.length).toBeGreaterThan(6);
    expect(Math.max(...pieces.map(({ spoken }) => spoken.normalized.length))).toBeLessThan(200);
    expect(pieces.map(({ spoken }) => spoken.original.join("")).join("")).toBe(text);
  });

  it("speaks what follows a null character", () => {
    expect(seconds(speak(spec("one\u0000two three four")))).toBeGreaterThan(seconds(speak(spec("one"))) * 2);
  });

  it("reads a foreign script in its language instead of letter by letter", () => {
    const inChinese = seconds(
      speak(spec("你好世界", { inputs: [{ text: "你好世界", voiceId: VOICE, languageCode: "zh" }] })),
    );
    expect(seconds(speak(spec("你好世界")))).toBeCloseTo(inChinese, 2);
  });

  it("covers whole words in each chunk, and only words whose sound is in it", () => {
    const text = "Whole words are covered by every chunk of this rather long sentence here.";
    let position = 0;
    for (const chunk of speak(spec(text))) {
      const from = position;
      position += chunk.audio.length / BYTES_PER_SECOND;
      const alignment = chunk.timing?.alignment;
      if (alignment === null || alignment === undefined) continue;
      expect(alignment.characters.at(-1)).toMatch(/[ .]/);
      // The resampler looks ahead 2 ms.
      expect(alignment.character_start_times_seconds[0]).toBeGreaterThanOrEqual(from - 0.005);
      expect(alignment.character_end_times_seconds.at(-1)).toBeLessThanOrEqual(position + 0.005);
    }
  });

  it("counts a dialogue's characters and times through, one segment a chunk", () => {
    const other = "pNInz6obpgDQGcFmaJgB";
    const inputs = [
      { text: "Hello there. 😀", voiceId: VOICE, languageCode: null },
      { text: "Hi! How are you?", voiceId: other, languageCode: null },
      { text: "Fine.", voiceId: VOICE, languageCode: null },
    ];
    const chunks = speak(spec("", { inputs, audioTags: true }));
    expectSound(chunks, inputs.map((input) => input.text).join(""));
    const segments = chunks.flatMap((chunk) => chunk.timing?.voiceSegments ?? []);
    let at = { index: 0, seconds: 0 };
    for (const segment of segments) {
      expect(segment.character_start_index).toBe(at.index);
      expect(segment.start_time_seconds).toBeCloseTo(at.seconds, 3);
      expect(segment.voice_id).toBe(inputs[segment.dialogue_input_index]?.voiceId);
      at = { index: segment.character_end_index, seconds: segment.end_time_seconds };
    }
    expect(at.index).toBe([...inputs.map((input) => input.text).join("")].length);
    expect(new Set(segments.map((segment) => segment.dialogue_input_index))).toEqual(new Set([0, 1, 2]));
  });

  it("holds its invariants on any text", () => {
    const part = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 4 }),
      fc.string({ unit: "binary", maxLength: 2 }),
      fc.constantFrom(
        "hello ",
        "$5.20 ",
        "Dr. Who ",
        "<b>",
        "&",
        "漢字",
        "ที่",
        "א",
        "👍🏽",
        "e\u0301",
        "1,000 ",
        ". ",
        "\n",
        "[x]",
        "\ud83d",
        '"',
      ),
    );
    fc.assert(
      fc.property(
        fc.array(part, { minLength: 1, maxLength: 6 }),
        fc.constantFrom("on", "auto", "off"),
        (parts, normalization) => {
          const text = parts.join("");
          expectSound(speak(spec(text, { normalization, audioTags: true })), text);
        },
      ),
      { numRuns: 40 },
    );
    fc.assert(
      fc.property(
        fc.tuple(...["before", "text", "after"].map(() => fc.array(part, { maxLength: 6 }))),
        (all) => {
          const [before = "", text = "", after = ""] = all.map((parts) => parts.join(""));
          expectSound(speak(spec(text, { neighbours: { before, after }, audioTags: true })), text);
        },
      ),
      { numRuns: 40 },
    );
  }, 60_000);

  it("bounds every line: 64 KiB of audio, 500 characters of each alignment", () => {
    const texts = ["1".repeat(80), "!".repeat(3000), `<x ${"y".repeat(480)}>`.repeat(5), "word ".repeat(60)];
    for (const text of texts) {
      const chunks = speak(spec(text, { format: "pcm_48000" }));
      expect(gather(chunks, "alignment").text).toBe(text);
      for (const { audio, timing } of chunks) {
        expect(audio.length).toBeLessThanOrEqual(66_000);
        expect(timing?.alignment?.characters.length ?? 0).toBeLessThanOrEqual(500);
        expect(timing?.normalizedAlignment?.characters.length ?? 0).toBeLessThanOrEqual(500);
      }
    }
  });
});

describe("VoiceJob", () => {
  it("speaks for the same time with and without timing", () => {
    // Not the same samples: the engine's noise goes on from one synthesis to the next.
    const text = "The same sound, whatever is asked for besides. Really!";
    expect(seconds(speak(spec(text)))).toBeCloseTo(seconds(speak(spec(text, { wantsTiming: false }))), 2);
  });

  it("lets the speed be heard: the duration follows it", () => {
    const text = "The speed of this sentence can be heard by everyone.";
    const normal = seconds(speak(spec(text)));
    expect(seconds(speak(spec(text, { speed: 0.7 }))) / normal).toBeCloseTo(1 / 0.7, 1);
    expect(seconds(speak(spec(text, { speed: 1.2 }))) / normal).toBeCloseTo(1 / 1.2, 1);
  });

  it("stops in the middle of a synthesis when it is cancelled", () => {
    let isCancelled = false;
    const job = new VoiceJob({
      spec: spec("A sentence that goes on for quite a while so that it can be stopped in its middle."),
      engine,
      locales: new Locales(),
      encoder: {
        push: (pcm) => new Uint8Array(pcm.length),
        flush: () => new Uint8Array(0),
        close: () => undefined,
      },
      isCancelled: () => isCancelled,
      emit: () => {
        isCancelled = true;
      },
    });
    job.step();
    expect(job.synthesizedMs).toBeLessThan(600);
    job.close();
  });

  it("has an engine voice for every language and every voice", () => {
    for (const { language_id } of LISTED_LANGUAGES) {
      const input = { text: "1 2", voiceId: VOICE, languageCode: language_id };
      expect(seconds(speak(spec("", { inputs: [input] })))).toBeGreaterThan(0.1);
    }
    for (const voice of VOICES) {
      expect(voice.id).toMatch(/^[A-Za-z0-9]{20}$/);
      const input = { text: "1 2", voiceId: voice.id, languageCode: null };
      expect(seconds(speak(spec("", { inputs: [input] })))).toBeGreaterThan(0.1);
    }
  });
});

describe("Engine.speak()", () => {
  const voice = { name: "en-us+f3", rate: 175, pitch: 50, range: 50 };
  const count = (text: string, stopAt = Number.POSITIVE_INFINITY) => {
    let samples = 0;
    engine.speak(text, voice, (chunk) => {
      samples += chunk.length;
      return samples >= stopAt;
    });
    return samples;
  };
  it("is sound again after it was stopped, and after its listener threw", () => {
    const whole = count("Hello there,");
    expect(count("A much longer sentence than that one.", 5000)).toBeLessThan(8000);
    expect(count("Hello there,")).toBe(whole);
    const boom = () =>
      engine.speak("Hello.", voice, () => {
        throw new RangeError("boom");
      });
    expect(boom).toThrow("boom");
    expect(count("Hello there,")).toBe(whole);
  });
});

describe("findLanguage()", () => {
  it("knows codes and other names of the same languages, and nothing else", () => {
    expect(findLanguage("de")).toMatchObject({ code: "de", engine: "de", accent: null });
    expect(findLanguage("NB")?.code).toBe("no");
    for (const code of ["xx", "constructor", "", "e", "nn", "fil", "deutsch"]) {
      expect([code, findLanguage(code)]).toEqual([code, undefined]);
    }
  });

  it("knows the regions whose accent the engine has, and no other", () => {
    const accents = [
      "en-US",
      "en_gb",
      "en-029",
      "es-ES",
      "es-419",
      "es-MX",
      "fr-CH",
      "pt-PT",
      "pt-BR",
      "de-DE",
    ];
    expect(accents.map((code) => findLanguage(code)?.accent)).toEqual([
      ...["en-us", "en", "en-029", "es", "es-419", "es-419", "fr-ch", "pt", "pt-br", "de"],
    ]);
    for (const code of ["zh-HK", "de-AT", "fr-CA", "en-Latn-US", "en-", "en-US-x", "en-constructor"]) {
      expect([code, findLanguage(code)]).toEqual([code, undefined]);
    }
    for (const code of accents) {
      const name = findLanguage(code)?.accent ?? "";
      expect(() => engine.speak("a", { name, rate: 160, pitch: 50, range: 50 }, () => true)).not.toThrow();
    }
  });
});
