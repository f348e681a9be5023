/**
 * A text as it sounds: frames of speech of it that was made with its times, by several voices. Silence may come between any two
 * words; where a voice made some, it may as well stay away.
 */
import { Cepstra } from "./cepstra.ts";
import { FEATURES, fillFeatures, levelsOf } from "./features.ts";
import { type Bandwidth, HOP_SECONDS } from "./mel-spectrum.ts";

/** Speech of a text, made by one voice, with its times. Seconds from its start. */
export interface ReferenceSpeech {
  readonly samples: Int16Array;
  readonly sampleRate: number;
  /** Rising; the same ones for every voice, or the voice is not used. */
  readonly phonemes: readonly { readonly startSeconds: number; readonly isPause: boolean }[];
  /** When each UTF-16 unit of the text begins, and the end of the speech. */
  readonly unitSeconds: Float64Array;
}

interface TextWord {
  /** UTF-16 offsets in the text. */
  readonly start: number;
  readonly end: number;
}

export interface ReferenceModel {
  readonly words: readonly TextWord[];
  /** The word of each state; -1 for the silence before all of them. */
  readonly wordOf: Int32Array;
  /** 1: silence behind the word; 2: silence that punctuation asks for, or that a voice made. */
  readonly silence: Uint8Array;
  /** Features of each state, of one voice after the other. */
  readonly features: Float32Array;
  readonly voices: number;
  /** Mean coefficients of the voices, as a first guess of another one's. */
  readonly meanCoefficients: Float64Array;
}

/** Whitespace-delimited; a character each where a script has no spaces. */
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]\p{M}*|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+/gu;
const SAID = /[\p{L}\p{N}\p{S}\p{M}@#%&*]+/gu;
const PUNCTUATION = /[\p{Terminal_Punctuation}\p{Pd}…]/u;

/** Words with anything to say, from their first letter to their last. */
export function textWordsOf(text: string): TextWord[] {
  return [...text.matchAll(WORD)].flatMap(({ index, 0: word }) => {
    const said = [...word.matchAll(SAID)];
    const [first, last] = [said[0], said.at(-1)];
    if (first === undefined || last === undefined) return [];
    return [{ start: index + first.index, end: index + last.index + last[0].length }];
  });
}

interface Track {
  readonly speech: ReferenceSpeech;
  readonly features: Float32Array;
  readonly frames: number;
  readonly mean: Float64Array;
}

/** null: there is nothing to compare with. */
export function modelOf(
  text: string,
  speeches: readonly ReferenceSpeech[],
  bandwidth: Bandwidth,
): ReferenceModel | null {
  const words = textWordsOf(text);
  const [first] = speeches;
  if (first === undefined || words.length === 0 || first.phonemes.length === 0) return null;
  const tracks = speeches
    .filter(({ phonemes }) => phonemes.length === first.phonemes.length)
    .map((speech) => trackOf(speech, bandwidth));
  const [base] = tracks;
  if (base === undefined || base.frames === 0) return null;
  return stack(text, words, tracks, base);
}

function trackOf(speech: ReferenceSpeech, bandwidth: Bandwidth): Track {
  const cepstra = new Cepstra(speech.sampleRate, bandwidth);
  cepstra.push(speech.samples);
  const { count, values } = cepstra;
  const levels = levelsOf(values, count, null);
  const features = new Float32Array(count * FEATURES);
  fillFeatures(features, values, levels, { from: 0, to: count, count });
  return { speech, features, frames: count, mean: levels.coefficients };
}

function stack(
  text: string,
  words: readonly TextWord[],
  tracks: readonly Track[],
  base: Track,
): ReferenceModel {
  const states: { word: number; silence: number; frames: readonly number[] }[] = [];
  const { phonemes, unitSeconds } = base.speech;
  const wordSeconds = words.map(({ start }) => unitSeconds[start] ?? 0);
  const clocks = tracks.map(({ speech }) => clockOf(base.speech, speech));
  let [word, phoneme, hasPaused] = [-1, 0, true];
  const silenceBehind = (): void => {
    const between = text.slice(words[word]?.end, words[word + 1]?.start);
    const isAsked = hasPaused || word < 0 || PUNCTUATION.test(between);
    states.push({ word, silence: isAsked ? 2 : 1, frames: [] });
    hasPaused = false;
  };
  for (let frame = 0; frame < base.frames; frame += 1) {
    const seconds = (frame + 0.5) * HOP_SECONDS;
    while ((phonemes[phoneme + 1]?.startSeconds ?? Number.POSITIVE_INFINITY) <= seconds) phoneme += 1;
    const { startSeconds = 0, isPause = true } = phonemes[phoneme] ?? {};
    if (seconds < startSeconds || isPause) {
      hasPaused ||= seconds >= startSeconds;
      continue;
    }
    let now = Math.max(word, 0);
    while ((wordSeconds[now + 1] ?? Number.POSITIVE_INFINITY) <= seconds) now += 1;
    if (now !== word) {
      silenceBehind();
      word = now;
    }
    hasPaused = false;
    const inEach = clocks.map((clock, i) =>
      Math.min(Math.floor(clock(seconds) / HOP_SECONDS), (tracks[i]?.frames ?? 1) - 1),
    );
    states.push({ word, silence: 0, frames: inEach });
  }
  silenceBehind();
  const voices = tracks.length;
  const features = new Float32Array(states.length * voices * FEATURES);
  for (const [s, { frames }] of states.entries())
    for (const [v, frame] of frames.entries()) {
      const from = tracks[v]?.features.subarray(frame * FEATURES, (frame + 1) * FEATURES);
      if (from !== undefined) features.set(from, (s * voices + v) * FEATURES);
    }
  return {
    words,
    wordOf: Int32Array.from(states, (state) => state.word),
    silence: Uint8Array.from(states, (state) => state.silence),
    features,
    voices,
    meanCoefficients: base.mean.map(
      (_, i) => tracks.reduce((sum, { mean }) => sum + (mean[i] ?? 0), 0) / voices,
    ),
  };
}

/** Maps a moment of one voice's speech to the same moment of another's, phoneme by phoneme. */
function clockOf(base: ReferenceSpeech, other: ReferenceSpeech): (seconds: number) => number {
  if (base === other) return (seconds) => seconds;
  const ends = ({ phonemes, unitSeconds }: ReferenceSpeech): number[] => [
    ...phonemes.map(({ startSeconds }) => startSeconds),
    unitSeconds.at(-1) ?? 0,
  ];
  const [from, to] = [ends(base), ends(other)];
  let at = 0;
  return (seconds) => {
    while (at + 2 < from.length && (from[at + 1] ?? 0) <= seconds) at += 1;
    const [start = 0, end = start] = [from[at], from[at + 1]];
    const [otherStart = 0, otherEnd = otherStart] = [to[at], to[at + 1]];
    const share = end > start ? (seconds - start) / (end - start) : 0;
    return otherStart + (otherEnd - otherStart) * Math.min(Math.max(share, 0), 1);
  };
}
