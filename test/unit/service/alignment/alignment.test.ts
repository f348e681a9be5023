/** Words found in audio that comes without times: in another engine's voices, in the embedded ones, and in what says no text. */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { decodeUlaw } from "../../../../src/audio/codecs/g711.ts";
import { bandwidthOf } from "../../../../src/service/alignment/mel-spectrum.ts";
import { OnlineAlignment } from "../../../../src/service/alignment/online-alignment.ts";
import { modelOf, textWordsOf } from "../../../../src/service/alignment/reference-model.ts";
import { ReferenceSpeaker } from "../../../../src/service/alignment/reference-speaker.ts";
import { Engine } from "../../../../src/service/voice/engine/engine.ts";
import type { FoundWord } from "../../../../src/timing/aligner.ts";
import { JOB_DEFAULTS, sayJob, startsOf } from "../../../helpers/voice-job.ts";

/** Speech of flite's voices, mu-law at 8 kHz; where each word's first phone begins. bench/align.bench.ts measures more of it. */
const FLITE = new URL("../../../fixtures/flite/", import.meta.url);
const SPEECHES = JSON.parse(readFileSync(new URL("truth.json", FLITE), "utf8")) as readonly {
  readonly file: string;
  readonly text: string;
  readonly words: readonly (readonly [start: number, seconds: number])[];
}[];
const AMOS = "pNInz6obpgDQGcFmaJgB";

let engine: Engine;
let speaker: ReferenceSpeaker;

beforeAll(async () => {
  engine = await Engine.load();
  speaker = new ReferenceSpeaker(engine);
});

interface Audio {
  readonly samples: Int16Array;
  readonly sampleRate: number;
}

const fliteAudio = (file: string): Audio => ({
  samples: decodeUlaw(new Uint8Array(readFileSync(new URL(file, FLITE)))),
  sampleRate: 8000,
});

interface Told extends FoundWord {
  /** How much audio had come. */
  readonly audioSeconds: number;
}

