/** Where segments meet and end: the pause between them, the waterfall of those not sent, words that are whole, sources cut short. */
import { describe, expect, it } from "vitest";
import { concatBytes } from "../../../../src/audio/bytes.ts";
import { OggOpusWriter } from "../../../../src/audio/containers/ogg.ts";
import type { Timing } from "../../../../src/protocol/vocabulary.ts";
import { knownEndOf } from "../../../../src/session/playback/known-end.ts";
import { Splice } from "../../../../src/session/playback/splice.ts";
import { UnsentSegments } from "../../../../src/session/playback/unsent-segments.ts";
import { Utterance } from "../../../../src/session/playback/utterance.ts";
import { remainderOf } from "../../../../src/session/remainder.ts";
import { Source } from "../../../../src/session/source.ts";
import { newStages } from "../../../../src/session/synthesis/segment-stages.ts";
import { TICKS_PER_MS } from "../../../../src/timing/ticks.ts";
import { SPLICES } from "../scripted-speech.ts";

const ms = (count: number): number => count * TICKS_PER_MS;

function utteranceOf(text: string): Utterance {
  return Utterance.ofText(
    { id: "u", acceptedMs: 0, textDefaults: {} },
    { type: "speak", text, voice_id: "v" },
  );
}

describe("Splice", () => {
  const [one, other] = [utteranceOf("One. Two."), utteranceOf("Other.")];

  it.each([
    ["One. ", 0, 280],
    ["One. ", 100, 180],
    ["One. ", 262, 0],
    ["One, ", 0, 100],
    ["One ", 0, 0],
    ["One.\n\n", 60, 420],
  ])("behind %j with %i ms of silence: %i ms are missing", (text, silenceMs, missingMs) => {
    const splice = new Splice(SPLICES);
    splice.note({ utterance: one, text, silenceTicks: ms(silenceMs) });
    expect(splice.takePause(one)).toBe(ms(missingMs));
    expect(splice.takePause(one)).toBe(0);
  });

  it("is not made between utterances, nor after it was forgotten", () => {
    const splice = new Splice(SPLICES);
    expect(splice.takePause(one)).toBe(0);
    splice.note({ utterance: one, text: "One. ", silenceTicks: 0 });
    expect(splice.takePause(other)).toBe(0);
    splice.note({ utterance: one, text: "One. ", silenceTicks: 0 });
    splice.forget();
    expect(splice.takePause(one)).toBe(0);
  });
});

describe("UnsentSegments", () => {
  const segment = () => newStages({ start: 0, end: 1 }, { arrivedMs: 0, segmentedMs: 0 });

  it("notes the first frame of each that begins before what was sent, once", () => {
    const unsent = new UnsentSegments();
    const [first, second, third] = [segment(), segment(), segment()];
    for (const [index, stages] of [first, second, third].entries()) unsent.add(stages, ms(index * 100));
    unsent.noteSent(ms(100), 7);
    expect([first, second].map((stages) => stages.firstFrameMs)).toEqual([7, 0]);
    unsent.noteSent(ms(300), 9);
    expect([first, second, third].map((stages) => stages.firstFrameMs)).toEqual([7, 9, 9]);
    expect(unsent.isEmpty).toBe(true);
  });

  it("forgets what a cut has taken away", () => {
    const unsent = new UnsentSegments();
    const first = segment();
    unsent.add(first, 0);
    expect(unsent.isEmpty).toBe(false);
    unsent.clear();
    unsent.noteSent(ms(100), 7);
    expect(first.firstFrameMs).toBe(0);
  });
});

