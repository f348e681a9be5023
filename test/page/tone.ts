/** A tone instead of a voice: each word lasts as long as it has letters and sounds at a pitch of its own. */
import type OpusScript from "opusscript";
import type { Word, WordsEvent } from "../../src/protocol/events.ts";

export const FRAME_MS = 20;
export const FRAME_SAMPLES = 960;
const MS_PER_LETTER = 36;
const PAUSE_MS = 60;

const WORDS_PER_CUE = 5;

/** An utterance as it will be sent: its frames, and its events by their place in it. */
export interface Unit {
  readonly frames: Uint8Array[];
  readonly events: { atMs: number; event: Record<string, unknown> }[];
  readonly id: string;
  text: string;
  readonly words: Word[];
}

/** Pitch of the word at `index` of a text's (or dialogue input's) words. */
export function pitchOf(index: number, input = 0): number {
  return 180 + 40 * (index % 8) + 300 * input;
}

interface Input {
  readonly text: string;
  readonly voice_id: string;
}

/** Tone and times of an utterance, as if it began at 0. */
export function makeUnit(encoder: OpusScript, said: { id: string; inputs: readonly Input[] }): Unit {
  const { id, inputs } = said;
  const text = inputs.map((input) => input.text).join("");
  const unit: Unit = { frames: [], events: [], id, text, words: [] };
  const tone: number[] = [];
  let start = 0;
  for (const [index, input] of inputs.entries()) {
    const startMs = timeOf(tone);
    addWords(unit, tone, { input, index, start });
    const end = start + input.text.length;
    const shared = { utterance_id: id, start, end };
    const lasts = { start_ms: startMs, end_ms: timeOf(tone) };
    const line = { voice_id: input.voice_id, dialogue_input_index: index };
    unit.events.push({ atMs: startMs, event: { type: "segment", ...shared, ...lasts, ...line } });
    const characters = { characters: Array.from(input.text), start_ms: [], end_ms: [], timing: "exact" };
    unit.events.push({ atMs: startMs, event: { type: "characters", ...shared, ...characters } });
    start = end;
  }
  addCues(unit);
  unit.events.sort((a, b) => a.atMs - b.atMs);
  for (let at = 0; at < tone.length; at += FRAME_SAMPLES) {
    const pcm = new Int16Array(FRAME_SAMPLES);
    for (let n = 0; n < FRAME_SAMPLES; n += 1) pcm[n] = tone[at + n] ?? 0;
    unit.frames.push(new Uint8Array(encoder.encode(Buffer.from(pcm.buffer), FRAME_SAMPLES)));
  }
  return unit;
}

function timeOf(tone: readonly number[]): number {
  return Math.round(tone.length / 48);
}

function addWords(unit: Unit, tone: number[], line: { input: Input; index: number; start: number }): void {
  const segmenter = new Intl.Segmenter("en", { granularity: "word" });
  for (const { segment: text, index: at, isWordLike } of segmenter.segment(line.input.text)) {
    if (isWordLike !== true) continue;
    const start_ms = timeOf(tone);
    addTone(tone, {
      samples: text.length * MS_PER_LETTER * 48,
      hertz: pitchOf(unit.words.length, line.index),
    });
    const start = line.start + at;
    const word = { text, start_ms, end_ms: timeOf(tone), start, end: start + text.length };
    unit.words.push(word);
    const event: Omit<WordsEvent, "seq" | "at_ms"> = {
      type: "words",
      utterance_id: unit.id,
      words: [word],
      timing: "exact",
    };
    unit.events.push({ atMs: start_ms, event });
    for (let n = 0; n < PAUSE_MS * 48; n += 1) tone.push(0);
  }
}

function addCues(unit: Unit): void {
  for (let at = 0; at < unit.words.length; at += WORDS_PER_CUE) {
    const words = unit.words.slice(at, at + WORDS_PER_CUE);
    const first = words[0];
    const last = words.at(-1);
    if (first === undefined || last === undefined) continue;
    const { start, start_ms } = first;
    const { end, end_ms } = last;
    const lines = [{ text: unit.text.slice(start, end), words }];
    const event = { type: "cue", utterance_id: unit.id, start_ms, end_ms, start, end, lines };
    unit.events.push({ atMs: start_ms, event });
  }
}

/** Puts more of the same utterance behind what there is of it. */
export function append(unit: Unit, more: Unit): void {
  const byMs = unit.frames.length * FRAME_MS;
  const by = unit.text.length;
  unit.frames.push(...more.frames);
  unit.text += more.text;
  const moved = (item: Word | Record<string, unknown>) => moveOffsets(shifted({ ...item }, byMs), by);
  unit.words.push(...more.words.map((word) => moved(word) as unknown as Word));
  unit.events.push(...more.events.map(({ atMs, event }) => ({ atMs: atMs + byMs, event: moved(event) })));
}

function moveOffsets(item: Record<string, unknown>, by: number): Record<string, unknown> {
  const moved = { ...item };
  if (typeof moved.start === "number") moved.start += by;
  if (typeof moved.end === "number") moved.end += by;
  if (Array.isArray(moved.words)) moved.words = moved.words.map((word: Word) => moveOffsets({ ...word }, by));
  return moved;
}

/** Fades in and out over 400 samples, so that it does not click. */
function addTone(tone: number[], { samples, hertz }: { samples: number; hertz: number }): void {
  for (let n = 0; n < samples; n += 1) {
    const loudness = 9000 * Math.min(1, n / 400, (samples - n) / 400);
    tone.push(loudness * Math.sin((2 * Math.PI * hertz * n) / 48_000));
  }
}

/** An event of an utterance, moved to where the utterance begins. */
export function shifted(event: Record<string, unknown>, byMs: number): Record<string, unknown> {
  const moved = { ...event };
  if (typeof moved.start_ms === "number") moved.start_ms += byMs;
  if (typeof moved.end_ms === "number") moved.end_ms += byMs;
  if (Array.isArray(moved.words)) moved.words = moved.words.map((word: Word) => shifted({ ...word }, byMs));
  if (Array.isArray(moved.lines)) {
    moved.lines = moved.lines.map((line: Record<string, unknown>) => shifted(line, byMs));
  }
  return moved;
}
