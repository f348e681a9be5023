/** How loud each voice is, learned from what it has said: the next utterance has its gain from the first word on. */
import { sampledFormatOf } from "../audio/codecs/samples.ts";
import { Leveller, together } from "../audio/loudness/leveller.ts";
import type { Loudness } from "../audio/loudness/loudness-meter.ts";
import { GatewayError } from "../errors.ts";
import { MAX_LOUDNESS_LUFS, MIN_LOUDNESS_LUFS } from "../protocol/commands.ts";

/** Throws invalid_config. */
export function mustBeLoudness(lufs: number): void {
  if (lufs === 0 || (lufs >= MIN_LOUDNESS_LUFS && lufs <= MAX_LOUDNESS_LUFS)) return;
  throw new GatewayError(
    "invalid_config",
    `Setting loudness-lufs is ${lufs}, expected ${MIN_LOUDNESS_LUFS} to ${MAX_LOUDNESS_LUFS}, or 0 for speech as it comes`,
    { field: "loudness-lufs" },
  );
}

/** Voices that are remembered; those that were not heard for longest go. */
const MAX_VOICES = 2000;
/** What was said before the last minutes counts less and less: a voice may be changed upstream. */
const MAX_SECONDS = 120;

interface LevelledSpeech {
  readonly voiceIds: readonly string[];
  readonly modelId: string;
  /** Narrow band sound is less loud than wide, so each format is learned by itself. */
  readonly sourceFormat: string;
  readonly targetLufs: number;
}

/** The level of one utterance, all its segments. */
export interface UtteranceLevel {
  readonly leveller: Leveller;
  /** It is over: what was measured of it is remembered. */
  learn(): void;
}

export class VoiceLoudness {
  /** Those that were heard last stand last. */
  readonly #voices = new Map<string, Loudness>();

  /** What is known of such speech; null: nothing. */
  known(speech: LevelledSpeech): Loudness | null {
    return this.#voices.get(keyOf(speech)) ?? null;
  }

  /** Levels an utterance of these voices; null: its format is not levelled. */
  levelFor(speech: LevelledSpeech, known = this.known(speech)): UtteranceLevel | null {
    const sampled = sampledFormatOf(speech.sourceFormat);
    if (sampled === null) return null;
    const key = keyOf(speech);
    const leveller = new Leveller({ sampleRate: sampled.sampleRate, targetLufs: speech.targetLufs, known });
    return { leveller, learn: () => this.#learn(key, leveller.takeMeasured()) };
  }

  #learn(key: string, measured: Loudness | null): void {
    const heard = together(this.#voices.get(key) ?? null, measured);
    if (measured === null || heard === null) return;
    this.#voices.delete(key);
    this.#voices.set(key, { ...heard, seconds: Math.min(heard.seconds, MAX_SECONDS) });
    for (const oldest of this.#voices.keys()) {
      if (this.#voices.size <= MAX_VOICES) break;
      this.#voices.delete(oldest);
    }
  }
}

function keyOf({ voiceIds, modelId, sourceFormat }: LevelledSpeech): string {
  return JSON.stringify([voiceIds, modelId, sourceFormat]);
}
