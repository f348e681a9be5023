/** Text without times in a response that goes on: estimated from what has come. */
import { beforeAll, describe, expect, it } from "vitest";
import { percentile } from "../../../../bench/kit/statistics.ts";
import { createDice, speak } from "../../../../bench/kit/truth-texts.ts";
import { PauseFinder } from "../../../../src/audio/analysis/pause-finder.ts";
import { Engine } from "../../../../src/service/voice/engine/engine.ts";
import type { JobChunk } from "../../../../src/service/voice/messages.ts";
import type { ResponseTimes } from "../../../../src/timing/response-times.ts";
import { responseTimesOf } from "../../../../src/timing/response-times-of.ts";
import type { TimedCharacters } from "../../../../src/timing/timed.ts";
import type { SpeakingRate } from "../../../../src/timing/timing-estimator.ts";
import { JOB_DEFAULTS, sayJob, startsOf } from "../../../helpers/voice-job.ts";
import { alignmentOf, problemWith } from "../upstream-fixtures.ts";

const FORMAT = "pcm_24000";
const BYTES_PER_SECOND = 48_000;
const VOICE = "21m00Tcm4TlvDq8ikWAM";
const SPEECHES = 12;

interface Speech {
  readonly text: string;
  readonly chunks: readonly JobChunk[];
  /** Seconds, by UTF-16 offset. */
  readonly starts: ReadonlyMap<number, number>;
}

let engine: Engine;

beforeAll(async () => {
  engine = await Engine.load();
});

function say(text: string, language: string, seed: number): Speech {
  const inputs = [{ text, voiceId: VOICE, languageCode: language }];
  const chunks = sayJob(engine, { ...JOB_DEFAULTS, inputs, format: FORMAT, seed });
  return { text, chunks, starts: startsOf(chunks) };
}

interface Emitted extends TimedCharacters {
  /** How far the audio was played when it was emitted, seconds. */
  readonly playedSeconds: number;
}

/** Played as it comes once `aheadSeconds` of it are there, and asked for times a second before they are played. */
function estimate({ text, chunks }: Speech, aheadSeconds: number, speakingRate: SpeakingRate | null) {
  const pauses = new PauseFinder(FORMAT);
  const timing = responseTimesOf({ text, speakingRate });
  const emitted: Emitted[] = [];
  let [bytes, playedSeconds] = [0, 0];
  const note = (timed: TimedCharacters | null): void => {
    if (timed !== null) emitted.push({ ...timed, playedSeconds });
  };
  for (const { audio } of chunks) {
    bytes += audio.length;
    const audioSeconds = bytes / BYTES_PER_SECOND;
    note(timing.push(null, null, { audioSeconds, pauses: pauses.push(audio) }));
    for (; audioSeconds - playedSeconds > aheadSeconds; playedSeconds += 0.1)
      if (timing.timedToSeconds < playedSeconds + 0.25)
        note(timing.estimateUpTo({ neededSeconds: playedSeconds + 1 }));
  }
  note(timing.finish(bytes / BYTES_PER_SECOND));
  return { emitted, timing, audioSeconds: bytes / BYTES_PER_SECOND };
}

/** Of word starts: how far from the truth, and how far behind what was played, seconds. */
function wordsOf(emitted: readonly Emitted[], { text, starts }: Speech): { error: number; late: number }[] {
  return emitted.flatMap(({ start, characters, startSeconds, playedSeconds }) => {
    let at = start;
    return characters.flatMap((character, i) => {
      const [offset, seconds] = [at, starts.get(at)];
      at += character.length;
      const isStart = /\p{L}/u.test(character) && (offset === 0 || text[offset - 1] === " ");
      if (!isStart || seconds === undefined) return [];
      const error = Math.abs((startSeconds[i] ?? Number.NaN) - seconds);
      return [{ error, late: Math.max(0, playedSeconds - seconds) }];
    });
  });
}

