/** Audio tags as the voice performs them: breath, whisper, pace, pitch, loudness, pauses; and when. */
import { beforeAll, describe, expect, it } from "vitest";
import { breathSamples } from "../../../../src/service/voice/audio/breath.ts";
import { Engine } from "../../../../src/service/voice/engine/engine.ts";
import type { JobSpec } from "../../../../src/service/voice/messages.ts";
import { directionOf } from "../../../../src/service/voice/plan/audio-tags.ts";
import { leftOutTags } from "../../../../src/service/voice/plan/markup.ts";
import { JOB_DEFAULTS, sayJob } from "../../../helpers/voice-job.ts";
import { floatsOf, loudnessOf, rms, samplesOf, trackPitch } from "../convert/measures.ts";

const WOMAN = "21m00Tcm4TlvDq8ikWAM";
const MAN = "pNInz6obpgDQGcFmaJgB";
const RATE = 24_000;
const TEXT = "I never told you the truth about the old house.";
let engine: Engine;

beforeAll(async () => {
  engine = await Engine.load();
});

function say(text: string, voiceId = WOMAN, more: Partial<JobSpec> = {}) {
  const chunks = sayJob(engine, {
    ...JOB_DEFAULTS,
    format: `pcm_${RATE}`,
    isRepeatable: true,
    audioTags: true,
    inputs: [{ text, voiceId, languageCode: null }],
    ...more,
  });
  const parts = chunks.flatMap(({ timing }) => timing?.alignment ?? []);
  const starts = parts.flatMap((part) => part.character_start_times_seconds);
  const ends = parts.flatMap((part) => part.character_end_times_seconds);
  const pcm = samplesOf(Buffer.concat(chunks.map(({ audio }) => audio)));
  return {
    pcm,
    seconds: pcm.length / RATE,
    said: chunks.flatMap(({ timing }) => timing?.normalizedAlignment?.characters ?? []).join(""),
    written: parts.flatMap((part) => part.characters).join(""),
    /** When a part of the text is heard; it is found by its UTF-16 index. */
    timeOf: (part: string) => {
      const at = text.indexOf(part);
      return { start: starts[at] ?? Number.NaN, end: ends[at + part.length - 1] ?? Number.NaN };
    },
    soundOf(part: string) {
      const { start, end } = this.timeOf(part);
      return floatsOf(pcm.subarray(Math.round(start * RATE), Math.round(end * RATE)));
    },
  };
}

const decibels = (samples: Float32Array) => 20 * Math.log10(rms(samples) + 1e-9);
const loudness = (text: string, voiceId = WOMAN) => decibels(floatsOf(say(text, voiceId).pcm));

function meanPitch(text: string): number {
  const voiced = trackPitch(floatsOf(say(text).pcm)).filter((hz) => hz > 0);
  return voiced.reduce((sum, hz) => sum + hz, 0) / voiced.length;
}

/** How alike frames of 40 ms are to themselves a period later, 70-350 Hz: 1 for a tone, near 0 for noise. */
function periodicity(samples: Float32Array): number {
  // 70-350 Hz are in a sixth of the samples.
  const low = samples.filter((_, at) => at % STEP === 0).map((_, at) => meanOf(samples, at * STEP));
  const size = Math.round((0.04 * RATE) / STEP);
  let weighted = 0;
  let energy = 0;
  for (let at = 0; at + 2 * size <= low.length; at += size) {
    let best = 0;
    const power = productOf(low, { at, lag: 0, size });
    for (let lag = Math.round(RATE / STEP / 350); lag <= RATE / STEP / 70; lag += 1) {
      const later = productOf(low, { at: at + lag, lag: 0, size });
      best = Math.max(best, productOf(low, { at, lag, size }) / (Math.sqrt(power * later) + 1e-9));
    }
    weighted += best * power;
    energy += power;
  }
  return weighted / energy;
}

const STEP = 6;

function meanOf(samples: Float32Array, from: number): number {
  let sum = 0;
  for (let at = from; at < from + STEP; at += 1) sum += samples[at] ?? 0;
  return sum / STEP;
}

function productOf(samples: Float32Array, { at, lag, size }: { at: number; lag: number; size: number }) {
  let sum = 0;
  for (let index = at; index < at + size; index += 1) {
    sum += (samples[index] ?? 0) * (samples[index + lag] ?? 0);
  }
  return sum;
}

