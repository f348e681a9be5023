/**
 * What has been and will be said in the session, word by word on its timeline. A speaker knows its own texts; a
 * listener puts them together from the characters and words that come with the sound.
 */
import type { Recovered } from "../../client/index.ts";
import type {
  CharactersEvent,
  InterruptedEvent,
  SegmentEvent,
  UtteranceDoneEvent,
  UtteranceQueuedEvent,
  UtteranceResumedEvent,
  WordsEvent,
} from "../../protocol/events.ts";
import { addCharacters, addWord, type ShownWord } from "./shown-words.ts";
import { Utterance } from "./utterance.ts";

export interface Lit {
  readonly utterance: Utterance;
  readonly index: number;
  readonly word: ShownWord;
  /** false once the word is over and nothing has followed it. */
  readonly isSounding: boolean;
}

/** A word stays lit through a pause of at most this length. */
const LINGER_MS = 250;
const END_TOLERANCE_MS = 1;
/** Utterances kept on the page. */
const MAX_UTTERANCES = 40;

export class Transcript {
  #utterances: Utterance[] = [];

  get utterances(): readonly Utterance[] {
    return this.#utterances;
  }

  find(id: string): Utterance | undefined {
    return this.#utterances.find((utterance) => utterance.id === id);
  }

  /** An utterance of our own, before it is sent. `parts` are the inputs of a dialogue, or one text. */
  addOwn(
    id: string,
    parts: readonly { readonly text: string; readonly voiceId: string | null }[],
  ): Utterance {
    const utterance = this.#add(new Utterance(id, true));
    utterance.lines = [];
    for (const part of parts) {
      const start = utterance.text.length;
      utterance.text += part.text;
      utterance.lines.push({ start, end: utterance.text.length, voiceId: part.voiceId });
    }
    return utterance;
  }

  queued(event: UtteranceQueuedEvent): void {
    const utterance = this.find(event.utterance_id);
    if (utterance !== undefined) utterance.ahead = event.ahead;
  }

  started(id: string, startMs: number): Utterance {
    const utterance = this.find(id) ?? this.#add(new Utterance(id, false));
    // Said again from its beginning after something before it was cut: the times that came first are void.
    if (utterance.startMs !== null && utterance.startMs !== startMs) {
      utterance.words = [];
      utterance.resumedMs = [];
    }
    utterance.state = "speaking";
    utterance.startMs = startMs;
    return utterance;
  }

  words(event: WordsEvent): Utterance {
    const utterance = this.#of(event);
    for (const word of event.words) {
      if (!utterance.isOwn) utterance.place(word.start, word.text);
      addWord(utterance.words, word);
    }
    return utterance;
  }

  characters(event: CharactersEvent): Utterance {
    const utterance = this.#of(event);
    const text = event.characters.join("");
    // What was normalized upstream does not spell the client's text; the words fill it in then.
    if (text.length !== event.end - event.start) return utterance;
    if (!utterance.isOwn) utterance.place(event.start, text);
    addCharacters(utterance.words, event);
    return utterance;
  }

  segment(event: SegmentEvent): Utterance {
    const utterance = this.#of(event);
    const own = utterance.isOwn ? utterance.lines[event.dialogue_input_index] : utterance.lineAt(event.start);
    if (own !== undefined) own.voiceId = event.voice_id;
    return utterance;
  }

  interrupted(event: InterruptedEvent): Utterance {
    const utterance = this.#of(event);
    const { heard } = event;
    if (!utterance.isOwn) utterance.place(0, heard.text + event.unheard_text);
    utterance.state = "interrupted";
    utterance.receipt = {
      heardEnd: heard.end,
      heardMs: heard.ms,
      source: heard.source,
      boundMs: heard.bound_ms,
      listeners: event.listeners?.length ?? 0,
    };
    // What was heard of a resumed one was heard in several stretches: the cut is where the event stands.
    const isOneStretch = utterance.startMs !== null && utterance.resumedMs.length === 0;
    utterance.endMs = isOneStretch ? (utterance.startMs ?? 0) + heard.ms : event.at_ms;
    return utterance;
  }