describe("ResponseTimes.estimateUpTo", () => {
  it("reports words before they are played, about where they are", () => {
    const words: { error: number; late: number }[] = [];
    const paces = new Map<string, SpeakingRate>();
    for (let seed = 1; seed <= SPEECHES; seed += 1) {
      const { text, language } = speak(createDice(seed * 77), 4);
      const speech = say(text, language, seed);
      const { emitted, timing, audioSeconds } = estimate(speech, 5, paces.get(language) ?? null);
      expect(problemWith(emitted, { text, audioSeconds })).toBe("");
      expect(emitted.map(({ characters }) => characters.join("")).join("")).toBe(text);
      expect(new Set(emitted.map((one) => one.timing))).toEqual(new Set(["estimated"]));
      if (audioSeconds > 8) expect(emitted.length).toBeGreaterThan(2);
      words.push(...wordsOf(emitted, speech));
      if (timing.speakingRate !== null) paces.set(language, timing.speakingRate);
    }
    expect(words.length).toBeGreaterThan(250);
    expect(Math.max(...words.map(({ late }) => late))).toBeLessThan(0.3);
    const errors = words.map(({ error }) => error);
    expect(percentile(errors, 0.5)).toBeLessThan(0.06);
    expect(percentile(errors, 0.95)).toBeLessThan(0.25);
  });

  it("goes on near the truth again where a mark was taken for another's", () => {
    const speech = say(
      "One, two three four five six. Seven eight nine ten eleven twelve, and so on and on for a while. The end comes late.",
      "en",
      3,
    );
    // A voice that is taken to speak at half its pace.
    const { emitted } = estimate(speech, 3, { weightASecond: 7, spread: 0.1 });
    const errors = wordsOf(emitted, speech).map(({ error }) => error);
    expect(Math.max(...errors)).toBeGreaterThan(0.5);
    expect(errors.at(-1)).toBeLessThan(0.35);
  });

  it("waits where nothing can be known: too little audio, audio that is not looked into, one word, times on their way", () => {
    const timing = responseTimesOf({ text: "Alpha bravo charlie. Delta echo." });
    expect(timing.estimateUpTo({ neededSeconds: 1 })).toBeNull();
    timing.push(null, null, { audioSeconds: 5 });
    expect(timing.estimateUpTo({ neededSeconds: 1 })).toBeNull();
    const { chunks } = say("Alpha bravo charlie. Delta echo foxtrot golf. Hotel India.", "en", 1);
    const hear = (text: string): ResponseTimes => {
      const pauses = new PauseFinder(FORMAT);
      const heard = responseTimesOf({ text });
      let bytes = 0;
      for (const { audio } of chunks) {
        bytes += audio.length;
        const facts = { pauses: pauses.push(audio) };
        heard.push(null, null, { audioSeconds: bytes / BYTES_PER_SECOND, ...facts });
      }
      return heard;
    };
    const emitted = hear("Alpha bravo charlie. Delta echo foxtrot golf. Hotel India.").estimateUpTo({
      neededSeconds: 0.5,
    });
    expect(emitted?.characters.join("")).toBe("Alpha bravo charlie. ");
    expect(hear("Alphabravocharlie").estimateUpTo({ neededSeconds: 0.5 })?.end ?? 0).toBeLessThan(
      "Alphabravocharlie".length,
    );
    expect(hear("Alpha.").estimateUpTo({ neededSeconds: 0.5 })).toBeNull();
    const doubted = hear("Alpha bravo charlie. Delta echo.");
    // Twice as long as their audio: its pace is doubted.
    doubted.push(alignmentOf("Alpha bravo charlie. Delta", 0, 0.6), null, { audioSeconds: 7 });
    expect(doubted.estimateUpTo({ neededSeconds: 2 })).toBeNull();
  });

  it("times that come later count for what was not emitted, and for nothing else", () => {
    const speech = say("Alpha bravo charlie. Delta echo foxtrot golf. Hotel India juliet kilo.", "en", 1);
    const { text, chunks, starts } = speech;
    const pauses = new PauseFinder(FORMAT);
    const timing = responseTimesOf({ text });
    const emitted: (TimedCharacters | null)[] = [];
    let bytes = 0;
    for (const { audio } of chunks) {
      bytes += audio.length;
      const facts = { pauses: pauses.push(audio) };
      timing.push(null, null, { audioSeconds: bytes / BYTES_PER_SECOND, ...facts });
    }
    emitted.push(timing.estimateUpTo({ neededSeconds: 0.5 }));
    const emittedEnd = emitted[0]?.end ?? 0;
    expect(emittedEnd).toBeGreaterThan(5);
    for (const chunk of chunks) {
      const { alignment = null } = chunk.timing ?? {};
      emitted.push(timing.push(alignment, null, { audioSeconds: bytes / BYTES_PER_SECOND }));
    }
    const audioSeconds = bytes / BYTES_PER_SECOND;
    emitted.push(timing.finish(audioSeconds));
    expect(problemWith(emitted, { text, audioSeconds })).toBe("");
    expect(emitted.map((one) => one?.characters.join("") ?? "").join("")).toBe(text);
    const late = emitted.filter((one) => one !== null && one.start >= emittedEnd);
    for (const one of late) {
      let at = one?.start ?? 0;
      for (const [i, character] of (one?.characters ?? []).entries()) {
        if (at > emittedEnd + 2) expect(one?.startSeconds[i]).toBeCloseTo(starts.get(at) ?? Number.NaN, 2);
        at += character.length;
      }
    }
  });
});
