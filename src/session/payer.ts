/** Who pays for what a session says. */
import type { Subject } from "../upstream/types.ts";
import type { ChargedUtterance } from "./playback/utterance.ts";

/** Who pays for what is said, and for whom the upstream is asked. */
export interface Payer {
  /** Pays for it; without it nobody does. */
  readonly budget?: SpeechBudget;
  /** For whom the upstream is asked. */
  readonly subject?: Subject;
}

/** See access/limits/limits.ts. */
interface SpeechBudget {
  /** One more utterance, of so many characters to begin with. Throws where it may not be. */
  begin(characters: number): ChargedUtterance;
  /** More text of an utterance that was begun, maybe by another. Throws where it may not be. */
  add(characters: number, utterance?: ChargedUtterance): void;
}
