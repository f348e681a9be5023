/**
 * Faults of an upstream's timing, two at a time, or one where times come with the first piece of their audio, in several scripts: the embedded service's own voice and faults, in
 * this thread, timed as a session times them, against what the voice really said when. Where nothing better than a guess
 * can be known the label has to say so.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { createDice } from "../../../../bench/kit/truth-texts.ts";
import { PauseFinder } from "../../../../src/audio/analysis/pause-finder.ts";
import { SILENCE_LEVEL } from "../../../../src/audio/analysis/silence.ts";
import { readHeader } from "../../../../src/service/faults/fault.ts";
import { faultyOpener } from "../../../../src/service/faults/opener.ts";
import { Engine } from "../../../../src/service/voice/engine/engine.ts";
import type { JobChunk } from "../../../../src/service/voice/messages.ts";
import { NEAR_SECONDS } from "../../../../src/timing/repair/clock-drift.ts";
import { responseTimesOf } from "../../../../src/timing/response-times-of.ts";
import type { TimedCharacters } from "../../../../src/timing/timed.ts";
import { JOB_DEFAULTS, sayJob, startsOf } from "../../../helpers/voice-job.ts";
import { problemWith } from "../upstream-fixtures.ts";

const FORMAT = "pcm_24000";
const BYTES_PER_SECOND = 48_000;
const TARGET_SECONDS = 0.02;
const UTTERANCES = 4;
const VOICE = "21m00Tcm4TlvDq8ikWAM";

interface Script {
  readonly words: string;
  readonly gap: string;
  readonly stop: string;
}

const SCRIPTS: Readonly<Record<string, Script>> = {
  en: {
    words: "the quick brown fox jumps over lazy dogs while seven children sing about water and morning light",
    gap: " ",
    stop: ".",
  },
  zh: {
    words: "今天 天气 很好 我们 一起 去 公园 散步 孩子 们 在 河边 唱歌 山 和 云 又 都",
    gap: "",
    stop: "。",
  },
  ja: {
    words: "きょうは いい てんきです こうえんへ いきました こどもたちが うたを うたって みえます あめが",
    gap: "",
    stop: "。",
  },
  ar: {
    words: "ذهب الولد إلى المدرسة في الصباح وكان الطقس جميلا جدا ثم عاد مع أصدقائه",
    gap: " ",
    stop: ".",
  },
  hi: { words: "आज मौसम बहुत अच्छा है और हम सब बच्चे नदी के पास पुराने पेड़ों", gap: " ", stop: "।" },
  th: { words: "วันนี้ อากาศ ดี มาก เรา ไป เดินเล่น ใน สวน เด็ก ร้องเพลง ข้าง แม่น้ำ", gap: "", stop: " " },
};
const FAULTS: Readonly<Record<string, string>> = {
  overlapping: "alignment_overlap characters=3",
  restarted: "alignment_restart",
  "scaled 0.9": "alignment_scaled factor=0.9",
  "scaled 0.95": "alignment_scaled factor=0.95",
  "scaled 1.05": "alignment_scaled factor=1.05",
  "scaled 1.1": "alignment_scaled factor=1.1",
  late: "alignment_late chunks=2",
  "missing, every 2nd": "alignment_missing every=2",
};
/** What each chunk's audio is cut into, bytes. */
const PIECES: readonly string[] = ["997", "1,7,999,20001"];
/** Of a clock that begins again with each chunk neither its pace nor whose audio it is of is known: left out. */
const NEVER_EMITTED = new Set(["scaled", "late"]);

interface Speech {
  readonly text: string;
  readonly chunks: readonly JobChunk[];
  /** Seconds, by UTF-16 offset. */
  readonly starts: ReadonlyMap<number, number>;
}

const speeches = new Map<string, readonly Speech[]>();

beforeAll(async () => {
  const engine = await Engine.load();
  for (const [language, script] of Object.entries(SCRIPTS)) {
    const all = Array.from({ length: UTTERANCES }, (_, i) => {
      const text = textOf(script, i + 1);
      const inputs = [{ text, voiceId: VOICE, languageCode: language }];
      const chunks = sayJob(engine, { ...JOB_DEFAULTS, inputs, format: FORMAT, seed: i + 1 });
      return { text, chunks, starts: startsOf(chunks) };
    });
    speeches.set(language, all);
  }
});

/** Two sentences of 4 to 9 words each; words may come again. */
function textOf({ words, gap, stop }: Script, seed: number): string {
  const dice = createDice(seed * 7919);
  const from = words.split(" ");
  const sentences = [0, 1].map(() => {
    const said = Array.from(
      { length: 4 + Math.floor(dice() * 6) },
      () => from[Math.floor(dice() * from.length)],
    );
    return said.join(gap) + stop;
  });
  return sentences.join(gap).trim();
}

function withFaults(chunks: readonly JobChunk[], header: string): JobChunk[] {
  const changed: JobChunk[] = [];
  const voices: Parameters<typeof faultyOpener>[0] = {
    open: (_spec, handlers) => {
      for (const chunk of chunks) handlers.chunk(chunk);
      handlers.done();
      return { acknowledge: () => undefined, cancel: () => undefined };
    },
  };
  faultyOpener(voices, readHeader(header)).open(
    { ...JOB_DEFAULTS, format: FORMAT },
    {
      chunk: (chunk) => changed.push(chunk),
      done: () => undefined,
      failed: (error) => expect.fail(error.message),
    },
  );
  return changed;
}

