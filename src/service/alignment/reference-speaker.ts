/** Speaks a text with several of the engine's voices, with the time of each of its characters: what other speech of it is compared with. */

import { Locales } from "../text/locale.ts";
import { alignPiece } from "../voice/audio/align.ts";
import type { Engine, EngineEvent } from "../voice/engine/engine.ts";
import { findLanguage } from "../voice/engine/languages.ts";
import { VOICES } from "../voice/engine/voices.ts";
import { PLAIN_JOB } from "../voice/messages.ts";
import { type PlannedPiece, planPieces } from "../voice/plan/utterance-plan.ts";
import type { ReferenceSpeech } from "./reference-model.ts";

/** Voices that are unlike each other: what is spoken is compared with the one that is most like it. */
const SPEAKERS = [
  { variant: "f2", rate: 165, pitch: 50, range: 50 },
  { variant: "klatt4", rate: 165, pitch: 50, range: 50 },
] as const;

type Speaker = (typeof SPEAKERS)[number];

export class ReferenceSpeaker {
  readonly #engine: Engine;
  readonly #locales = new Locales();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** `language`: null, or one that the engine lacks: that of the text's script, or English. */
  speak(text: string, language: string | null): ReferenceSpeech[] {
    const known = language === null ? undefined : findLanguage(language);
    const pieces = [
      ...planPieces(
        {
          ...PLAIN_JOB,
          normalization: "auto",
          readsJapanese: true,
          inputs: [
            {
              text,
              voiceId: VOICES[0]?.id ?? "",
              languageCode: known?.code ?? null,
              ...(known?.accent == null ? {} : { accent: known.accent }),
            },
          ],
        },
        this.#locales,
      ),
    ];
    return SPEAKERS.map((speaker) => this.#speakAll(text, pieces, speaker));
  }

  #speakAll(text: string, pieces: readonly PlannedPiece[], speaker: Speaker): ReferenceSpeech {
    const { sampleRate } = this.#engine;
    const audio: Int16Array[] = [];
    const phonemes: { startSeconds: number; isPause: boolean }[] = [];
    const unitSeconds = new Float64Array(text.length + 1);
    let [samples, unit] = [0, 0];
    for (const piece of pieces) {
      const events: EngineEvent[] = [];
      const from = samples / sampleRate;
      if (piece.spoken.isSpeakable) {
        const name = `${piece.voice.name.split("+")[0]}+${speaker.variant}`;
        this.#engine.speak(piece.spoken.engineText, { ...speaker, name }, (some, its) => {
          audio.push(some.slice());
          samples += some.length;
          events.push(...its);
          return false;
        });
      }
      const silence = Math.round((piece.pauseMs / 1000) * sampleRate);
      audio.push(new Int16Array(silence));
      samples += silence;
      for (const { kind, atMs, isPause } of events)
        if (kind === "phoneme") phonemes.push({ startSeconds: from + atMs / 1000, isPause });
      const lengthMs = (samples / sampleRate - from) * 1000;
      const { original } = alignPiece(piece.spoken, events, { speechMs: lengthMs, endMs: lengthMs });
      for (const [i, character] of piece.spoken.original.entries()) {
        unitSeconds.fill(from + (original.startMs[i] ?? 0) / 1000, unit, unit + character.length);
        unit += character.length;
      }
    }
    unitSeconds.fill(samples / sampleRate, unit);
    return { samples: joined(audio, samples), sampleRate, phonemes, unitSeconds };
  }
}

function joined(pieces: readonly Int16Array[], length: number): Int16Array {
  const all = new Int16Array(length);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