  /** It goes on: its words from there on come again. */
  resumed(event: UtteranceResumedEvent): Utterance {
    const utterance = this.#of(event);
    utterance.state = "speaking";
    utterance.receipt = null;
    utterance.endMs = null;
    utterance.words = utterance.words.filter((word) => word.start < event.start);
    utterance.resumedMs.push(event.start_ms);
    return utterance;
  }

  /** Its upstream broke off: its words from there on come again, at other times. */
  recovered(event: Recovered): Utterance {
    const utterance = this.#of(event);
    utterance.words = utterance.words.filter((word) => word.start < event.start);
    return utterance;
  }

  done(event: UtteranceDoneEvent): Utterance {
    const utterance = this.#of(event);
    utterance.state = event.outcome;
    utterance.startMs ??= event.start_ms;
    utterance.endMs ??= event.end_ms;
    return utterance;
  }

  /** The word played at a position of the timeline; null before the first one of the utterance there. */
  litAt(positionMs: number): Lit | null {
    const utterance = this.#playedAt(positionMs);
    if (utterance === null) return null;
    const index = lastStarted(utterance.words, positionMs);
    const word = utterance.words[index];
    if (word === undefined) return null;
    const untilMs = Math.min(word.end_ms + LINGER_MS, utterance.endMs ?? Number.POSITIVE_INFINITY);
    // The timeline stands still at the end of the sound, give or take a rounding error.
    const isSounding = utterance.state !== "interrupted" && positionMs < untilMs - END_TOLERANCE_MS;
    return { utterance, index, word, isSounding };
  }

  /** The utterance whose stretch began last: one that was resumed may stand before others that were spoken meanwhile. */
  #playedAt(positionMs: number): Utterance | null {
    let found: Utterance | null = null;
    let latestMs = Number.NEGATIVE_INFINITY;
    for (const utterance of this.#utterances) {
      const startMs = utterance.stretchStart(positionMs);
      if (startMs === null || startMs < latestMs) continue;
      found = utterance;
      latestMs = startMs;
    }
    return found;
  }

  /** Every word that sounds between two positions, for the picture of the waveform. */
  wordsBetween(fromMs: number, toMs: number): ShownWord[] {
    const found: ShownWord[] = [];
    for (const { words, endMs } of this.#utterances) {
      const limitMs = Math.min(toMs, endMs ?? toMs);
      for (let index = Math.max(0, lastStarted(words, fromMs)); index < words.length; index += 1) {
        const word = words[index];
        if (word === undefined || word.start_ms > limitMs) break;
        if (word.end_ms >= fromMs) found.push(word);
      }
    }
    return found;
  }

  /** The connection is gone: what was under way may have ended unseen. Returns what changed. */
  loseTrack(): Utterance[] {
    const open = this.#utterances.filter((utterance) => !utterance.isOver);
    for (const utterance of open) utterance.state = "lost";
    return open;
  }

  /** The connection is back without what was under way: whole words up to `positionMs` were played here. Returns what changed. */
  giveUp(positionMs: number): Utterance[] {
    const lost = this.#utterances.filter(({ state, lostFrom }) => state === "lost" && lostFrom === null);
    for (const utterance of lost) {
      const played = utterance.words.filter((word) => word.end_ms <= positionMs);
      utterance.lostFrom = played.reduce((end, word) => Math.max(end, word.end), 0);
    }
    return lost;
  }

  /** A new timeline begins: positions of the old one must not light words any more. */
  forgetTimes(): void {
    for (const utterance of this.#utterances) {
      utterance.startMs = null;
      utterance.resumedMs = [];
      utterance.words = [];
    }
  }

  #of(event: { readonly utterance_id: string }): Utterance {
    const utterance = this.find(event.utterance_id) ?? this.#add(new Utterance(event.utterance_id, false));
    if (utterance.state === "lost") {
      utterance.state = "speaking";
      utterance.lostFrom = null;
    }
    return utterance;
  }

  #add(utterance: Utterance): Utterance {
    this.#utterances.push(utterance);
    if (this.#utterances.length > MAX_UTTERANCES) this.#utterances.shift();
    return utterance;
  }
}

/** Index of the last word that starts at or before the position; -1 before the first. */
function lastStarted(words: readonly ShownWord[], positionMs: number): number {
  let low = 0;
  let high = words.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((words[middle]?.start_ms ?? 0) <= positionMs) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
