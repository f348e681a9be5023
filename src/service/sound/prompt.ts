/**
 * Reads a prompt for what it names: sounds, and the words that shape them, in the order of the prompt. This is a search for
 * key words, not an understanding of the sentence: words that it does not know are named.
 */
import { type Meaning, meaningsIn } from "./words/meanings.ts";
import { type Change, type FamilyName, isAbsorbed } from "./words/vocabulary.ts";

/** One sound that the prompt names. */
export interface NamedSound {
  readonly name: FamilyName;
  /** Null where no number is said. */
  readonly count: number | null;
  /** A plural, or "-ing": again and again. */
  readonly isRepeated: boolean;
  readonly changes: readonly Change[];
}

/** Steps that follow each other, each of one sound or of several that are heard together. */
export interface Prompt {
  /** Empty where no sound was understood. */
  readonly steps: readonly (readonly NamedSound[])[];
  readonly placeChanges: readonly Change[];
  /** What was not understood, as it was written; each once. */
  readonly unknownWords: readonly string[];
}

interface Growing {
  readonly name: FamilyName;
  count: number | null;
  isRepeated: boolean;
  readonly changes: Change[];
}

/** Layers of one prompt, so that a long list of sounds costs no more than a rich one. */
const MAX_SOUNDS = 8;

export function readPrompt(text: string): Prompt {
  const meanings = meaningsIn(text);
  const placeChanges: Change[] = [];
  const steps: NamedSound[][] = [];
  let left = MAX_SOUNDS;
  let part: Meaning[] = [];
  let isBefore = false;
  const close = () => {
    const sounds = readStep(part, placeChanges).slice(0, left);
    part = [];
    left -= sounds.length;
    if (sounds.length === 0) return;
    if (isBefore) steps.splice(-1, 0, sounds);
    else steps.push(sounds);
    isBefore = false;
  };
  for (const meaning of meanings) {
    const link = meaning.kind === "link" ? meaning.link : undefined;
    if (link === "next" || link === "after") {
      close();
      isBefore = link === "after";
    } else part.push(meaning);
  }
  close();
  const unknown = meanings.flatMap((meaning) => (meaning.kind === "unknown" ? meaning.word : []));
  return { steps, placeChanges, unknownWords: [...new Set(unknown)] };
}

/** Sounds that are heard together. Words that shape a sound stand before it, or after it at the end of its clause. */
function readStep(part: readonly Meaning[], placeChanges: Change[]): NamedSound[] {
  const sounds: Growing[] = [];
  let inClause: Growing[] = [];
  let changes: Change[] = [];
  let count: number | null = null;
  let isLeftOut = false;
  const close = () => {
    // Words alone between two commas are said of what follows: "a big, loud explosion".
    const last = inClause.at(-1);
    if (last !== undefined) {
      last.changes.push(...changes);
      last.count ??= count;
      changes = [];
    }
    for (const one of inClause) addSound(sounds, one, { absorbs: false });
    inClause = [];
    count = null;
    isLeftOut = false;
  };
  for (const meaning of part) {
    if (meaning.kind === "link") {
      if (meaning.link === "and") close();
      else if (meaning.link === "without") isLeftOut = true;
    } else if (meaning.kind === "count") count = meaning.count;
    else if (meaning.kind === "change") {
      if (meaning.change.isPlace === true) placeChanges.push(meaning.change);
      else changes.push(meaning.change);
    } else if (meaning.kind === "sound") {
      if (!isLeftOut) {
        addSound(inClause, { name: meaning.name, isRepeated: meaning.isRepeated, count, changes });
      }
      isLeftOut = false;
      changes = [];
      count = null;
    }
  }
  close();
  sounds.at(-1)?.changes.push(...changes);
  return sounds;
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
