/** The pieces of a request in speaking order, prepared one at a time: what to say, in which voice, and the silence after. */
import { hashText } from "../../sound/random.ts";
import type { Locales } from "../../text/locale.ts";
import { Normalizer } from "../../text/normalizer.ts";
import type { BreathName } from "../audio/breath.ts";
import type { EngineVoice } from "../engine/engine.ts";
import { findLanguage, languageForScript } from "../engine/languages.ts";
import { varied } from "../engine/variation.ts";
import { findVoice, VOICES, type Voice } from "../engine/voices.ts";
import type { JobInput, JobSpec } from "../messages.ts";
import type { EnginePiece } from "../neural/speech-engine.ts";
import type { VoiceManner } from "./audio-tags.ts";
import { findMarkup, withRespellings } from "./markup.ts";
import { cutPieces, type Piece } from "./pieces.ts";
import { prepareSpoken, type Spoken } from "./spoken.ts";
import {
  engineJoiner,
  type Neighbours,
  type StitchedText,
  splitPiece,
  stitchText,
  type TextPart,
} from "./stitched-text.ts";

export interface PlannedPiece {
  readonly inputIndex: number;
  readonly voiceId: string;
  readonly spoken: Spoken;
  /** For the engine, as `spoken.engineText`: what other requests say of the same clause; mostly empty. */
  readonly neighbours: Neighbours;
  readonly voice: EngineVoice;
  /** The speaker of a model, who speaks it instead of the engine, without its neighbours. */
  readonly neural: Pick<EnginePiece, "model" | "speaker" | "speed"> | null;
  /** What it is spoken in, as clients name it; null: it is not known. */
  readonly language: string | null;
  /** What is heard after the words, while their last tag passes. */
  readonly breath: PlannedBreath | null;
  /** Silence that a tag asks for, and the piece's own after it, ms. */
  readonly breakMs: number;
  readonly pauseMs: number;
  readonly isLast: boolean;
}

export interface PlannedBreath {
  readonly name: BreathName;
  readonly seed: number;
}

/** Between two inputs of a dialogue, at normal speed. */
const TURN_PAUSE_MS = 250;
const MIN_RATE = 80;
const MAX_RATE = 450;
/** The engine's largest range of pitch. */
const MAX_RANGE = 99;
const RANGE_KNEE = 75;
/** How many times its usual range a voice has at stability 0 and style 1. */
const MAX_LIVELINESS = 2.25;
/** How much lower a voice is in each piece of a paragraph or turn than in the first one, in percent. */
const DECLINATION = [0, 2, 4, 5] as const;
const MAX_DECLINATION = 5;
const WORD = /[\p{L}\p{N}]/u;
const NO_NEIGHBOURS: Neighbours = { before: "", after: "" };

/** Lazy: a long text's first piece does not wait for the rest. Every piece knows whether it is the last. */
export function* planPieces(spec: JobSpec, locales: Locales): Generator<PlannedPiece> {
  const { before, after } = spec.neighbours ?? NO_NEIGHBOURS;
  const normalizer = new Normalizer(spec, locales);
  for (const [inputIndex, input] of spec.inputs.entries()) {
    const isLastInput = inputIndex === spec.inputs.length - 1;
    const neighbours = { before: inputIndex === 0 ? before : "", after: isLastInput ? after : "" };
    yield* planInput({ spec, normalizer, input, inputIndex, isLastInput, neighbours });
  }
}

interface InputPlace {
  readonly spec: JobSpec;
  readonly normalizer: Normalizer;
  readonly input: JobInput;
  readonly inputIndex: number;
  readonly isLastInput: boolean;
  readonly neighbours: Neighbours;
}

function* planInput(place: InputPlace): Generator<PlannedPiece> {
  const { spec, input, neighbours } = place;
  const { audioTags } = spec;
  const tags = findMarkup(input.text, { audioTags });
  const own = { text: input.text, markup: withRespellings(tags, input.respellings ?? []) };
  // Where a neighbour's words end in a model's speech is not known well enough to cut there.
  const whole = stitchText(own, {
    neighbours: input.neural === undefined ? neighbours : NO_NEIGHBOURS,
    audioTags,
  });
  const pieces = cutPieces(whole.text, whole.markup);
  let from = 0;
  let pieceIndex = 0;
  let paragraphIndex = 0;
  let manner: VoiceManner = {};
  for (let piece = nextOf(pieces); piece !== undefined && from < whole.end; piece = nextOf(pieces)) {
    const next = from + piece.text.length;
    if (next > whole.start) {
      const isLastOfInput = next >= whole.end;
      yield preparePiece(piece, { ...place, whole, from, pieceIndex, paragraphIndex, manner, isLastOfInput });
      pieceIndex += 1;
    }
    paragraphIndex = piece.endsParagraph ? 0 : paragraphIndex + (hasWords(piece) ? 1 : 0);
    manner = piece.endsParagraph ? {} : (piece.markup.at(-1)?.direction?.manner ?? manner);
    from = next;
  }
}

function hasWords({ text, markup }: Piece): boolean {
  let at = 0;
  for (const { start, end, said } of markup) {
    if (said !== undefined || WORD.test(text.slice(at, start))) return true;
    at = end;
  }
  return WORD.test(text.slice(at));
}

function nextOf(pieces: Generator<Piece>): Piece | undefined {
  const next = pieces.next();
  return next.done === true ? undefined : next.value;
}

