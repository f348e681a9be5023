/** What is kept of Opus that is passed through: packets as they came. */

import { afterAll, describe, expect, it, vi } from "vitest";
import { concatBytes } from "../../../../src/audio/bytes.ts";
import { OpusEncoder } from "../../../../src/audio/codecs/opus-encoder.ts";
import { OggOpusWriter } from "../../../../src/audio/containers/ogg.ts";
import { RecentAudio } from "../../../../src/session/output/recent-audio.ts";
import { Utterance } from "../../../../src/session/playback/utterance.ts";
import { takeSnapshot } from "../../../../src/session/resume/resume-point.ts";
import { Source } from "../../../../src/session/source.ts";
import { TICKS_PER_MS } from "../../../../src/timing/ticks.ts";
import { tone } from "../../audio/helpers.ts";

const FORMAT = "opus_48000_64";
const PACKET_MS = 20;
const TEXT = "alpha bravo charlie";
const START_MS = 700;
const encoder = new OpusEncoder({ sampleRate: 48_000, bitrateKbps: 64, complexity: 0 });
/** 1 s, each packet its own pitch. */
const packets = Array.from({ length: 50 }, (_, at) =>
  encoder.encode(tone({ hz: 200 + at * 40, rate: 48_000, samples: 960 })),
);

afterAll(() => encoder.close());

function sourceOf(bytes: Uint8Array): Source {
  const source = new Source(FORMAT);
  source.push(bytes);
  return source;
}

function oggOf(given: readonly Uint8Array[]): Uint8Array {
  const writer = new OggOpusWriter({ preSkip: 312, inputSampleRate: 48_000 });
  return concatBytes([writer.header(), ...given.map((packet) => writer.push(packet, 960)), writer.finish()]);
}

/** Of a cut: nothing is being pushed, and nothing was asked for behind it. */
const ALL_PUSHED = { segmentRenderer: null, coming: null, behind: [], nowMs: 0 } as const;

/** An utterance whose words take that long each from `START_MS` on, without any pause, all of it pushed. */
function cutAt(cutMs: number, wordMs = 300) {
  const utterance = Utterance.ofText(
    { id: "u", acceptedMs: 0, textDefaults: {} },
    {
      type: "speak",
      text: TEXT,
      voice_id: "v",
    },
  );
  utterance.takeSegment();
  utterance.chooseSourceFormat(FORMAT);
  utterance.begin(START_MS * TICKS_PER_MS);
  utterance.transcript.noteTiming("exact");
  const bounds = [0, 5, 6, 11, 12, 19];
  const times = [0, 1, 1, 2, 2, 3].map((count) => (START_MS + count * wordMs) * TICKS_PER_MS);
  for (let at = 0; at < bounds.length; at += 2) {
    const word = {
      start: bounds[at] ?? 0,
      end: bounds[at + 1] ?? 0,
      startTicks: times[at] ?? 0,
      endTicks: times[at + 1] ?? 0,
      timing: "exact" as const,
    };
    utterance.transcript.addWord(word);
    utterance.transcript.addCharacter({ ...word });
  }
  const recent = new RecentAudio(1 << 20);
  // Another one in another format was heard right before.
  const before = new Source("ulaw_8000");
  before.push(new Uint8Array(800));
  const former = before.take(100 * TICKS_PER_MS);
  if (former === undefined) throw new Error("No audio before");
  recent.push((START_MS - 100) * TICKS_PER_MS, former);
  const source = sourceOf(oggOf(packets));
  let writeTicks = START_MS * TICKS_PER_MS;
  for (
    let slice = source.take(60 * TICKS_PER_MS);
    slice !== undefined;
    slice = source.take(60 * TICKS_PER_MS)
  ) {
    recent.push(writeTicks, slice);
    writeTicks += slice.ticks;
  }
  const kept = takeSnapshot({
    utterance,
    cutTicks: (START_MS + cutMs) * TICKS_PER_MS,
    writeTicks,
    recent,
    ...ALL_PUSHED,
  });
  const run = kept?.replays[0];
  if (kept == null || run === undefined) throw new Error("Nothing was kept");
  return { kept, run };
}

