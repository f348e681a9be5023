/**
 * Voices that were made from samples: which embedded voice speaks for them, how high, and what was measured of the samples.
 * The store keeps it as plain values (`NewVoice.sound`).
 */
import type { Store } from "../store/store.ts";
import type { StoredVoice } from "../store/voices.ts";
import { findLanguage, type SpokenLanguage } from "../voice/engine/languages.ts";
import { findVoice, VOICES, type Voice } from "../voice/engine/voices.ts";
import { ENVELOPE_BANDS } from "./envelope.ts";
import type { VoiceProfile } from "./voice-profile.ts";

/** A voice from samples, ready to speak. */
interface SampledVoice {
  readonly stored: StoredVoice;
  /** The embedded voice that speaks for it. */
  readonly base: Voice;
  /** The engine's pitch at which the base speaks as high as the samples, 0-100. */
  readonly enginePitch: number;
  /** How the samples sound: what speech to speech aims at. */
  readonly profile: VoiceProfile;
}

/** undefined where it is not there. */
export function findStoredVoice(context: { readonly store: Store }, id: string): SampledVoice | undefined {
  const stored = context.store.voices.get(id);
  if (stored === undefined) return undefined;
  const { sound } = stored;
  const base = findVoice(String(sound.base)) ?? VOICES[0];
  if (base === undefined) return undefined;
  const envelope = String(sound.envelope).split(" ").map(Number);
  return {
    stored,
    base,
    enginePitch: numberOr(sound.enginePitch, base.pitch),
    profile: {
      pitchHz: numberOr(sound.pitchHz, 150),
      envelope: envelope.length === ENVELOPE_BANDS ? envelope : new Array<number>(ENVELOPE_BANDS).fill(0),
    },
  };
}

/**
 * The label `language` says what the voice speaks unless told otherwise. Undefined without the label. Older stores have labels
 * that would be refused today: of an accent that the engine lacks, where the language is spoken without it, or of a language.
 */
export function labelledLanguage(labels: StoredVoice["labels"]): SpokenLanguage | undefined {
  const label = labels.language ?? "";
  const language = findLanguage(label) ?? findLanguage(label.replace(/[-_].*/, ""));
  return language === undefined ? undefined : { code: language.code, accent: language.accent };
}

/** What the store keeps of a voice whose samples were measured. */
export function soundOf(
  profile: VoiceProfile,
  nearest: { readonly voice: Voice; readonly pitchHz: number },
): Readonly<Record<string, string | number>> {
  return {
    base: nearest.voice.id,
    basePitchHz: nearest.pitchHz,
    pitchHz: profile.pitchHz,
    enginePitch: enginePitch(nearest.voice.pitch, profile.pitchHz / nearest.pitchHz),
    envelope: profile.envelope.map((decibels) => decibels.toFixed(2)).join(" "),
  };
}

/** Engine pitches 0, 20 ... 100 -> how much higher a voice then speaks than at 0, in octaves (the mean of five, measured). */
const OCTAVES = [0, 0.189, 0.42, 0.682, 0.976, 1.271];
const STEP = 20;

/** The engine's pitch at which a voice speaks `ratio` times as high as at `pitch`; the nearest there is, 0-100. */
export function enginePitch(pitch: number, ratio: number): number {
  const wanted = octavesAt(pitch) + Math.log2(ratio);
  let best = 0;
  for (let candidate = 1; candidate <= 100; candidate += 1) {
    if (Math.abs(octavesAt(candidate) - wanted) < Math.abs(octavesAt(best) - wanted)) best = candidate;
  }
  return best;
}

function octavesAt(pitch: number): number {
  const low = Math.min(OCTAVES.length - 2, Math.floor(pitch / STEP));
  const from = OCTAVES[low] ?? 0;
  return from + ((OCTAVES[low + 1] ?? 0) - from) * (pitch / STEP - low);
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}
