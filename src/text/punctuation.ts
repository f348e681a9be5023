/** The punctuation that may end a sentence or a clause, and what the first character behind it decides. */
import { isMonth, startsSentences, stopMeaning } from "./abbreviations.ts";
import { KIND, type Kind, kindOf } from "./characters.ts";

/** Punctuation that may turn out to end a sentence or a clause, depending on what follows. */
export interface Punctuation {
  readonly kind: "stop" | "dot" | "ellipsis" | "wideStop" | "clause" | "wideClause" | "dash";
  /** The word before a full stop. */
  readonly token: string;
  /** The punctuation follows a script without spaces: no space is needed behind it either. */
  readonly isUnspaced: boolean;
  /** It stands right behind a digit. Of a long token, as texts without spaces are, only the beginning is known. */
  readonly isAfterDigit: boolean;
  /** White space was seen behind it. */
  isSpaced: boolean;
  /** First character behind the white space; -1 = not seen yet. */
  at: number;
  spokenEnd: number;
  /** The next word as far as it was seen, where the decision hangs on it. */
  word: string | null;
}

export const LIST_MARKER = /^(?:[-*•‣◦▪–·]|\(?\d{1,3}[.)]|\(?\p{L}[.)])$/u;
export const NUMBER_MARKER = /^\(?\d{1,3}[.)]$/;
export const LONE_DASH = /^(?:--?|–)$/;
export const LONE_CLOSER = /^[\p{Pe}\p{Pf}]+$/u;

/** What goes on behind punctuation without a space: addresses. */
const ADDRESS = /:\/\/|^www\.|\S@|^(?:https?|ftps?|wss?|mailto|tel|sips?)$/iu;

/** "3." may be the day of a month. */
const DAY = /^\d{1,2}$/;

const NUMBER = /\p{N}/u;
const KINDS_OF_PUNCTUATION: Partial<Record<Kind, Punctuation["kind"]>> = {
  [KIND.dot]: "dot",
  [KIND.stop]: "stop",
  [KIND.wideStop]: "wideStop",
  [KIND.clause]: "clause",
  [KIND.wideClause]: "wideClause",
  [KIND.dash]: "dash",
  [KIND.ellipsis]: "ellipsis",
};

/** `behind`: the letter, digit or emoji right before it, a code point; null = none stands there. */
export function newPunctuation(kind: Punctuation["kind"], token: string, behind: number | null): Punctuation {
  const isUnspaced = behind !== null && kindOf(behind) === KIND.unspaced;
  // By the character: digits of scripts without spaces, such as Thai's, are of the kind of their letters.
  const isAfterDigit = behind !== null && NUMBER.test(String.fromCodePoint(behind));
  return { kind, token, isUnspaced, isAfterDigit, isSpaced: false, at: -1, spokenEnd: 0, word: null };
}

/** The punctuation that counts when one follows another: "..." is an ellipsis, "?!" and "?..." stay a stop. */
export function punctuationAfter(
  before: Punctuation | null,
  kind: Kind,
  token: string,
  behind: number | null,
): Punctuation {
  const next = newPunctuation(KINDS_OF_PUNCTUATION[kind] ?? "clause", token, behind);
  if (before === null || !endsSentence(before)) return next;
  // "Yes. — No.": the dash opens what follows, and the sentence is still to be decided.
  if (before.isSpaced) return endsSentence(next) ? next : before;
  if (before.kind === "dot" && kind === KIND.dot) return { ...before, kind: "ellipsis" };
  if (before.kind === "stop" || before.kind === "wideStop") return endsSentence(next) ? before : next;
  return before.kind === "ellipsis" && kind === KIND.dot ? before : next;
}

export function endsSentence(punctuation: Punctuation): boolean {
  return (
    punctuation.kind === "stop" ||
    punctuation.kind === "dot" ||
    punctuation.kind === "ellipsis" ||
    punctuation.kind === "wideStop"
  );
}

/** `wait`: the next word decides. `no`: the text goes on. */
export function verdictOf(punctuation: Punctuation, next: Kind): "sentence" | "clause" | "no" | "wait" {
  if (punctuation.kind === "wideStop") return "sentence";
  if (punctuation.kind === "ellipsis") return next === KIND.upper ? "wait" : "clause";
  if (punctuation.kind === "stop") return next === KIND.lower ? "clause" : "sentence";
  const meaning = stopMeaning(punctuation.token);
  if (meaning === "end") {
    if (next === KIND.upper && DAY.test(punctuation.token)) return "wait";
    return next === KIND.lower ? "clause" : "sentence";
  }
  if (meaning === "number") return next === KIND.digit || next === KIND.lower ? "no" : "sentence";
  if (meaning === "never" || next === KIND.lower || next === KIND.digit) return "no";
  if (meaning === "maybe") return next === KIND.upper ? "wait" : "sentence";
  return next === KIND.upper || next === KIND.letter || next === KIND.unspaced ? "no" : "sentence";
}

/** What punctuation that waited for the next word is, now that the word is known. */
export function verdictOfWord(punctuation: Punctuation, word: string): "sentence" | "clause" | "no" {
  // "Well... I think" goes on; "Wait... What" does not.
  if (punctuation.kind === "ellipsis") return /^I\b/.test(word) ? "clause" : "sentence";
  if (DAY.test(punctuation.token)) return isMonth(word) ? "no" : "sentence";
  return startsSentences(word) ? "sentence" : "no";
}

/**
 * What the punctuation is if nothing follows it for now; null = no place to cut. "Dr." and "U.S." wait for the next word, and
 * "3." or "1," for the digit that may come.
 */
export function rankAtEnd(punctuation: Punctuation): "sentence" | "clause" | null {
  if (punctuation.kind === "wideStop") return "sentence";
  if (punctuation.kind === "wideClause" || punctuation.kind === "dash" || punctuation.kind === "ellipsis")
    return "clause";
  if (punctuation.word !== null || (!punctuation.isSpaced && ADDRESS.test(punctuation.token))) return null;
  if (punctuation.kind === "stop") return "sentence";
  if (!punctuation.isSpaced && punctuation.isAfterDigit) return null;
  if (punctuation.kind === "clause") return "clause";
  return stopMeaning(punctuation.token) === "end" ? "sentence" : null;
}