describe("takeSnapshot() of Opus", () => {
  it.each([
    [0, 0, 0],
    [299, 0, 0],
    // 300 ms is the end of packet 14: the next one is the first of the word.
    [300, 15, 6],
    [599, 15, 6],
    [600, 30, 12],
    [899, 30, 12],
  ])("cut at %i ms keeps the very packets from number %i on", (cutMs, first, start) => {
    const { kept, run } = cutAt(cutMs);
    expect(run.sourceFormat).toBe(FORMAT);
    expect(kept.spokenStart).toBe(start);
    expect(kept.rest).toEqual([]);
    expect(run.segment).toMatchObject({ text: TEXT.slice(start), start, end: TEXT.length });
    const chunk = run.take();
    const slice = sourceOf(chunk?.audio ?? new Uint8Array(0)).take(10_000 * TICKS_PER_MS);
    expect(slice?.raw().map((packet) => [...packet])).toEqual(
      packets.slice(first).map((packet) => [...packet]),
    );
    expect(kept.fromTicks).toBe((START_MS + first * PACKET_MS) * TICKS_PER_MS);
    // The word begins where it did in the packets; what decoders skip was counted already.
    expect(chunk?.alignment?.character_start_times_seconds[0]).toBeCloseTo(0, 9);
    expect(run.hasChunk).toBe(false);
    expect(run.waitingBytes).toBe(0);
  });

  it("begins with the packet that the word begins in, though a word before ends in it", () => {
    const { kept, run } = cutAt(310, 310);
    expect(kept.fromTicks).toBe((START_MS + 300) * TICKS_PER_MS);
    const chunk = run.take();
    const slice = sourceOf(chunk?.audio ?? new Uint8Array(0)).take(10_000 * TICKS_PER_MS);
    expect(slice?.raw().map((packet) => [...packet])).toEqual(packets.slice(15).map((packet) => [...packet]));
    expect(chunk?.alignment?.character_start_times_seconds[0]).toBeCloseTo(0.01, 9);
  });

  it("gives the same audio as often as it is asked for, whatever became of the first", () => {
    const { run } = cutAt(300);
    const again = run.again();
    expect(again.hasChunk).toBe(true);
    run.abort();
    expect(run.hasChunk).toBe(false);
    const slice = sourceOf(again.take()?.audio ?? new Uint8Array(0)).take(10_000 * TICKS_PER_MS);
    expect(slice?.raw().map((packet) => [...packet])).toEqual(packets.slice(15).map((packet) => [...packet]));
  });
});

describe("takeSnapshot() of what was not pushed", () => {
  it("is a copy, also of one piece: its memory is used for what is said next", () => {
    const utterance = Utterance.ofText(
      { id: "u", acceptedMs: 0, textDefaults: {} },
      { type: "speak", text: TEXT, voice_id: "v" },
    );
    utterance.takeSegment();
    utterance.chooseSourceFormat("ulaw_8000");
    utterance.begin(0);
    utterance.transcript.noteTiming("exact");
    const time = { start: 0, end: 19, startTicks: 0, endTicks: 500 * TICKS_PER_MS };
    utterance.transcript.addWord({ ...time, timing: "exact" });
    utterance.transcript.addCharacter(time);
    const memory = new Uint8Array(4000).fill(0x20);
    const slice = {
      format: "ulaw_8000",
      ticks: 500 * TICKS_PER_MS,
      pcmRate: 8000,
      raw: () => [memory],
      pcm: () => new Int16Array(),
    };
    const recent = new RecentAudio(1 << 20);
    const since = vi.spyOn(recent, "since").mockReturnValue([{ startTicks: 0, slice }]);
    const writeTicks = 500 * TICKS_PER_MS;
    const kept = takeSnapshot({ utterance, cutTicks: 0, writeTicks, recent, ...ALL_PUSHED });
    expect(since).toHaveBeenCalled();
    memory.fill(0);
    expect(kept?.replays[0]?.take()?.audio).toEqual(new Uint8Array(4000).fill(0x20));
  });
});
