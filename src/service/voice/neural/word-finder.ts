/**
 * When the words of a text are spoken in a model's speech of it: found by the embedded engine's own speech of it, or else spread
 * over the stretches that sound. They are told as the engine tells its own.
 */
import { PauseFinder } from "../../../audio/analysis/pause-finder.ts";
import type { FoundWord } from "../../../timing/aligner.ts";
import { AlignedText } from "../../../timing/estimate/aligned-text.ts";
import { bandwidthOf } from "../../alignment/mel-spectrum.ts";
import { OnlineAlignment } from "../../alignment/online-alignment.ts";
import { modelOf, textWordsOf } from "../../alignment/reference-model.ts";
import { ReferenceSpeaker } from "../../alignment/reference-speaker.ts";
import type { Engine, EngineEvent } from "../engine/engine.ts";

export interface ModelSpeech {
  readonly text: string;
  /** As clients name it; null: it is not known how the text sounds. */
  readonly language: string | null;
  readonly samples: Int16Array<ArrayBuffer>;
  /** Hz. */
  readonly sampleRate: number;
}

export class WordFinder {
  readonly #engine: Engine;
  readonly #speaker: ReferenceSpeaker;

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#speaker = new ReferenceSpeaker(engine);
  }

  /** In the order of the text. Takes about a thirtieth of the speech's time. */
  find(speech: ModelSpeech): EngineEvent[] {
    const words = this.#align(speech) ?? spread(speech);
    return eventsOf(speech.text, words);
  }

  /** null: the speech is not like the text, as far as that is known. */
  #align({ text, language, samples, sampleRate }: ModelSpeech): FoundWord[] | null {
    if (language === null) return null;
    // The same speech has the same times, whatever was spoken before.
    this.#engine.reset();
    const model = modelOf(text, this.#speaker.speak(text, language), bandwidthOf(sampleRate));
    if (model === null) return null;
    const alignment = new OnlineAlignment(model, sampleRate);
    const words = [...alignment.push(samples), ...alignment.finish()];
    return alignment.isLike ? words : null;
  }
}

function spread({ text, samples, sampleRate }: ModelSpeech): FoundWord[] {
  const bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
  const pauses = new PauseFinder(`pcm_${sampleRate}`).push(bytes);
  const clock = new AlignedText(text, { startSeconds: 0, endSeconds: samples.length / sampleRate, pauses });
  return textWordsOf(text).map(({ start, end }) => ({
    start,
    end,
    startSeconds: clock.secondsAt(start),
    endSeconds: clock.secondsAt(end),
  }));
}

/** A word's onset, a sound that begins there, and the silence behind it. */
function eventsOf(text: string, words: readonly FoundWord[]): EngineEvent[] {
  let [unit, codePoint] = [0, 0];
  return words.flatMap(({ start, end, startSeconds, endSeconds }): EngineEvent[] => {
    codePoint += [...text.slice(unit, start)].length;
    unit = start;
    const place = { textIndex: codePoint, length: [...text.slice(start, end)].length };
    const [atMs, endMs] = [startSeconds * 1000, endSeconds * 1000];
    return [
      { ...place, kind: "word", atMs, isPause: false },
      { ...place, kind: "phoneme", atMs, isPause: false },
      { ...place, kind: "phoneme", atMs: endMs, isPause: true },
    ];
  });
}
