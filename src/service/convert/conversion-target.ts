/** Whose voice speech is converted to: an embedded one, or one from samples. */
import type { Store } from "../store/store.ts";
import { findVoice } from "../voice/engine/voices.ts";
import type { ConversionPool } from "./conversion-pool.ts";
import { findStoredVoice } from "./stored-voice.ts";
import type { VoiceProfile } from "./voice-profile.ts";

export interface ConversionTarget {
  readonly id: string;
  readonly name: string;
  readonly category: "premade" | "cloned";
  /** null where its own speech could not be measured. */
  profile(): Promise<VoiceProfile | null>;
}

/** undefined where there is no such voice. */
export function findTarget(
  context: { readonly store: Store },
  pool: ConversionPool,
  id: string,
): ConversionTarget | undefined {
  const voice = findVoice(id);
  if (voice !== undefined) {
    return { id, name: voice.name, category: "premade", profile: () => pool.profileOf(id) };
  }
  const sampled = findStoredVoice(context, id);
  if (sampled === undefined) return undefined;
  const { stored, profile } = sampled;
  return { id, name: stored.name, category: "cloned", profile: () => Promise.resolve(profile) };
}
