/** `audio_effects` of speech and dialogues: there is none here, so who asks for one is refused. */
import { ApiError } from "../../api-error.ts";
import { anyObject } from "../kinds.ts";
import { optional } from "../schema.ts";

/** Each names an effect of a catalogue. */
const IDS: ReadonlySet<string> = new Set(["filter_preset_id", "environment_id", "background_noise_id"]);

export const AUDIO_EFFECTS = optional(
  anyObject(),
  "There are none here: an id is refused with 404, any other effect with 400. Null, 0 and a seed alone ask for none.",
);

export type AudioEffects = Readonly<Record<string, unknown>> | undefined;

/** Throws the 404 of an effect that there is not, and the 400 of one without an id. */
export function requireNoEffects(effects: AudioEffects): void {
  for (const [name, value] of Object.entries(effects ?? {})) {
    if (value === null || value === 0 || name === "seed") continue;
    const param = `audio_effects.${name.slice(0, 64)}`;
    if (IDS.has(name)) {
      const message = "No audio effect with this id was found: this service has no audio effects.";
      throw ApiError.of({ type: "not_found", code: "audio_effect_not_found", message, param });
    }
    const message = "This service has no audio effects, expected a request without audio_effects.";
    throw ApiError.unfit("invalid_parameters", message, { param });
  }
}
