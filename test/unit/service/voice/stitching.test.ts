/** What is said around a text by other requests shapes it: two requests together are one request's sound. */
import { beforeAll, describe, expect, it } from "vitest";
import { FRAME_SAMPLES } from "../../../../src/service/convert/pitch-tracker.ts";
import { PieceAudio } from "../../../../src/service/voice/audio/piece-audio.ts";
import { StitchedAudio } from "../../../../src/service/voice/audio/stitched-audio.ts";
import { Engine, type EngineEvent } from "../../../../src/service/voice/engine/engine.ts";
import type { JobSpec } from "../../../../src/service/voice/messages.ts";
import type { Neighbours } from "../../../../src/service/voice/plan/stitched-text.ts";
import { JOB_DEFAULTS, sayJob } from "../../../helpers/voice-job.ts";
import { floatsOf, rms, samplesOf, trackPitch } from "../convert/measures.ts";

const VOICE = "21m00Tcm4TlvDq8ikWAM";
/** Hz: the engine's own, so that nothing is resampled. */
const RATE = 22_050;
let engine: Engine;

beforeAll(async () => {
  engine = await Engine.load();
});

interface Said {
  readonly pcm: Int16Array;
  readonly characters: string;
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

function say(
  text: string,
  neighbours: Partial<Neighbours> = {},
  options: Partial<JobSpec> & { readonly languageCode?: string } = {},
): Said {
  const { languageCode = null, ...more } = options;
  const chunks = sayJob(engine, {
    ...JOB_DEFAULTS,
    format: `pcm_${RATE}`,
    isRepeatable: true,
    ...more,
    inputs: [{ text, voiceId: VOICE, languageCode }],
    neighbours: { before: "", after: "", ...neighbours },
  });
  const parts = chunks.flatMap(({ timing }) => timing?.alignment ?? []);
  return {
    pcm: samplesOf(Buffer.concat(chunks.map(({ audio }) => audio))),
    characters: parts.flatMap((part) => part.characters).join(""),
    starts: parts.flatMap((part) => part.character_start_times_seconds),
    ends: parts.flatMap((part) => part.character_end_times_seconds),
  };
}

function joined(first: Said, second: Said): Int16Array {
  return Int16Array.from([...first.pcm, ...second.pcm]);
}

const secondsOf = (pcm: Int16Array) => pcm.length / RATE;

/** dB of `pcm` against how far it is from `whole`, apart from 5 ms around the seam. */
function likeness(pcm: Int16Array, whole: Int16Array, seam: number): number {
  const away = (sample: number, at: number) => (Math.abs(at - seam) < 0.005 * RATE ? 0 : sample);
  const difference = floatsOf(whole).map((sample, at) => away(sample - (pcm[at] ?? 0) / 32_768, at));
  return 20 * Math.log10(rms(floatsOf(whole)) / (rms(difference) + 1e-9));
}

/** Mean pitch of what is voiced from `from` seconds on, octaves above 1 Hz. */
function pitch(pcm: Int16Array, from = 0): number {
  // The tracker takes the samples to be of WORK_RATE: only differences have a meaning.
  const frames = trackPitch(floatsOf(pcm)).slice(Math.round((from * RATE) / FRAME_SAMPLES));
  const voiced = frames.filter((hz) => hz > 0).map(Math.log2);
  return voiced.reduce((sum, one) => sum + one, 0) / voiced.length;
}

/** A language each. */
const SCRIPTS = "am ar bn el gu he hi hy ja ka kn ko ru ta zh".split(" ");

const BORDERS: readonly (readonly [name: string, a: string, b: string, languageCode: string])[] = [
  ["inside a clause", "The king of the hill went", "to the shop and bought some milk for his cat.", "en"],
  ["behind a number", "I was there in 1999 and", "nobody saw me.", "en"],
  ["behind a comma that makes no piece", "Hello,", "world.", "en"],
  ["behind a long clause", "Well, when the sun goes down behind the hills,", "we go home.", "en"],
  ["between sentences", "Hello there.", "How are you today?", "en"],
  ["in the second sentence", "Hello there. It is a fine day and", "nobody is here.", "en"],
  ["before a symbol", "I feel", "☺ today", "en"],
  ["before a quotation", "He said", '"come here" and left.', "en"],
  ["in Chinese", "我们今天", "去商店买东西。", "zh"],
  ["in Arabic", "مرحبا كيف", "حالك اليوم", "ar"],
  ["in German", "Ich habe 1999", "Katzen gesehen.", "de"],
];

describe("a text between its neighbours", () => {
  it.each(BORDERS)("sounds as in one request: %s", (_, a, b, languageCode) => {
    const language = { languageCode };
    const whole = say(languageCode === "zh" ? a + b : `${a} ${b}`, {}, language).pcm;
    const first = say(a, { after: b }, language);
    const second = say(b, { before: a }, language);
    const stitched = joined(first, second);
    const apart = joined(say(a, {}, language), say(b, {}, language));
    expect(Math.abs(secondsOf(stitched) - secondsOf(whole))).toBeLessThan(0.01);
    expect(likeness(stitched, whole, first.pcm.length)).toBeGreaterThan(60);
    expect(likeness(apart, whole, first.pcm.length)).toBeLessThan(6);
  });

  it.each(BORDERS)("has its own characters and times: %s", (_, a, b, languageCode) => {
    for (const [text, said] of [
      [a, say(a, { after: b }, { languageCode })],
      [b, say(b, { before: a }, { languageCode })],
    ] as const) {
      expect(said.characters).toBe(text);
      expect(said.starts[0]).toBeLessThan(0.05);
      expect(said.starts.every((start, at) => start >= (said.starts[at - 1] ?? 0))).toBe(true);
      const restSeconds = secondsOf(said.pcm) - (said.ends.at(-1) ?? 0);
      expect(restSeconds).toBeGreaterThan(-0.001);
      expect(restSeconds).toBeLessThan(0.15);
    }
  });

  it.each([
    ["The king of", "the hill went away."],
    ["The king of ", "the hill went away."],
    ["The king of", " the hill went away."],
    ["The king of  ", "\n the hill went away."],
    ["The king <b>of</b>", "the hill went away."],
    ["The king of", "<b>the</b> hill went away."],
    ["สวัสดี", "ครับผม"],
    ["I feel it for", "a while now."],
  ])("is all of its words and none of the others, also where the engine joins two: %j, %j", (a, b) => {
    const [first, second] = [say(a, { after: b }), say(b, { before: a })];
    const whole = secondsOf(say(`${a} ${b}`).pcm);
    // One word more or less would be 0.1 s.
    expect(Math.abs(secondsOf(joined(first, second)) - whole)).toBeLessThan(0.06);
    const alone = secondsOf(say(b).pcm);
    expect(Math.abs(secondsOf(second.pcm) - alone)).toBeLessThan(0.09);
  });

  it("is cut between its words in the languages of fifteen scripts", () => {
    for (const languageCode of SCRIPTS) {
      const names = new Intl.DisplayNames([languageCode], { type: "language" });
      const [a, b] = [`${names.of("de")} 12`, `34 ${names.of("fr")}`];
      const [first, second] = [
        say(a, { after: b }, { languageCode }),
        say(b, { before: a }, { languageCode }),
      ];
      const whole = secondsOf(say(`${a} ${b}`, {}, { languageCode }).pcm);
      expect(Math.abs(secondsOf(joined(first, second)) - whole), languageCode).toBeLessThan(0.12);
      expect(secondsOf(first.pcm) / whole, languageCode).toBeGreaterThan(0.2);
      expect(secondsOf(second.pcm) / whole, languageCode).toBeGreaterThan(0.2);
    }
  }, 60_000);

  it("keeps the pitch up at its end where its sentence goes on", () => {
    const text = "We went to the old market in the middle of town";
    const [alone, goesOn] = [say(text), say(text, { after: "with all of our friends and their dogs." })];
    const end = (said: Said) => pitch(said.pcm, secondsOf(said.pcm) - 0.35);
    expect(end(goesOn) - end(alone)).toBeGreaterThan(0.07);
    // ... and its last word is not drawn out.
    expect(secondsOf(alone.pcm) - secondsOf(goesOn.pcm)).toBeGreaterThan(0.08);
  });

  it("goes on lower after sentences, and from the top in a new paragraph", () => {
    const text = "Nobody has seen it since.";
    const lower = (said: Said) => pitch(say(text).pcm) - pitch(said.pcm);
    expect(lower(say(text, { before: "It was lost. We looked for it." }))).toBeGreaterThan(0.03);
    expect(lower(say(text, { before: "It was lost. We looked for it.\n\n" }))).toBeLessThan(0.005);
    expect(lower(say(`\n\n${text}`, { before: "It was lost. We looked for it." }))).toBeLessThan(0.005);
  });

  it("has the pause before what follows, and none where nothing is known to", () => {
    const pause = (text: string, after: string) =>
      secondsOf(say(text, { after }).pcm) - secondsOf(say(text).pcm);
    expect(pause("Hello there.", "And so on.")).toBeCloseTo(0.3, 2);
    expect(pause("Hello there.", "  ")).toBe(0);
    expect(pause("Hello there.", "\n\nAnother paragraph.")).toBeCloseTo(0.5, 2);
  });

  it("is the same samples each time with a seed, and looks at so much of long neighbours only", () => {
    const neighbours = { before: `${"word ".repeat(20_000)}so`, after: ` and${" word".repeat(20_000)}` };
    const of = () => say("we went away", neighbours, { seed: 5 }).pcm;
    const first = of();
    expect(Buffer.from(first.buffer).equals(Buffer.from(of().buffer))).toBe(true);
    expect(secondsOf(first)).toBeLessThan(1.5);
  });

  it("takes no tag that begins in another text, and speaks no tag of it", () => {
    const alone = say("ak/> we went away.");
    expect(say("ak/> we went away.", { before: "Yes. <bre" }).characters).toBe(alone.characters);
    const silent = secondsOf(say("We went away.", { before: 'It was so. <break time="2s"/>' }).pcm);
    expect(Math.abs(silent - secondsOf(say("We went away.").pcm))).toBeLessThan(0.1);
  });
});

describe("a clause with its neighbours", () => {
  const clause = () => {
    const audio = new PieceAudio();
    return { audio, stitched: new StitchedAudio({ audio, sampleRate: 1000, ...LENGTHS, hasAfter: true }) };
  };
  const LENGTHS = { beforeLength: 3, ownLength: 4 };
  const word = (textIndex: number, atMs: number): EngineEvent => ({
    kind: "word",
    textIndex,
    length: 2,
    atMs,
    isPause: false,
  });

  it("is cut where its first word and the next one's begin, which may be in any call", () => {
    const { audio, stitched } = clause();
    expect(stitched.push(new Int16Array(10).fill(5), [word(0, 0)])).toBe(false);
    expect(stitched.push(new Int16Array(10).fill(6), [word(3, 14)])).toBe(false);
    expect(stitched.push(new Int16Array(10).fill(7), [word(7, 28)])).toBe(true);
    expect(audio.length).toBe(14);
    expect(audio.events).toEqual([word(0, 0)]);
    // The first and the last of them fade.
    expect([...audio.slice(1, 13)]).toEqual([6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7]);
  });

  it("has not begun where the engine gives no time for it: it is to be spoken alone", () => {
    const { audio, stitched } = clause();
    stitched.push(new Int16Array(10).fill(5), [word(0, 0), word(2, 4)]);
    expect([stitched.hasBegun, audio.length]).toEqual([false, 0]);
  });
});
