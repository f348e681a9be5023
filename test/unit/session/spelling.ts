/**
 * Speech that can be read back: each letter sounds as a code of its own for 50 ms, everything else is silence. So a test
 * can say from the frames alone which letters a listener heard.
 */
import type { OpusPool } from "../../../src/audio/codecs/opus-pool.ts";
import type { SessionSettings } from "../../../src/session/session-deps.ts";
import type { Aligner } from "../../../src/timing/aligner.ts";
import type { MemoryListener } from "../../helpers/memory-listener.ts";
import { createRig, evenAlignment, type FakeRequest } from "../../helpers/session-rig.ts";
import { watchedLog } from "../../helpers/watched-log.ts";

export const VOICE = "voice-1";
export const CHAR_MS = 50;
/** Runs shorter than this are rises and falls, 2.5 ms at 8 kHz. */
const MIN_RUN = 20;

export type SpellingFormat = "ulaw_8000" | "pcm_8000" | "pcm_16000" | "pcm_24000";

interface Codes {
  readonly bytesPerSample: number;
  readonly samplesPerMs: number;
  readonly codeOf: (letter: number) => number;
  readonly silence: number;
}

const CODES: Record<SpellingFormat, Codes> = {
  ulaw_8000: { bytesPerSample: 1, samplesPerMs: 8, codeOf: (letter) => 0x10 + letter, silence: 0xff },
  pcm_8000: { bytesPerSample: 2, samplesPerMs: 8, codeOf: (letter) => 2000 + letter * 100, silence: 0 },
  pcm_16000: { bytesPerSample: 2, samplesPerMs: 16, codeOf: (letter) => 2000 + letter * 100, silence: 0 },
  pcm_24000: { bytesPerSample: 2, samplesPerMs: 24, codeOf: (letter) => 2000 + letter * 100, silence: 0 },
};

export function spell(text: string, format: SpellingFormat = "ulaw_8000"): Uint8Array {
  const { bytesPerSample, samplesPerMs, codeOf, silence } = CODES[format];
  const perCharacter = CHAR_MS * samplesPerMs;
  const bytes = new Uint8Array(text.length * perCharacter * bytesPerSample);
  const view = new DataView(bytes.buffer);
  for (let index = 0; index < text.length * perCharacter; index += 1) {
    const letter = (text.charCodeAt(Math.floor(index / perCharacter)) | 32) - 97;
    const code = letter >= 0 && letter < 26 ? codeOf(letter) : silence;
    if (bytesPerSample === 1) view.setUint8(index, code);
    else view.setInt16(index * 2, code, true);
  }
  return bytes;
}

/** Letters of the audio; one that is cut short counts where more than half of it is there. */
export function read(audio: Uint8Array, format: SpellingFormat = "ulaw_8000"): string {
  const { bytesPerSample, samplesPerMs, codeOf } = CODES[format];
  const view = new DataView(audio.buffer, audio.byteOffset, audio.byteLength);
  const samples = audio.byteLength / bytesPerSample;
  const at = (index: number): number =>
    bytesPerSample === 1 ? view.getUint8(index) : view.getInt16(index * 2, true);
  let letters = "";
  for (let start = 0; start < samples; ) {
    let end = start + 1;
    while (end < samples && at(end) === at(start)) end += 1;
    const letter = Array.from({ length: 26 }, (_, index) => codeOf(index)).indexOf(at(start));
    const count = Math.round((end - start) / (CHAR_MS * samplesPerMs));
    if (letter >= 0 && end - start >= MIN_RUN) letters += String.fromCharCode(97 + letter).repeat(count);
    start = end;
  }
  return letters;
}

export function lettersOf(text: string): string {
  return text.toLowerCase().replace(/[^a-z]/g, "");
}

/** A stretch of audio that was heard without a cut. */
export interface Span {
  readonly startMs: number;
  readonly audio: Uint8Array;
}

