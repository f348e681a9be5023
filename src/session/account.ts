/** On whose account a session speaks. */
import type { Subject } from "../upstream/types.ts";
import type { ChargedUtterance } from "./playback/utterance.ts";

/** On whose account something is said. */
export interface Account {
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
