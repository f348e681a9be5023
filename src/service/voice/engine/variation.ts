/**
 * What a seed changes: how high, how fast and how lively each piece is spoken, and how loud all of it is, a little. The same
 * seed asks the engine for the same each time, and two seeds mostly for something else; they sound like one person saying it
 * again. The engine's own flutter is the same, too: it is reset before each piece that has a seed (Engine.reset).
 */
import { Random } from "../../sound/random.ts";
import type { EngineVoice } from "./engine.ts";

/** At stability 0.5; half of it at 1, half more at 0. */
const PITCH_STEPS = 2;
const RATE_SHARE = 0.03;
const RANGE_SHARE = 0.12;
/** Half a decibel. */
const LEVEL_SHARE = 0.056;

export interface VariationPlace {
  /** Index of the input in the request, and of the piece in the input. */
  readonly inputIndex: number;
  readonly pieceIndex: number;
  /** 0-1: low varies more. */
  readonly stability: number;
}

/** `voice` as the seed has it at this place; unrounded, and maybe out of the engine's ranges. */
export function varied(voice: EngineVoice, seed: number, place: VariationPlace): EngineVoice {
  const random = new Random(seed).fork(`${place.inputIndex}.${place.pieceIndex}`);
  const size = 1.5 - place.stability;
  return {
    ...voice,
    pitch: voice.pitch + PITCH_STEPS * size * random.signed(),
    rate: voice.rate * (1 + RATE_SHARE * size * random.signed()),
    range: voice.range * (1 + RANGE_SHARE * size * random.signed()),
  };
}

/** Gain of all samples, at most 1. The engine takes whole numbers: this makes two seeds differ that are the same to it. */
export function levelFor(seed: number | undefined): number {
  return seed === undefined ? 1 : 1 - LEVEL_SHARE * new Random(seed).fork("level").unit();
}
