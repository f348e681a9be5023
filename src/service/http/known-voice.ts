/** A voice that can be asked for: one of the catalogue, or one that was added from samples. */
import { findStoredVoice } from "../convert/stored-voice.ts";
import type { Store } from "../store/store.ts";
import { findVoice } from "../voice/engine/voices.ts";
import type { JobInput } from "../voice/messages.ts";

export interface KnownVoice {
  readonly id: string;
  readonly name: string;
  readonly category: "premade" | "cloned";
  /** What a job needs to speak with it, besides its id. */
  readonly sound: JobInput["sound"] | undefined;
}

export function findKnownVoice(context: { readonly store: Store }, id: string): KnownVoice | undefined {
  const voice = findVoice(id);
  if (voice !== undefined) return { id, name: voice.name, category: "premade", sound: undefined };
  const added = findStoredVoice(context, id);
  if (added === undefined) return undefined;
  const sound = { base: added.base.id, pitch: added.enginePitch };
  return { id, name: added.stored.name, category: "cloned", sound };
}
