/**
 * What another node needs to go on with a session whose node has gone: the texts that are not over, how much of them was
 * heard, and whose connections come back. Audio is not kept: it is asked for again from the first word that was not heard.
 */
import type { DialogueCommand, SpeakCommand, TextCommand } from "../protocol/commands.ts";
import type { Subject } from "../upstream/types.ts";

export interface SavedSession {
  /** End of the audio that listeners were sent, ms on the timeline. */
  readonly sentMs: number;
  readonly utterances: readonly SavedUtterance[];
  readonly connections: readonly SavedConnection[];
}

/** What it would say. */
export type SavedTexts = Omit<SavedSession, "connections">;

export interface SavedUtterance {
  readonly id: string;
  /** As it was accepted; but for a dialogue, its text stands in `text`. */
  readonly command: SpeakCommand | TextCommand | DialogueCommand;
  /** All that the client has sent of it. */
  readonly text: string;
  /** See UtteranceText. */
  readonly half: string;
  readonly leftOut: number;
  readonly isEnded: boolean;
  readonly subject: Subject | null;
  /** Who began it: see Participant. */
  readonly holder: string;
  /** Where its audio began, ms on the timeline; null: it has not begun. */
  readonly startMs: number | null;
  /** Heard before it was cut and resumed, ms. */
  readonly heardMs: number;
  /** Rising; the first one holds from the beginning on. */
  readonly heard: readonly HeardUpTo[];
  /** Marks that wait for its end. */
  readonly marks: readonly string[];
}

/** What changes of an utterance while its audio is sent. */
export interface SavedPlaces {
  readonly id: string;
  readonly startMs: number;
  /** In the place of those from the first one's `ms` on; not empty. */
  readonly heard: readonly HeardUpTo[];
}

/** Reads what a session would say: all of it, and then what comes on top of that while it is spoken. */
export interface SpeechReader {
  readAll(): SavedTexts;
  /** What neither this nor `readAll` has read before. */
  readPlaces(): SavedPlaces[];
}

/** Who was sent audio up to `ms` has heard the client's text up to `end`. */
export interface HeardUpTo {
  readonly end: number;
  readonly ms: number;
}

/** A connection that may come back. */
export interface SavedConnection {
  readonly token: string;
  readonly listenerId: string;
  readonly holder: string;
  /** Utterances whose text it has begun and not ended, and the one that its text without an id goes to. */
  readonly openIds: readonly string[];
  readonly currentId: string | null;
}