/** As session/events/segment-times.ts does it. */
function timesOf(chunks: readonly JobChunk[], text: string): (TimedCharacters | null)[] {
  const pauses = new PauseFinder(FORMAT);
  const timing = responseTimesOf({ text });
  let bytes = 0;
  const emitted = chunks.map(({ audio, timing: sent }) => {
    bytes += audio.length;
    const { alignment = null, normalizedAlignment = null } = sent ?? {};
    const audioSeconds = bytes / BYTES_PER_SECOND;
    if (alignment === null && normalizedAlignment === null) {
      const heard = { pauses: pauses.push(audio) };
      return timing.push(null, null, { audioSeconds, ...heard });
    }
    pauses.skip(audio);
    return timing.push(alignment, normalizedAlignment, { audioSeconds });
  });
  return [...emitted, timing.finish(bytes / BYTES_PER_SECOND, soundSecondsOf(chunks))];
}

/** Up to the last sound. */
function soundSecondsOf(chunks: readonly JobChunk[]): number {
  const audio = Buffer.concat(chunks.map((chunk) => chunk.audio));
  let at = audio.length - 2;
  while (at > 0 && Math.abs(audio.readInt16LE(at)) <= SILENCE_LEVEL) at -= 2;
  return (at + 2) / BYTES_PER_SECOND;
}

/** How far letters are from the truth, seconds, that are emitted to be right. */
function errorsOf(
  emitted: readonly (TimedCharacters | null)[],
  starts: ReadonlyMap<number, number>,
): number[] {
  const errors: number[] = [];
  for (const one of emitted) {
    if (one === null || one.timing === "estimated") continue;
    let at = one.start;
    for (const [i, character] of one.characters.entries()) {
      const seconds = starts.get(at);
      if (seconds !== undefined && /[\p{L}\p{N}]/u.test(character)) {
        errors.push(Math.abs((one.startSeconds[i] ?? Number.NaN) - seconds));
      }
      at += character.length;
    }
  }
  return errors;
}

/**
 * Where audio is cut anywhere in a character a first chunk's times may be scaled so that they end just with it: there
 * is nothing wrong with them to be seen, and they are emitted at once.
 */
function isByChance(chunks: readonly JobChunk[], faults: readonly string[]): boolean {
  const factor = Number(faults.find((name) => name.startsWith("scaled"))?.split(" ")[1] ?? Number.NaN);
  const timesSeconds = chunks[0]?.timing?.alignment?.character_end_times_seconds.at(-1) ?? Number.NaN;
  const audioSeconds = (chunks[0]?.audio.length ?? 0) / BYTES_PER_SECOND;
  return Math.abs(timesSeconds * factor - audioSeconds) <= NEAR_SECONDS;
}

const kindOf = (name: string): string => name.split(/[ ,]/)[0] ?? name;
const pairs = Object.keys(FAULTS).flatMap((one) => {
  const others = Object.keys(FAULTS).filter((other) => {
    const kinds = [kindOf(one), kindOf(other)];
    return (
      kinds[0] !== kinds[1] && !(kinds.includes("restarted") && kinds.some((kind) => NEVER_EMITTED.has(kind)))
    );
  });
  return [[one, ""] as const, ...others.map((other) => [one, other] as const)];
});

describe.each(Object.keys(SCRIPTS))("%s: what is labelled exact or scaled is right", (language) => {
  /** Share of the characters that are emitted as estimates. */
  function expectTruth(names: readonly string[], faults: readonly string[]): number {
    let [characters, estimated] = [0, 0];
    for (const { text, chunks, starts } of speeches.get(language) ?? []) {
      if (isByChance(chunks, names)) continue;
      const sent = withFaults(chunks, faults.filter((fault) => fault !== "").join("; "));
      const emitted = timesOf(sent, text);
      const audioSeconds = sent.reduce((sum, { audio }) => sum + audio.length, 0) / BYTES_PER_SECOND;
      expect(problemWith(emitted, { text, audioSeconds })).toBe("");
      expect(Math.max(0, ...errorsOf(emitted, starts)), text).toBeLessThanOrEqual(TARGET_SECONDS);
      for (const one of emitted) {
        characters += one?.characters.length ?? 0;
        estimated += one?.timing === "estimated" ? one.characters.length : 0;
      }
    }
    return estimated / characters;
  }

  it.each(pairs)("%s; %s", (...names) => {
    expectTruth(
      names,
      names.map((name) => FAULTS[name] ?? ""),
    );
  });

  it.each(PIECES)("in pieces of %s bytes", (sizes) => {
    const pieces = `chunks sizes=${sizes}`;
    for (const [name, fault] of Object.entries(FAULTS)) expectTruth([name], [fault, pieces]);
    // Nothing is wrong with these but that the last ones may be too long: where a last letter ends is a guess then.
    expect(expectTruth([], [pieces])).toBe(0);
    expect(expectTruth([], ["alignment_overlap characters=3", pieces])).toBe(0);
    expect(expectTruth([], ["alignment_long seconds=1", pieces])).toBeLessThan(0.05);
  });
});
