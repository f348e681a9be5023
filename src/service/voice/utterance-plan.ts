/** The pieces of a request in speaking order, prepared one at a time: what to say, in which voice, and the silence after. */
import type { EngineVoice } from "./engine.ts";
import { findLanguage, languageForScript } from "./languages.ts";
import { findMarkup } from "./markup.ts";
import type { JobInput, JobSpec } from "./messages.ts";
import { cutPieces, type Piece } from "./pieces.ts";
import { prepareSpoken, type Spoken } from "./spoken.ts";
import { varied } from "./variation.ts";
import { findVoice, VOICES, type Voice } from "./voices.ts";

export interface PlannedPiece {
  readonly inputIndex: number;
  readonly voiceId: string;
  readonly spoken: Spoken;
  readonly voice: EngineVoice;
  /** Silence after the piece, ms. */
  readonly pauseMs: number;
  readonly isLast: boolean;
}

/** Between two inputs of a dialogue, at normal speed. */
const TURN_PAUSE_MS = 250;
const MIN_RATE = 80;
const MAX_RATE = 450;

/** Lazy: a long text's first piece does not wait for the rest. Every piece knows whether it is the last. */
export function* planPieces(spec: JobSpec): Generator<PlannedPiece> {
  for (const [inputIndex, input] of spec.inputs.entries()) {
    const isLastInput = inputIndex === spec.inputs.length - 1;
    const markup = findMarkup(input.text, { audioTags: spec.audioTags });
    const pieces = cutPieces(input.text, markup);
    let current = pieces.next();
    let pieceIndex = 0;
    while (current.done !== true) {
      const following = pieces.next();
      const isLastOfInput = following.done === true;
      const base = { inputIndex, isLast: isLastOfInput && isLastInput };
      const place = { spec, input, inputIndex, pieceIndex, isLastOfInput, isLastInput };
      yield { ...base, ...preparePiece(current.value, place) };
      current = following;
      pieceIndex += 1;
    }
  }
}

function preparePiece(
  piece: Piece,
  place: {
    readonly spec: JobSpec;
    readonly input: JobInput;
    readonly inputIndex: number;
    readonly pieceIndex: number;
    readonly isLastOfInput: boolean;
    readonly isLastInput: boolean;
  },
): Omit<PlannedPiece, "inputIndex" | "isLast"> {
  const { spec, input } = place;
  const voice = voiceOf(input);
  const language = languageForScript(piece.text, input.languageCode ?? voice.language);
  const spoken = prepareSpoken(piece.text, {
    markup: piece.markup,
    normalizesEnglish: spec.normalizes && language === "en",
  });
  let pauseMs = spoken.isSpeakable ? piece.pauseMs : 0;
  if (place.isLastOfInput) pauseMs = place.isLastInput ? 0 : TURN_PAUSE_MS;
  return {
    voiceId: input.voiceId,
    spoken,
    voice: engineVoice(voice, language, place),
    pauseMs: pauseMs / spec.speed + piece.breakMs,
  };
}

function voiceOf({ voiceId, sound }: JobInput): Voice {
  const voice = findVoice(sound?.base ?? voiceId) ?? defaultVoice();
  return sound === undefined ? voice : { ...voice, pitch: sound.pitch };
}

function defaultVoice(): Voice {
  const [first] = VOICES;
  if (first === undefined) throw new RangeError("Cannot speak: the catalogue has no voice");
  return first;
}

/** The speaker's variant is kept in every language; its accent only in its own. */
function engineVoice(
  voice: Voice,
  language: string,
  place: { readonly spec: JobSpec; readonly inputIndex: number; readonly pieceIndex: number },
): EngineVoice {
  const { spec, inputIndex, pieceIndex } = place;
  const { seed, stability } = spec;
  const engine =
    language === voice.language ? voice.engine : (findLanguage(language)?.engine ?? voice.engine);
  const plain = {
    name: `${engine}+${voice.variant}`,
    rate: voice.rate * spec.speed,
    pitch: voice.pitch,
    // Stability 0.5 and style 0 leave the voice as it is; the extremes are half and 2.25 times its movement.
    range: voice.range * (1.5 - stability) * (1 + spec.style / 2),
  };
  const wanted = seed === undefined ? plain : varied(plain, seed, { inputIndex, pieceIndex, stability });
  return {
    ...wanted,
    rate: clamp(Math.round(wanted.rate), MIN_RATE, MAX_RATE),
    pitch: clamp(Math.round(wanted.pitch), 0, 100),
    range: clamp(Math.round(wanted.range), 0, 100),
  };
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
