/** A voice that can be asked for: one of the catalogue, one that was added from samples, or one of a model. */
import { findStoredVoice, labelledLanguage } from "../convert/stored-voice.ts";
import type { SpokenLanguage } from "../voice/engine/languages.ts";
import { findVoice } from "../voice/engine/voices.ts";
import type { JobInput } from "../voice/messages.ts";
import type { ListedNeuralVoice, ServiceContext } from "./context.ts";

export interface KnownVoice {
  readonly id: string;
  readonly name: string;
  readonly category: "premade" | "cloned";
  /** What it speaks unless told otherwise; null: as its sound does. */
  readonly language: SpokenLanguage | null;
  /** What a job needs to speak with it, besides its id. */
  readonly sound: JobInput["sound"] | undefined;
  readonly neural: ListedNeuralVoice | undefined;
}

export function findKnownVoice(
  context: Pick<ServiceContext, "store" | "neuralVoices">,
  id: string,
): KnownVoice | undefined {
  const voice = findVoice(id);
  if (voice !== undefined)
    return { id, name: voice.name, category: "premade", language: null, sound: undefined, neural: undefined };
  const neural = context.neuralVoices.get(id);
  if (neural !== undefined) {
    return {
      id,
      name: neural.name,
      category: "premade",
      language: neural.language,
      sound: undefined,
      neural,
    };
  }
  const added = findStoredVoice(context, id);
  if (added === undefined) return undefined;
  const language = labelledLanguage(added.stored.labels) ?? null;
  const sound = { base: added.base.id, pitch: added.enginePitch };
  return { id, name: added.stored.name, category: "cloned", language, sound, neural: undefined };
}
