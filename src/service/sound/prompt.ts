/**
 * Reads a prompt for what it names: sounds, and the words that shape them, in the order of the prompt. This is a search for
 * key words, not an understanding of the sentence.
 */
import { type Change, type FamilyName, isAbsorbed, meaningOf } from "./vocabulary.ts";

/** One sound that the prompt names. */
export interface NamedSound {
  readonly name: FamilyName;
  /** Null where no number is said. */
  readonly count: number | null;
  /** A plural, or "-ing": again and again. */
  readonly isRepeated: boolean;
  readonly changes: readonly Change[];
}

/** Steps that follow each other, each of sounds that are heard together; at least one step with one sound. */
export interface Prompt {
  readonly steps: readonly (readonly NamedSound[])[];
  readonly placeChanges: readonly Change[];
}

interface Growing {
  readonly name: FamilyName;
  count: number | null;
  isRepeated: boolean;
  readonly changes: Change[];
}

/** Layers of one prompt, so that a long list of sounds costs no more than a rich one. */
const MAX_SOUNDS = 8;
const AFTERWARDS = /\b(?:and then|then|followed by|before|afterwards?|later|next)\b/g;
const FIRST_THE_NEXT = /\bafter\b(?! that| a\b)/g;

export function readPrompt(text: string): Prompt {
  const plain = text.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "").replace(/[’']/g, "");
  const marked = plain.replace(AFTERWARDS, " > ").replace(FIRST_THE_NEXT, " < ");
  const placeChanges: Change[] = [];
  const steps: NamedSound[][] = [];
  let left = MAX_SOUNDS;
  let isBefore = false;
  for (const part of marked.split(/([<>])/)) {
    if (part === "<" || part === ">") {
      isBefore = part === "<";
      continue;
    }
    const sounds = readStep(part, placeChanges).slice(0, left);
    left -= sounds.length;
    if (sounds.length === 0) continue;
    if (isBefore) steps.splice(-1, 0, sounds);
    else steps.push(sounds);
    isBefore = false;
  }
  if (steps.length === 0)
    steps.push([{ name: "neutral", count: null, isRepeated: false, changes: readChanges(plain) }]);
  return { steps, placeChanges };
}

/** Sounds that are heard together. Words that shape a sound stand before it, or after it at the end of its clause. */
function readStep(part: string, placeChanges: Change[]): NamedSound[] {
  const sounds: Growing[] = [];
  let changes: Change[] = [];
  for (const clause of part.split(/[,.;:!?]|\band\b|\bwith\b|\bwhile\b|&|\+/)) {
    const inClause: Growing[] = [];
    let count: number | null = null;
    for (const word of clause.match(/[\p{L}\p{N}]+(?:-[\p{L}\p{N}]+)*/gu) ?? []) {
      for (const meaning of meaningsOf(word)) {
        if (meaning.kind === "count") count = meaning.count;
        else if (meaning.kind === "change") {
          if (meaning.change.isPlace === true) placeChanges.push(meaning.change);
          else changes.push(meaning.change);
        } else {
          addSound(inClause, { name: meaning.name, isRepeated: meaning.isRepeated, count, changes });
          changes = [];
          count = null;
        }
      }
    }
    // Words alone between two commas are said of what follows: "a big, loud explosion".
    const last = inClause.at(-1);
    if (last !== undefined) {
      last.changes.push(...changes);
      last.count ??= count;
      changes = [];
    }
    for (const one of inClause) addSound(sounds, one, { absorbs: false });
  }
  sounds.at(-1)?.changes.push(...changes);
  return sounds;
}

/** A word with a hyphen is one word where it is known, else its parts. */
function meaningsOf(word: string) {
  const whole = meaningOf(word);
  if (whole !== null) return [whole];
  return word.includes("-") ? word.split("-").flatMap((part) => meaningOf(part) ?? []) : [];
}

/** One sound named twice, or by two words of which one says more, is one sound. */
function addSound(sounds: Growing[], added: Growing, { absorbs } = { absorbs: true }): void {
  const index = sounds.findIndex(
    ({ name }) =>
      name === added.name || (absorbs && (isAbsorbed(name, added.name) || isAbsorbed(added.name, name))),
  );
  const same = sounds[index];
  if (same === undefined) {
    sounds.push(added);
    return;
  }
  const isBetter = isAbsorbed(same.name, added.name);
  sounds[index] = {
    name: isBetter ? added.name : same.name,
    count: same.count ?? added.count,
    isRepeated: same.isRepeated || added.isRepeated,
    changes: [...same.changes, ...added.changes],
  };
}

/** Of a prompt without a sound's name. */
function readChanges(plain: string): Change[] {
  return (plain.match(/[\p{L}-]+/gu) ?? []).flatMap((word) => {
    const meaning = meaningOf(word);
    return meaning?.kind === "change" && meaning.change.isPlace !== true ? [meaning.change] : [];
  });
}