function find(text: string, { samples, sampleRate }: Audio, chunkMs = 20, language = "en") {
  const model = modelOf(text, speaker.speak(text, language), bandwidthOf(sampleRate));
  if (model === null) throw new Error("The text has nothing to say");
  const alignment = new OnlineAlignment(model, sampleRate);
  const told: Told[] = [];
  const chunk = (sampleRate * chunkMs) / 1000;
  for (let from = 0; from < samples.length; from += chunk) {
    const audioSeconds = Math.min(from + chunk, samples.length) / sampleRate;
    for (const word of alignment.push(samples.subarray(from, from + chunk)))
      told.push({ ...word, audioSeconds });
  }
  const last = alignment.finish().map((word) => ({ ...word, audioSeconds: samples.length / sampleRate }));
  return { told: [...told, ...last], isLike: alignment.isLike };
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** Speech of an embedded voice that is no reference, and the true starts of its words. */
function say(text: string, language: string): Audio & { readonly starts: ReadonlyMap<number, number> } {
  const inputs = [{ text, voiceId: AMOS, languageCode: language }];
  const chunks = sayJob(engine, { ...JOB_DEFAULTS, inputs, format: "pcm_24000" });
  const bytes = Buffer.concat(chunks.map(({ audio }) => audio));
  const samples = new Int16Array(bytes.length / 2);
  for (let i = 0; i < samples.length; i += 1) samples[i] = bytes.readInt16LE(2 * i);
  return { samples, sampleRate: 24_000, starts: startsOf(chunks) };
}

describe("words in another engine's speech", () => {
  it("begin where they are said, by telephone", () => {
    const errors = SPEECHES.flatMap(({ file, text, words }) => {
      const starts = new Map(
        find(text, fliteAudio(file)).told.map((word) => [word.start, word.startSeconds]),
      );
      return words.map(([start, seconds]) => Math.abs((starts.get(start) ?? seconds + 1) - seconds));
    });
    expect(errors.length).toBeGreaterThan(50);
    expect(mean(errors)).toBeLessThan(0.025);
    expect(Math.max(...errors)).toBeLessThan(0.25);
  });

  it.each([20, 70, 1000])("come once, in order, soon after their end, in chunks of %i ms", (chunkMs) => {
    for (const { file, text } of SPEECHES) {
      const { told } = find(text, fliteAudio(file), chunkMs);
      expect(told.map(({ start, end }) => ({ start, end }))).toEqual(textWordsOf(text));
      let before = 0;
      for (const { startSeconds, endSeconds, audioSeconds } of told) {
        expect(startSeconds).toBeGreaterThanOrEqual(before);
        expect(endSeconds).toBeGreaterThanOrEqual(startSeconds);
        expect(audioSeconds).toBeGreaterThanOrEqual(endSeconds);
        expect(audioSeconds - endSeconds).toBeLessThan(0.5 + chunkMs / 1000);
        before = endSeconds;
      }
    }
  });

  it("are known to be those of the text, or of another one", () => {
    const likes = SPEECHES.map(({ file, text }) => find(text, fliteAudio(file)).isLike);
    expect(likes).toEqual(SPEECHES.map(() => true));
    const [first, second] = ["The tax office opens at nine on weekdays.", "Zwei mal drei macht vier."];
    const others = SPEECHES.map(
      ({ file }, i) => find((i % 2 ? first : second) ?? "", fliteAudio(file)).isLike,
    );
    expect(others.filter((isLike) => !isLike).length).toBeGreaterThanOrEqual(SPEECHES.length / 2);
  });
});

describe("words in an embedded voice's speech, its times withheld", () => {
  it.each([
    ["en", "Please leave your name, your number and a short message after the tone."],
    ["de", "Der Zug nach Hamburg fährt heute von Gleis sieben, zehn Minuten später."],
    ["es", "La lluvia cae despacio sobre las calles viejas de la ciudad."],
    ["ru", "Сегодня вечером в городе будет дождь, а завтра снова солнце."],
    ["hi", "आज मौसम बहुत अच्छा है और हम बाहर जा रहे हैं।"],
    ["ar", "الطقس اليوم جميل جدا ونحن ذاهبون إلى البحر"],
    ["fi", "Huomenna menemme yhdessä metsään ja keräämme marjoja."],
  ])("begin where they are said: %s", (language, text) => {
    const speech = say(text, language);
    const { told, isLike } = find(text, speech, 20, language);
    const errors = told.map(({ start, startSeconds }) =>
      Math.abs(startSeconds - (speech.starts.get(start) ?? Number.NaN)),
    );
    expect(isLike).toBe(true);
    expect(errors.length).toBe(textWordsOf(text).length);
    expect(mean(errors)).toBeLessThan(0.025);
  });

  it.each([
    ["ja", "きょうはとてもいいてんきです。"],
    ["zh", "今天天气很好，我们去公园。"],
    ["th", "วันนี้อากาศดีมาก"],
  ])("are characters where the script has no spaces: %s", (language, text) => {
    const speech = say(text, language);
    const { told } = find(text, speech, 20, language);
    expect(told.map(({ start, end }) => ({ start, end }))).toEqual(textWordsOf(text));
    expect(told.length).toBeGreaterThan(5);
    const seconds = speech.samples.length / speech.sampleRate;
    for (const { startSeconds, endSeconds } of told) {
      expect(startSeconds).toBeLessThanOrEqual(endSeconds);
      expect(endSeconds).toBeLessThanOrEqual(seconds);
    }
  });

  it("begin behind pauses that nothing in the text asks for", () => {
    const text = "We walked along the river until the evening.";
    const speech = say(text, "en");
    const cut = Math.round((speech.starts.get(text.indexOf("river")) ?? 0) * speech.sampleRate);
    const pause = new Int16Array(speech.sampleRate * 0.6);
    const samples = Int16Array.from([
      ...speech.samples.slice(0, cut),
      ...pause,
      ...speech.samples.slice(cut),
    ]);
    const { told } = find(text, { ...speech, samples });
    for (const { start, startSeconds } of told) {
      const paused = start >= text.indexOf("river") ? 0.6 : 0;
      expect(Math.abs(startSeconds - (speech.starts.get(start) ?? 0) - paused)).toBeLessThan(0.12);
    }
  });
});

describe("audio that says nothing of the text", () => {
  const TEXT = "Nothing of this is said here, at all.";
  const noise = Int16Array.from({ length: 48_000 }, (_, i) => ((i * 7919) % 6000) - 3000);

  it.each([
    ["is silent", new Int16Array(48_000)],
    ["is a hum", Int16Array.from({ length: 48_000 }, (_, i) => 8000 * Math.sin(i / 20))],
    ["is noise", noise],
    ["is empty", new Int16Array(0)],
    ["is one sample", Int16Array.of(1)],
    ["ends within the text", noise.slice(0, 3000)],
  ])("that %s gives words inside it, or none", (_, samples) => {
    const { told } = find(TEXT, { samples, sampleRate: 16_000 });
    let before = 0;
    for (const { startSeconds, endSeconds } of told) {
      expect(startSeconds).toBeGreaterThanOrEqual(before);
      expect(endSeconds).toBeLessThanOrEqual(samples.length / 16_000 + 0.02);
      before = endSeconds;
    }
  });

  it("is not compared with a text that has nothing to say", () => {
    for (const text of ["", " ", "...", "— “”"])
      expect(modelOf(text, speaker.speak(text, null), "wide")).toBeNull();
  });

  it("takes any language, known or not", () => {
    for (const language of [null, "xx", "en-GB", "pt_PT", "zz-ZZ"])
      expect(modelOf("One two", speaker.speak("One two", language), "narrow")?.words.length).toBe(2);
  });
});
