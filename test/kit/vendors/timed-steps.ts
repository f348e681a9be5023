/** The body of a scripted service that has times of words: lines of audio and of words, and what can be wrong with them. */
import { UNKNOWN_DATA_BYTES, wavHeader } from "../../../src/audio/containers/wav.ts";
import type { FakeAnswer, FakeStep } from "../../helpers/fake-answer.ts";
import { piecesOf, type Spoken } from "./spoken.ts";

export const TIMED_FAULTS = [
  "times behind the audio",
  "no times",
  "error after 200",
  "no end",
  "words missing",
  "html",
  "times go back",
  "empty",
  "stall",
  "reset",
  "too many",
  "not json",
  "times short",
  "another rate",
  "half the rate",
  "silence behind",
  "header on each chunk",
  "header on each later chunk",
] as const;
export type TimedFault = (typeof TIMED_FAULTS)[number];

export interface TimedOptions {
  readonly fault?: TimedFault;
  /** What it says for the text: numbers written out. */
  readonly say?: readonly string[];
}

/** How a service writes its lines. */
export interface TimedWriter {
  audio(piece: Buffer, isLast: boolean): string;
  /** `isShort`: the list of ends is empty. */
  words(words: Spoken["words"], isShort: boolean): string;
  error(text: string): string;
  /** Its last line; "": it has none. */
  readonly end: string;
}

export interface TimedBody extends TimedOptions {
  readonly text: string;
  readonly spoken: Spoken;
  readonly hasTimes: boolean;
  readonly encode: (pcm: Int16Array) => Uint8Array;
  readonly sampleRate: number;
}

/** Samples in a piece of audio: odd, so that their bytes are, too. */
const PIECE_BYTES = 3001;

export function timedSteps(writer: TimedWriter, body: TimedBody): FakeStep[] {
  const { fault, spoken, text, hasTimes, encode, sampleRate } = body;
  if (fault === "not json") return ['data: {"type":"chunk","data":"AAAA\n\n'];
  if (fault === "empty") return [writer.end];
  const half = Math.ceil(spoken.words.length / 2);
  const isCut = fault === "words missing";
  const cutAt = Math.round(((spoken.words[half - 1]?.end ?? 0) + 0.02) * sampleRate);
  const told = isCut ? spoken.pcm.subarray(0, cutAt) : spoken.pcm;
  const pcm = samplesFor(fault, told, sampleRate);
  const pieces = piecesOf(encode(pcm), PIECE_BYTES);
  const audio = pieces.map((piece, index) =>
    writer.audio(
      hasHeader(fault, index) ? withHeader(piece, sampleRate) : piece,
      index === pieces.length - 1,
    ),
  );
  const words = isCut ? spoken.words.slice(0, half) : spoken.words;
  const times = hasTimes && fault !== "no times" ? wordLines(writer, words, fault) : [];
  const lines = fault === "times behind the audio" ? [...audio, ...times] : interleaved(audio, times);
  const some = lines.slice(0, Math.ceil(lines.length / 2));
  switch (fault) {
    case "error after 200":
      return [...some, writer.error(text)];
    case "no end":
      return some;
    case "stall":
    case "reset":
      return [...some, fault];
    default:
      return [...lines, writer.end];
  }
}

function hasHeader(fault: TimedFault | undefined, index: number): boolean {
  return fault === "header on each chunk" || (fault === "header on each later chunk" && index > 0);
}

function withHeader(piece: Buffer, sampleRate: number): Buffer {
  return Buffer.concat([wavHeader({ sampleRate, dataBytes: UNKNOWN_DATA_BYTES }), piece]);
}

function samplesFor(fault: TimedFault | undefined, told: Int16Array, sampleRate: number): Int16Array {
  // Each sample twice: it is at twice the rate that was asked for.
  if (fault === "another rate")
    return Int16Array.from({ length: 2 * told.length }, (_, index) => told[index >> 1] ?? 0);
  if (fault === "half the rate")
    return Int16Array.from({ length: told.length >> 1 }, (_, index) => told[2 * index] ?? 0);
  if (fault !== "silence behind") return told;
  const longer = new Int16Array(told.length + 10 * sampleRate);
  longer.set(told);
  return longer;
}

/** What any of them answers in the place of speech. */
export function htmlPage(): FakeAnswer {
  return { headers: { "content-type": "text/html" }, body: ["<html><body>A proxy</body></html>"] };
}

export function jsonError(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): FakeAnswer {
  return {
    status,
    headers: { "content-type": "application/json", ...headers },
    body: [JSON.stringify(body)],
  };
}

/** Two words each. */
function wordLines(writer: TimedWriter, words: Spoken["words"], fault: TimedFault | undefined): string[] {
  const lines: string[] = [];
  for (let at = 0; at < words.length; at += 2) {
    const back = fault === "times go back" && at >= 4 ? (words[4]?.start ?? 0) : 0;
    const some = words
      .slice(at, at + 2)
      .map(({ text, start, end }) => ({ text, start: start - back, end: end - back }));
    lines.push(writer.words(some, fault === "times short"));
  }
  return lines;
}

/** Each piece of audio with the times that are due, as far as there are any. */
function interleaved(audio: readonly string[], times: readonly string[]): string[] {
  const each = Math.ceil(times.length / Math.max(1, audio.length));
  const mixed = audio.flatMap((piece, index) => [piece, ...times.slice(index * each, (index + 1) * each)]);
  return [...mixed, ...times.slice(audio.length * each)];
}
