/**
 * What is kept of an utterance when it is cut, so that `resume` can go on from the word in which it was cut without
 * asking the upstream again: the audio from that word on, as far as it had come, and the text that is still to be
 * asked for.
 */
import { concatBytes } from "../audio/bytes.ts";
import { OggOpusWriter } from "../audio/ogg.ts";
import { opusPacketSamples48k } from "../audio/ogg-reader.ts";
import type { Segment } from "../text/segmenter.ts";
import { TICKS_PER_SECOND } from "../timing/ticks.ts";
import type { SynthesisChunk } from "../upstream/types.ts";
import { KeptRun, keptRunOf } from "./kept-run.ts";
import { TICKS_PER_MS } from "./playhead.ts";
import type { PlacedSlice, RecentAudio } from "./recent-audio.ts";
import { restOf } from "./rest-text.ts";
import type { SegmentFeed } from "./segment-feed.ts";
import type { TimedSegment } from "./segment-queue.ts";
import type { Run } from "./segment-run.ts";
import { newTimes } from "./segment-times.ts";
import type { Slice } from "./source.ts";
import type { SpokenTime, Utterance } from "./utterance.ts";

/** Before the first word, where nothing else is spoken: its first consonant. */
const LEAD_IN_TICKS = 40 * TICKS_PER_MS;
/** Larger than any rest of a response that is held back; an upstream that ignores that is not kept. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;

export interface KeepCut {
  readonly utterance: Utterance;
  /** Where it was cut, and where its pushed audio ends. */
  readonly cutTicks: number;
  readonly edgeTicks: number;
  readonly recent: RecentAudio;
  /** The one that is being pushed, if it is this utterance's. */
  readonly feed: SegmentFeed | null;
  /** What was asked for behind it; what has come of that is taken from it. */
  readonly behind: readonly Run[];
  readonly nowMs: number;
}

export interface KeptSpeech {
  readonly utterance: Utterance;
  /** What is spoken first, in its order: nothing where no whole word of it has come. */
  readonly runs: readonly KeptRun[];
  /** Offset in the spoken text where it goes on. */
  readonly spokenStart: number;
  /** Where on the former timeline it goes on. */
  readonly fromTicks: number;
  /** Text that was asked for and did not come. */
  readonly rest: readonly Segment[];
}

/** null where it can't go on: nothing was timed, or the audio is gone. */
export function keepSpeech(cut: KeepCut): KeptSpeech | null {
  const { utterance, cutTicks, feed } = cut;
  const isFeedComplete = feed === null || feed.isWhole;
  const slices = feed?.takeRest() ?? [];
  const words = [...utterance.words].sort((a, b) => a.startTicks - b.startTicks);
  const first = words.findIndex((word) => word.endTicks > cutTicks);
  const segments = cut.behind.map(({ segment: { text, start, end } }) => ({ text, start, end }));
  if (words.length === 0) return beforeFirstWord(cut, segments);
  const word = words[first];
  if (word === undefined) return afterLastWord(cut, words, segments);
  // Others may have been pushed right before it and right behind.
  const startTicks = utterance.startTicks ?? 0;
  const own = cut.recent
    .since(startTicks)
    .filter((recent) => recent.startTicks >= startTicks && recent.startTicks < cut.edgeTicks);
  const placed = [...own, ...placeBehind(slices, cut.edgeTicks)];
  const fromTicks = Math.max(words[first - 1]?.endTicks ?? startTicks, word.startTicks - LEAD_IN_TICKS);
  const haveTicks = placed.reduce((end, { startTicks, slice }) => Math.max(end, startTicks + slice.ticks), 0);
  const last = isFeedComplete ? words.at(-1) : words.findLast((known) => known.endTicks <= haveTicks);
  if (last === undefined || last.start < word.start) {
    return {
      utterance,
      runs: [],
      spokenStart: word.start,
      fromTicks,
      rest: withRest(cut, word.start, segments),
    };
  }
  if ((placed[0]?.startTicks ?? Number.POSITIVE_INFINITY) > fromTicks) return null;
  const feedEnd = feed?.segment.end ?? segments[0]?.start ?? utterance.characters.at(-1)?.end ?? last.end;
  const rest = isFeedComplete || feed === null ? null : restOf(utterance, feed.segment, last.end);
  // Punctuation behind the last word that has come is nothing to ask for: it goes with what is kept, or nobody tells it.
  const spokenEnd = rest?.start ?? feedEnd;
  const untilTicks = rest === null ? haveTicks : last.endTicks;
  const audio = cutOut(placed, { fromTicks, untilTicks });
  if (audio === null || audio.bytes.byteLength > MAX_KEPT_BYTES) return null;
  const text = utterance.spoken.spoken.slice(word.start, spokenEnd);
  const run = keptRunOf({
    segment: timedAt(cut, { text, start: word.start, end: spokenEnd }),
    sourceFormat: utterance.sourceFormat,
    audio: audio.bytes,
    characters: utterance.characters.filter((time) => time.start >= word.start && time.end <= spokenEnd),
    normalized: utterance.normalized.filter((time) => time.start >= word.start && time.start < spokenEnd),
    voices: utterance.voices.filter((voice) => voice.start < spokenEnd && voice.end > word.start),
    inputsBefore: utterance.inputsBefore(word.start),
    fromTicks: audio.startTicks,
    text: utterance.spoken.spoken,
    timing: utterance.timing === "none" ? "estimated" : utterance.timing,
  });
  const behind = rest === null ? keepBehind(cut) : [];
  return {
    utterance,
    runs: [run, ...behind],
    spokenStart: word.start,
    fromTicks: audio.startTicks,
    rest: rest === null ? segments.slice(behind.length) : [rest, ...segments],
  };
}