/** Times that the loudness rises above half of its peak. */
function bursts(samples: Float32Array): number {
  const steps = loudnessOf(samples);
  const half = Math.max(...steps) / 2.5;
  return steps.filter((step, at) => step > half && (steps[at - 1] ?? 0) <= half).length;
}

describe("an audio tag", { timeout: 60_000 }, () => {
  it.each([
    ["[laughs]", 3],
    ["[giggles]", 4],
    ["[chuckles]", 2],
    ["[sighs]", 1],
    ["[gasps]", 1],
    ["[inhales]", 1],
    ["[exhales]", 1],
    ["[coughs]", 2],
    ["[clears throat]", 2],
    ["[snorts]", 1],
    ["[sniffs]", 2],
    ["[crying]", 2],
    ["[yawns]", 1],
    ["[gulps]", 1],
  ])("%s is heard as breath, in bursts (at least %i), where the tag stands", (tag, least) => {
    const plain = say("That is funny. Is it not?");
    const tagged = say(`That is funny. ${tag} Is it not?`);
    const sound = tagged.soundOf(`${tag} `);
    expect(tagged.said).toBe(plain.said);
    expect(tagged.seconds - plain.seconds).toBeCloseTo(sound.length / RATE, 1);
    expect(decibels(sound)).toBeGreaterThan(-40);
    expect(decibels(sound)).toBeLessThan(-20);
    expect(bursts(sound)).toBeGreaterThanOrEqual(least);
    expect(periodicity(sound)).toBeLessThan(0.75 * periodicity(plain.soundOf("That is funny")));
  });

  it("[laughs] and [sighs] differ, and a laugh is the same samples each time", () => {
    const of = (name: "laugh" | "sigh", seed: number) => breathSamples(name, { sampleRate: 22_050, seed });
    const isSame = (one: Int16Array, other: Int16Array) =>
      Buffer.from(one.buffer).equals(Buffer.from(other.buffer));
    expect(isSame(of("laugh", 1), of("laugh", 1))).toBe(true);
    expect(isSame(of("laugh", 1), of("laugh", 2))).toBe(false);
    expect(bursts(floatsOf(of("laugh", 1)))).toBeGreaterThan(2 * bursts(floatsOf(of("sigh", 1))));
  });

  it.each([WOMAN, MAN])("[whispers] has no tone: %s", (voiceId) => {
    const [plain, whispered] = [say(TEXT, voiceId), say(`[whispers] ${TEXT}`, voiceId)];
    expect(periodicity(floatsOf(whispered.pcm))).toBeLessThan(0.7 * periodicity(floatsOf(plain.pcm)));
    const quieter = loudness(TEXT, voiceId) - loudness(`[whispers] ${TEXT}`, voiceId);
    expect(quieter).toBeGreaterThan(1);
    expect(quieter).toBeLessThan(12);
    expect(whispered.said).toBe(TEXT);
  });

  it("[quietly] and [shouts] change the loudness", () => {
    expect(loudness(TEXT) - loudness(`[quietly] ${TEXT}`)).toBeGreaterThan(4);
    expect(loudness(`[shouts] ${TEXT}`) - loudness(TEXT)).toBeGreaterThan(3);
  });

  it("[rushed] and [slowly] change the pace", () => {
    const usual = say(TEXT).seconds;
    expect(say(`[rushed] ${TEXT}`).seconds / usual).toBeLessThan(0.85);
    expect(say(`[slowly] ${TEXT}`).seconds / usual).toBeGreaterThan(1.25);
  });

  it("[excited], [sad] and the like change pitch and pace", () => {
    const usual = meanPitch(TEXT);
    expect(meanPitch(`[excited] ${TEXT}`) / usual).toBeGreaterThan(1.05);
    expect(meanPitch(`[sad] ${TEXT}`) / usual).toBeLessThan(0.95);
    const sounds = ["angry", "nervous", "calm", "curious", "deadpan"].map((word) => say(`[${word}] ${TEXT}`));
    const unlike = new Set(
      [say(TEXT), ...sounds].map(({ pcm }) => Buffer.from(pcm.buffer).toString("base64")),
    );
    expect(unlike.size).toBe(6);
  });

  it("[pause], [short pause], [long pause] are silence", () => {
    const plain = say("That is funny Yes").seconds;
    const pauses = ["[short pause]", "[pause]", "[long pause]"].map((tag) => {
      const said = say(`That is funny ${tag} Yes`);
      expect(decibels(said.soundOf(tag))).toBeLessThan(-60);
      return said.seconds - plain;
    });
    expect((pauses[1] ?? 0) - (pauses[0] ?? 0)).toBeCloseTo(0.25, 1);
    expect((pauses[2] ?? 0) - (pauses[1] ?? 0)).toBeCloseTo(0.5, 1);
  });

  it("a manner holds until another one, and not in the next paragraph or input", () => {
    const seconds = (text: string, part: string) => {
      const { start, end } = say(text).timeOf(part);
      return end - start;
    };
    const usual = seconds(`So. ${TEXT}`, TEXT);
    expect(seconds(`[slowly] So. ${TEXT}`, TEXT) / usual).toBeGreaterThan(1.25);
    expect(seconds(`[slowly] So. [normal] ${TEXT}`, TEXT) / usual).toBeCloseTo(1, 1);
    expect(seconds(`[slowly] So.\n\n${TEXT}`, TEXT) / usual).toBeCloseTo(1, 1);
    const input = { text: TEXT, voiceId: WOMAN, languageCode: null };
    const two = (first: string) => say("", WOMAN, { inputs: [{ ...input, text: first }, input] }).seconds;
    expect(two("[slowly] So.") - say("[slowly] So.").seconds).toBeCloseTo(two("So.") - say("So.").seconds, 1);
  });

  it("what is said before it keeps its own manner, and each character has its time", () => {
    const text = "He said [whispers] come here [laughs] now.";
    const said = say(text);
    expect(said.written).toBe(text);
    expect(said.said).toBe("He said come here now.");
    expect(periodicity(said.soundOf("He said"))).toBeGreaterThan(
      1.2 * periodicity(said.soundOf("come here")),
    );
    const laugh = said.timeOf("[laughs]");
    expect(laugh.start).toBeGreaterThanOrEqual(said.timeOf("here").end);
    expect(laugh.end).toBeLessThanOrEqual(said.timeOf("now").start);
    expect(laugh.end - laugh.start).toBeGreaterThan(0.8);
  });

  it("is one for words that begin so, and of others none", () => {
    expect(directionOf("[laughs nervously]")).toMatchObject({ breath: "laugh", manner: { pitch: 5 } });
    expect(directionOf("[LAUGHING]")?.breath).toBe("laugh");
    expect(["[sings]", "[gunshot]", "[strong French accent]", "[дышит]"].map(directionOf)).toEqual([
      null,
      null,
      null,
      null,
    ]);
    const text = "[sings] a [laughs] b [gunshot] c [sings] [1]";
    expect(leftOutTags(text, { audioTags: true })).toEqual(["[sings]", "[gunshot]"]);
    expect(leftOutTags(text, { audioTags: false })).toEqual([]);
    // A tag that nothing is done of is left out, without a pause.
    const left = say(`[sings] ${TEXT}`);
    expect(left.said.trim()).toBe(TEXT);
    expect(left.seconds).toBeCloseTo(say(TEXT).seconds, 1);
  });

  it("with several words does all that they say, or is named for the word that changes nothing", () => {
    const both = say(`[whispers slowly] ${TEXT}`);
    const whispered = say(`[whispers] ${TEXT}`);
    expect(both.seconds / whispered.seconds).toBeGreaterThan(1.25);
    expect(periodicity(floatsOf(both.pcm))).toBeLessThan(0.7 * periodicity(floatsOf(say(TEXT).pcm)));
    expect(loudness(`[softly, sad] ${TEXT}`) - loudness(`[softly] ${TEXT}`)).toBeLessThan(2);
    expect(meanPitch(`[softly, sad] ${TEXT}`) / meanPitch(`[softly] ${TEXT}`)).toBeLessThan(0.97);
    const whole =
      "[whispers slowly] [laughs nervously] [starts laughing] [in a whisper] [long pause] [clears throat]";
    expect(leftOutTags(whole, { audioTags: true })).toEqual([]);
    const part = "[laughs harder] [very sad] [laughs and coughs] [long sigh]";
    expect(leftOutTags(part, { audioTags: true })).toEqual(part.split(/(?<=\]) /));
  });

  it("is text where the model knows no tags", () => {
    expect(say("[laughs] Yes.", WOMAN, { audioTags: false }).said).toBe("[laughs] Yes.");
  });
});