/** What a listener has heard who drops what `interrupted` says is to be dropped. Cuts on whole samples. */
export function heardOf(
  listener: MemoryListener,
  format: SpellingFormat = "ulaw_8000",
  frameMs = 20,
): readonly Span[] {
  const bytesPerMs = CODES[format].samplesPerMs * CODES[format].bytesPerSample;
  let startMs = listener.eventsOf("hello")[0]?.audio?.start_ms ?? 0;
  let frames: Uint8Array[] = [];
  const stretches: Span[] = [];
  const close = (atMs: number): void => {
    const bytes = Math.max(0, Math.round(atMs - startMs)) * bytesPerMs;
    stretches.push({ startMs, audio: Uint8Array.from(Buffer.concat(frames).subarray(0, bytes)) });
    frames = [];
  };
  for (const { frame, event } of listener.sent) {
    if (frame !== undefined) frames.push(frame);
    else if (event?.type === "interrupted" && event.next_ms !== null) {
      close(event.at_ms);
      startMs = event.next_ms;
    }
  }
  close(startMs + frames.length * frameMs);
  return stretches;
}

/** The letter that sounds at a place of the timeline; "" is silence. */
export function letterAt(
  stretches: readonly Span[],
  atMs: number,
  format: SpellingFormat = "ulaw_8000",
): string {
  const bytesPerMs = CODES[format].samplesPerMs * CODES[format].bytesPerSample;
  const stretch = stretches.findLast(({ startMs }) => startMs <= atMs);
  const from = Math.round(atMs - (stretch?.startMs ?? 0)) * bytesPerMs;
  return read(stretch?.audio.subarray(from, from + CHAR_MS * bytesPerMs) ?? new Uint8Array(0), format);
}

export function textOf({ request }: FakeRequest): string {
  return request.kind === "speech" ? request.text : request.inputs.map((input) => input.text).join("");
}

export interface Answer {
  /** Characters from `from` on that come; default all. */
  readonly chars?: number;
  readonly from?: number;
  /** More is to come; default false where all came. */
  readonly isOpen?: boolean;
  /** Characters a chunk. */
  readonly chunk?: number;
}

/** Sends a request's text as speech, with its timing. */
export function answer(open: FakeRequest | undefined, given: Answer = {}): void {
  if (open === undefined) throw new Error("No such request");
  const text = textOf(open);
  const { from = 0, chars = text.length - from, chunk = chars } = given;
  const end = Math.min(text.length, from + chars);
  if (from === 0) open.head();
  for (let at = from; at < end; at += chunk) {
    const piece = text.slice(at, Math.min(end, at + chunk));
    open.chunk(spell(piece, open.request.outputFormat as SpellingFormat), {
      alignment: evenAlignment(piece, CHAR_MS, at * CHAR_MS),
    });
  }
  if (given.isOpen !== true && end === text.length) open.handlers.end();
}

/** A session with one listener that speaks. */
export function stage(
  query = "format=ulaw_8000",
  settings: Partial<SessionSettings> = {},
  opusPool?: OpusPool,
  aligner?: Aligner,
) {
  const rig = createRig(settings, opusPool, watchedLog, aligner);
  const first = rig.join(query);
  const speak = (text: string, id: string, more: object = {}): void =>
    first.send({ type: "speak", text, voice_id: VOICE, utterance_id: id, ...more });
  /** Answers every request that is open and was not answered. */
  const answered = new Set<FakeRequest>();
  const answerAll = (): void => {
    for (let index = 0; index < rig.requests.length; index += 1) {
      const open = rig.requests[index];
      if (open === undefined || open.isAborted || answered.has(open)) continue;
      answered.add(open);
      answer(open);
    }
  };
  /** Lets time pass, answering what is asked. */
  const hearOut = (ms = 20_000): void => {
    for (let passed = 0; passed < ms; passed += 100) {
      answerAll();
      rig.clock.advance(100);
    }
  };
  const answerOne = (index: number, given: Answer = {}): void => {
    const open = rig.requests[index];
    if (open !== undefined) answered.add(open);
    answer(open, given);
  };
  const outcomes = (): string[] =>
    first.listener.eventsOf("utterance.done").map((event) => `${event.utterance_id}/${event.outcome}`);
  const asked = (): string[] => rig.requests.map(textOf);
  return { ...rig, ...first, speak, answer: answerOne, answerAll, hearOut, outcomes, asked };
}