/** Answers that stand behind and have come whole, the first ones in a row; what is left has to be asked for again. */
function keepBehind(cut: KeepCut): KeptRun[] {
  const kept: KeptRun[] = [];
  for (const run of cut.behind) {
    if (!run.isComplete || run.error !== null || run.waitingBytes > MAX_KEPT_BYTES) break;
    const chunks: SynthesisChunk[] = [];
    // The memory of what is taken is used again.
    for (let chunk = run.take(); chunk !== undefined; chunk = run.take()) {
      chunks.push({ ...chunk, audio: new Uint8Array(chunk.audio) });
    }
    const { sourceFormat, timing, wantsTiming, requestId } = run;
    const segment = timedAt(cut, run.segment);
    kept.push(new KeptRun({ segment, sourceFormat, timing, wantsTiming, requestId, chunks }));
  }
  return kept;
}

function timedAt({ utterance, nowMs }: KeepCut, { text, start, end }: Segment): TimedSegment {
  const times = newTimes(utterance.spoken.clientRange(start, end), { arrivedMs: nowMs, cutMs: nowMs });
  return { text, start, end, times };
}

/** Not even one word has come whole: it is asked for again. null where nothing was timed, so that nothing is known. */
function beforeFirstWord(cut: KeepCut, segments: readonly Segment[]): KeptSpeech | null {
  const { utterance, feed, cutTicks } = cut;
  const spokenStart = feed?.segment.start;
  if (spokenStart === undefined || utterance.characters.length === 0) return null;
  const rest = withRest(cut, spokenStart, segments);
  if (rest.length === 0 && utterance.isExhausted) return null;
  return { utterance, runs: [], spokenStart, fromTicks: utterance.startTicks ?? cutTicks, rest };
}

/** All words that are known were heard: only text that was not asked for or has not come is left. */
function afterLastWord(
  cut: KeepCut,
  words: readonly SpokenTime[],
  segments: readonly Segment[],
): KeptSpeech | null {
  const { utterance, feed } = cut;
  const end = words.at(-1)?.end ?? 0;
  const isFeedOpen = feed !== null && !feed.isWhole;
  const runs = isFeedOpen ? [] : keepBehind(cut);
  const rest = isFeedOpen ? withRest(cut, end, segments) : segments.slice(runs.length);
  if (runs.length + rest.length === 0 && utterance.isExhausted) return null;
  const spokenStart = runs[0]?.segment.start ?? rest[0]?.start ?? end;
  return { utterance, runs, spokenStart, fromTicks: cut.cutTicks, rest };
}

/** The text of the segment that was being spoken from `spokenStart` on, then the segments behind it. */
function withRest({ feed, utterance }: KeepCut, spokenStart: number, behind: readonly Segment[]): Segment[] {
  const rest = feed === null ? null : restOf(utterance, feed.segment, spokenStart);
  return rest === null ? [...behind] : [rest, ...behind];
}

function placeBehind(slices: readonly Slice[], edgeTicks: number): PlacedSlice[] {
  let startTicks = edgeTicks;
  return slices.map((slice) => {
    const placed = { startTicks, slice };
    startTicks += slice.ticks;
    return placed;
  });
}

interface Range {
  readonly fromTicks: number;
  readonly untilTicks: number;
}

/** The audio between two places, cut at samples or packets; as one upstream response would bring it. */
function cutOut(
  placed: readonly PlacedSlice[],
  range: Range,
): { readonly bytes: Uint8Array; readonly startTicks: number } | null {
  const pieces: Uint8Array[] = [];
  let startTicks: number | null = null;
  const format = placed[0]?.slice.format ?? "";
  const isOpus = format.startsWith("opus");
  const bytesPerSample = format.startsWith("pcm") ? 2 : 1;
  for (const { startTicks: sliceTicks, slice } of placed) {
    let at = sliceTicks;
    for (const raw of slice.raw()) {
      const ticks = isOpus ? packetTicks(raw) : slice.ticks;
      const ticksPerSample = isOpus ? ticks : (ticks * bytesPerSample) / raw.byteLength;
      // A packet is taken whole where any of it is wanted: rather the end of a word before than half a sound.
      const before = (range.fromTicks - at) / ticksPerSample;
      const skipped = Math.max(0, isOpus ? Math.floor(before) : Math.ceil(before));
      const wanted = Math.ceil((range.untilTicks - at) / ticksPerSample);
      const piece = isOpus
        ? wholePacket(raw, skipped, wanted)
        : raw.subarray(skipped * bytesPerSample, Math.max(0, wanted) * bytesPerSample);
      if (piece.byteLength > 0) {
        startTicks ??= at + skipped * ticksPerSample;
        pieces.push(piece);
      }
      at += ticks;
    }
  }
  if (startTicks === null) return null;
  // A copy, be it of one piece: the memory of those that were not pushed is used again.
  return { bytes: isOpus ? inOgg(pieces) : new Uint8Array(concatBytes(pieces)), startTicks };
}

function wholePacket(packet: Uint8Array, skipped: number, wanted: number): Uint8Array {
  return skipped < 1 && wanted > 0 ? packet : packet.subarray(0, 0);
}

function packetTicks(packet: Uint8Array): number {
  return (opusPacketSamples48k(packet) * TICKS_PER_SECOND) / 48_000;
}

/** Packets as an upstream sends them; what decoders skip at the start is on the timeline already. */
function inOgg(packets: readonly Uint8Array[]): Uint8Array {
  const writer = new OggOpusWriter({ preSkip: 0, inputSampleRate: 48_000 });
  const pages = [writer.header()];
  for (const packet of packets) pages.push(writer.push(packet, opusPacketSamples48k(packet)));
  pages.push(writer.finish());
  return concatBytes(pages);
}
