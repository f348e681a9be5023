/** On whose account a session speaks: who pays for its text, and whose limits count what it encodes. */
import type { Subject } from "../upstream/types.ts";

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

/** What is counted of an utterance while it is not over. */
export interface ChargedUtterance {
  /** It is over, or was cut. Called once or more. */
  end(): void;
  /** It was not taken after all: nothing is counted. */
  undo(): void;
  /** Its text, in characters. */
  readonly text: {
    /** Throws where there may be no more. */
    add(characters: number): void;
    takeBack(characters: number): void;
  };
}

/** The client whose Opus renditions are counted. */
export interface OpusAccount {
  /** The same one on all connections of one client. */
  readonly id: string;
  /** It hears one more rendition: gives what ends that (idempotent). Throws listener_limit. */
  begin(): () => void;
}