interface PiecePlace extends InputPlace {
  readonly whole: StitchedText;
  /** Where the piece begins in `whole`. */
  readonly from: number;
  /** Counts the input's own pieces. */
  readonly pieceIndex: number;
  /** Pieces before it in its paragraph. */
  readonly paragraphIndex: number;
  readonly manner: VoiceManner;
  readonly isLastOfInput: boolean;
}

function preparePiece(piece: Piece, place: PiecePlace): PlannedPiece {
  const { spec, input, isLastOfInput, isLastInput } = place;
  const voice = voiceOf(input);
  const { neural } = input;
  const language =
    neural === undefined
      ? languageForScript(piece.text, input.languageCode ?? voice.language)
      : (findLanguage(neural.language ?? "")?.code ?? voice.language);
  const engine = engineVoiceFor(voice, language, input);
  const parts = splitPiece(piece, place.from, place.whole);
  const prepare = ({ text, markup }: TextPart) =>
    prepareSpoken(text, {
      markup,
      normalizer: place.normalizer,
      language,
      engineVoice: engine,
      isPlain: neural !== undefined,
    });
  const spoken = prepare(parts.own);
  const [before, after] = [prepare(parts.before), prepare(parts.after)];
  const pauseMs = pauseAfter(piece, { ...place, isSpeakable: spoken.isSpeakable, goesOn: after.isSpeakable });
  const breath = parts.own.markup.at(-1)?.direction?.breath;
  return {
    inputIndex: place.inputIndex,
    voiceId: input.voiceId,
    spoken,
    neighbours: {
      before: before.isSpeakable
        ? before.engineText + engineJoiner(before.engineText, spoken.engineText)
        : "",
      after: after.isSpeakable ? engineJoiner(spoken.engineText, after.engineText) + after.engineText : "",
    },
    voice: soundOf(voice, engine, place),
    neural:
      neural === undefined
        ? null
        : { model: neural.model, speaker: neural.speaker, speed: spec.speed * (place.manner.rate ?? 1) },
    language: neural === undefined ? language : neural.language,
    breath: breath === undefined ? null : { name: breath, seed: breathSeed(place) },
    breakMs: parts.own.markup.reduce((sum, tag) => sum + tag.pauseMs, 0),
    pauseMs: pauseMs / spec.speed,
    isLast: isLastOfInput && isLastInput,
  };
}

/** Another one for each piece. */
function breathSeed({ spec, inputIndex, pieceIndex }: PiecePlace): number {
  return hashText(`${spec.seed ?? 0}.${inputIndex}.${pieceIndex}`);
}

/** Silence after what is said, at normal speed, ms. */
function pauseAfter(
  piece: Piece,
  place: PiecePlace & { readonly isSpeakable: boolean; readonly goesOn: boolean },
): number {
  if (place.goesOn) return 0;
  if (place.isLastOfInput && !place.isLastInput) return TURN_PAUSE_MS;
  // The end of a request is its client's, unless another one is known to follow.
  if (place.isLastOfInput && place.neighbours.after.trim() === "") return 0;
  return place.isSpeakable ? piece.pauseMs : 0;
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

/** The accent that was asked for. A voice's own is kept only in its own language. */
function engineVoiceFor(voice: Voice, language: string, { languageCode, accent }: JobInput): string {
  if (accent !== undefined && language === languageCode) return accent;
  return language === voice.language ? voice.engine : (findLanguage(language)?.engine ?? voice.engine);
}

/** The speaker's variant is kept in every language. */
function soundOf(
  voice: Voice,
  engine: string,
  place: Pick<PiecePlace, "spec" | "inputIndex" | "pieceIndex" | "paragraphIndex" | "manner">,
): EngineVoice {
  const { spec, inputIndex, pieceIndex, manner } = place;
  const { seed, stability } = spec;
  const { variant, volume } = manner.isWhispered === true ? whisperOf(voice) : { ...voice, volume: 100 };
  const plain = {
    name: `${engine}+${variant}`,
    rate: voice.rate * spec.speed * (manner.rate ?? 1),
    pitch: voice.pitch - (DECLINATION[place.paragraphIndex] ?? MAX_DECLINATION) + (manner.pitch ?? 0),
    // Stability 0.5 and style 0 leave the voice as it is; the extremes are half and 2.25 times its movement.
    range: voice.range * (1.5 - stability) * (1 + spec.style / 2) * (manner.range ?? 1),
  };
  const wanted = seed === undefined ? plain : varied(plain, seed, { inputIndex, pieceIndex, stability });
  return {
    ...wanted,
    rate: clamp(Math.round(wanted.rate), MIN_RATE, MAX_RATE),
    pitch: clamp(Math.round(wanted.pitch), 0, 100),
    range: clamp(Math.round(withinEngine(wanted.range, voice.range)), 0, MAX_RANGE),
    volume: Math.round(volume * (manner.volume ?? 1)),
  };
}

/**
 * A range that the engine has, larger for a larger one: it would take all above its own largest for that. Below the knee, and
 * for a voice as it is, nothing changes.
 */
function withinEngine(wanted: number, usual: number): number {
  const most = usual * MAX_LIVELINESS;
  const knee = Math.max(RANGE_KNEE, usual);
  if (wanted <= knee || most <= MAX_RANGE) return wanted;
  return knee + ((wanted - knee) / (most - knee)) * (MAX_RANGE - knee);
}

/** The engine's variants without a tone, equally loud; the speaker's own is lost. */
function whisperOf(voice: Voice): { readonly variant: string; readonly volume: number } {
  return voice.labels.gender === "female"
    ? { variant: "whisperf", volume: 60 }
    : { variant: "whisper", volume: 100 };
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