describe("knownEndOf()", () => {
  const word = (start: number, end: number, startMs: number, endMs: number, timing: Timing = "exact") => ({
    start,
    end,
    startTicks: ms(startMs),
    endTicks: ms(endMs),
    timing,
  });
  const words = (timing: Timing = "exact") => [word(0, 3, 0, 100), word(4, 7, 120, 200, timing)];
  const response = {
    words: words(),
    writeTicks: ms(50),
    receivedTicks: ms(250),
    soundTicks: ms(500),
    timedTicks: ms(240),
    places: { placeUpTo: (end: number) => end },
    hasTextBehind: () => true,
  };

  it("is behind the last word whose audio is here", () => {
    expect(knownEndOf(response)).toEqual({ spokenEnd: 7, ticks: ms(200) });
    expect(knownEndOf({ ...response, receivedTicks: ms(199) })).toEqual({ spokenEnd: 3, ticks: ms(100) });
    expect(knownEndOf({ ...response, receivedTicks: ms(50) })).toEqual({ spokenEnd: null, ticks: null });
  });

  it("is behind a word whose times were scaled, as behind one that is exactly timed", () => {
    expect(knownEndOf({ ...response, words: words("scaled") })).toEqual({ spokenEnd: 7, ticks: ms(200) });
  });

  it("is before a word whose times are estimated, or where no end may be", () => {
    const before = { spokenEnd: 3, ticks: ms(100) };
    const estimated = { ...response, words: words("estimated") };
    expect(knownEndOf(estimated)).toEqual(before);
    expect(knownEndOf({ ...response, places: { placeUpTo: (end) => (end === 7 ? 6 : end) } })).toEqual(
      before,
    );
    // A part of it was rendered: it is said again. All of it: that would be said twice.
    expect(knownEndOf({ ...estimated, writeTicks: ms(199) })).toEqual(before);
    expect(knownEndOf({ ...estimated, writeTicks: ms(200) })).toBeNull();
  });

  it("is not there where more was rendered than is timed", () => {
    expect(knownEndOf({ ...response, writeTicks: ms(245) })).toEqual({ spokenEnd: 7, ticks: ms(200) });
    expect(knownEndOf({ ...response, writeTicks: ms(551), soundTicks: ms(900) })).toBeNull();
    const untimed = { ...response, words: [], timedTicks: null };
    expect(knownEndOf({ ...untimed, writeTicks: ms(61) })).toBeNull();
    expect(knownEndOf({ ...untimed, writeTicks: 0 })).toEqual({ spokenEnd: null, ticks: null });
  });

  it("is there where what sounds behind it is silence, or about a word, or no text is left", () => {
    const end = { spokenEnd: 7, ticks: ms(200) };
    expect(knownEndOf({ ...response, writeTicks: ms(900), soundTicks: ms(245) })).toEqual(end);
    expect(knownEndOf({ ...response, writeTicks: ms(550), soundTicks: ms(900) })).toEqual(end);
    const all = { ...response, hasTextBehind: () => false };
    expect(knownEndOf({ ...all, writeTicks: ms(900), soundTicks: ms(900) })).toEqual(end);
  });

  it("is not there where the words before those that are remembered were heard", () => {
    const late = Array.from({ length: 20 }, (_, at) => word(at, at + 1, at * 10, at * 10 + 10, "estimated"));
    const heard = { ...response, words: late.slice(10), writeTicks: ms(195), receivedTicks: ms(200) };
    expect(knownEndOf(heard)).toBeNull();
  });
});

describe("remainderOf()", () => {
  const segment = { text: "abc, def. ", start: 5, end: 15 };

  it.each([
    [5, { text: "abc, def. ", start: 5, end: 15 }],
    [8, { text: ", def. ", start: 8, end: 15 }],
    [13, null],
    [15, null],
    [20, null],
  ])("from %i on", (from, rest) => {
    expect(remainderOf(utteranceOf("xxxx abc, def. "), segment, from)).toEqual(rest);
  });

  it("the remainder of a dialogue begins with the next input where this one has only punctuation left", () => {
    const inputs = [
      { text: "abc!", voice_id: "a" },
      { text: "def", voice_id: "b" },
    ];
    const dialogue = Utterance.ofDialogue(
      { id: "u", acceptedMs: 0, textDefaults: {} },
      { type: "dialogue", inputs },
    );
    const whole = { text: "abc!def", start: 0, end: 7 };
    expect(remainderOf(dialogue, whole, 3)).toEqual({ text: "def", start: 4, end: 7 });
  });
});

describe("Source.dropBehind()", () => {
  const tone = Uint8Array.from({ length: 800 }, () => 0x10);

  it.each([
    [0, 0],
    [-5, 0],
    [10, 80],
    [100, 800],
    [500, 800],
  ])("keeps %i ms of G.711: %i bytes", (keptMs, bytes) => {
    const source = new Source("ulaw_8000");
    source.push(tone);
    expect(source.dropBehind(ms(keptMs))).toBe(ms((800 - bytes) / 8));
    expect(source.take(ms(1000))?.raw()[0]?.byteLength).toBe(bytes === 0 ? undefined : bytes);
    expect(source.hasAudio).toBe(false);
  });

  it("rounds up to a sample, and leaves no half of one", () => {
    const source = new Source("pcm_8000");
    source.push(new Uint8Array(161).fill(0x20));
    source.dropBehind(ms(1) + 1);
    expect(source.take(ms(1000))?.raw()[0]?.byteLength).toBe(18);
    source.finish();
  });

  it("counts the silence at the end of what is kept, and silence that is added", () => {
    const source = new Source("ulaw_8000");
    source.push(concatBytes([tone, new Uint8Array(800).fill(0xff), tone]));
    source.dropBehind(ms(150));
    expect(source.trailingSilenceTicks).toBe(ms(50));
    source.addSilence(ms(10));
    expect(source.trailingSilenceTicks).toBe(ms(60));
    source.addSilence(-1);
    expect(source.take(ms(1000))?.ticks).toBe(ms(160));
  });

  it("keeps whole packets of Opus, and adds no silence", () => {
    const writer = new OggOpusWriter({ preSkip: 0, inputSampleRate: 48_000 });
    const packets = Array.from({ length: 5 }, (_, at) => Uint8Array.of(0xf8, 0xff, at));
    const source = new Source("opus_48000_64");
    source.push(
      concatBytes([writer.header(), ...packets.map((packet) => writer.push(packet, 960)), writer.finish()]),
    );
    expect(source.fillableTicks(ms(10))).toBe(0);
    expect(source.dropBehind(ms(41))).toBe(ms(40));
    source.addSilence(ms(10));
    expect(
      source
        .take(ms(1000))
        ?.raw()
        .map((packet) => packet[2]),
    ).toEqual([0, 1, 2]);
  });
});
