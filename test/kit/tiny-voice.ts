/** A folder with a voice model that says a few words: real speech in a real model, made on the spot. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Engine } from "../../src/service/voice/engine/engine.ts";
import { onnxModel } from "./onnx-model.ts";

/** What it can say, in one order. */
const WORDS = ["seven", "yellow", "boats", "are", "waiting", "near", "the", "harbour"];
export const TINY_TEXT = "Seven yellow boats are waiting near the harbour.";
export const TINY_RATE = 22_050;

/** A word is many tokens of so many samples, a space and a mark one. */
const TOKEN_SAMPLES = 1000;
/** Another speaker than those that the aligner compares with. */
const SPEAKER = { name: "en-us+m3", rate: 170, pitch: 40, range: 40 } as const;
const PUNCTUATION = [",", ".", "!", "?"];
const QUIET = 300;

/** A word's sound, a token after the other. */
export interface TinyWord {
  readonly word: string;
  readonly tokens: readonly Float32Array[];
  /** Where it begins in the speech of all words, seconds. */
  readonly startSeconds: number;
}

/** All that it can say, as the engine does; the engine's rate is the model's. */
export async function tinyWords(): Promise<readonly TinyWord[]> {
  const engine = await Engine.load();
  if (engine.sampleRate !== TINY_RATE) throw new RangeError(`The engine speaks at ${engine.sampleRate} Hz`);
  let samples = 0;
  return WORDS.map((word) => {
    const startSeconds = samples / TINY_RATE;
    const tokens = tokensOf(engine, word);
    // With a space behind it.
    samples += (tokens.length + 1) * TOKEN_SAMPLES;
    return { word, tokens, startSeconds };
  });
}

/** From the word's first sound to its last. */
function tokensOf(engine: Engine, word: string): Float32Array[] {
  const spoken: number[] = [];
  engine.reset();
  engine.speak(word, SPEAKER, (samples) => {
    spoken.push(...samples);
    return false;
  });
  const isLoud = (sample: number) => Math.abs(sample) > QUIET;
  const sound = spoken.slice(spoken.findIndex(isLoud), spoken.findLastIndex(isLoud) + 1);
  return Array.from({ length: Math.ceil(sound.length / TOKEN_SAMPLES) }, (_, index) => {
    const token = new Float32Array(TOKEN_SAMPLES);
    const from = index * TOKEN_SAMPLES;
    for (const [at, sample] of sound.slice(from, from + TOKEN_SAMPLES).entries()) token[at] = sample / 32_768;
    return token;
  });
}

const SILENCE = new Float32Array(TOKEN_SAMPLES);

/** The samples of the text, as the model says it. */
export function tinySpeech(words: readonly TinyWord[]): Int16Array<ArrayBuffer> {
  const all = words.flatMap(({ tokens }) => [...tokens, SILENCE].flatMap((token) => [...token]));
  return Int16Array.from(all, (sample) => Math.round(sample * 32_767));
}

export interface TinyVoiceOptions {
  readonly speakers?: number;
  readonly isNoisy?: boolean;
}

/** Writes `folder/name` as sherpa-onnx expects it. */
export function writeTinyVoice(
  folder: string,
  name: string,
  words: readonly TinyWord[],
  { speakers = 1, isNoisy = true }: TinyVoiceOptions = {},
): void {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  const metadata = {
    model_type: "vits",
    // Its inputs are those of a model of Coqui.
    comment: "coqui",
    language: "English",
    voice: "en-us",
    n_speakers: speakers,
    sample_rate: TINY_RATE,
    add_blank: 0,
    punctuation: PUNCTUATION.join(" "),
  };
  const sounds = [SILENCE, ...words.flatMap(({ tokens }) => tokens)];
  writeFileSync(join(path, "model.onnx"), onnxModel({ metadata, sounds, speakers, isNoisy }));
  const namesOf = ({ word, tokens }: TinyWord) => tokens.map((_, index) => `${word}${index}`);
  const tokens = [
    "_ 0",
    ...words.flatMap(namesOf).map((token, index) => `${token} ${index + 1}`),
    ...PUNCTUATION.map((mark) => `${mark} 0`),
    // The space.
    " 0",
  ];
  writeFileSync(join(path, "tokens.txt"), `${tokens.join("\n")}\n`);
  const lexicon = words.map((word) => [word.word, ...namesOf(word)].join(" "));
  writeFileSync(join(path, "lexicon.txt"), `${lexicon.join("\n")}\n`);
}
