/**
 * Reads a prompt for what it names: sounds, and the words that shape them, in the order of the prompt. This is a search for
 * key words, not an understanding of the sentence: words that it does not know are named.
 */
import { shapeKeysOf } from "./family.ts";
import {
  type ChangeWord,
  type CountWord,
  type Meaning,
  meaningsIn,
  type SoundWord,
} from "./words/meanings.ts";
import { type Change, type FamilyName, familyOf, isAbsorbed } from "./words/vocabulary.ts";

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
interface Prompt {
  /** Empty where no sound was understood. */
  readonly steps: readonly (readonly NamedSound[])[];
  readonly placeChanges: readonly Change[];
  /** What was not understood, or understood and not done, as it was written; each once. */
  readonly unknownWords: readonly string[];
}

interface Growing {
  readonly name: FamilyName;
  /** The words that name it. */
  readonly words: readonly SoundWord[];
  /** Numbers that are said of it: the first counts. */
  readonly counts: CountWord[];
  isRepeated: boolean;
  readonly changes: ChangeWord[];
}

/** Words that nothing was done of. */
type Unused = Set<Meaning>;

/** The most hits that a number in a prompt asks for. */
const MAX_COUNT = 64;

/** Layers of one prompt, so that a long list of sounds costs no more than a rich one. */
const MAX_SOUNDS = 8;

/** `isLengthGiven`: the sounds do not decide how long the whole is. */
export function readPrompt(
  text: string,
  { isLengthGiven = false }: { readonly isLengthGiven?: boolean } = {},
): Prompt {
  const meanings = meaningsIn(text);
  const placeChanges: Change[] = [];
  const steps: Growing[][] = [];
  const unused: Unused = new Set();
  let left = MAX_SOUNDS;
  let part: Meaning[] = [];
  let isBefore = false;
  const close = () => {
    const found = readStep(part, { placeChanges, unused });
    const sounds = found.slice(0, left);
    for (const { words } of found.slice(left)) for (const word of words) unused.add(word);
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
  // Several steps have their parts of a length that is given.
  const isLengthHeard = !isLengthGiven || steps.length > 1;
  const namedSteps = steps.map((sounds) => sounds.map((sound) => named(sound, { unused, isLengthHeard })));
  const unknown = meanings.flatMap((meaning) =>
    "word" in meaning && (meaning.kind === "unknown" || unused.has(meaning)) ? meaning.word : [],
  );
  return { steps: namedSteps, placeChanges, unknownWords: [...new Set(unknown)] };
}

/** A texture goes on and has no number. */
function named(
  { name, counts, isRepeated, changes }: Growing,
  { unused, isLengthHeard }: { readonly unused: Unused; readonly isLengthHeard: boolean },
): NamedSound {
  const asked = familyOf(name).kind === "hits" ? (counts[0]?.count ?? 0) : 0;
  const isExact = asked > 0 && asked <= MAX_COUNT;
  for (const word of counts.slice(isExact ? 1 : 0)) unused.add(word);
  for (const word of unheard(name, changes, isLengthHeard)) unused.add(word);
  const count = asked === 0 ? null : Math.min(MAX_COUNT, asked);
  return { name, count, isRepeated, changes: changes.map(({ change }) => change) };
}

/** The words that the sound is the same without: not every family looks at what it is made of, for one. */
function unheard(name: FamilyName, changes: readonly ChangeWord[], isLengthHeard: boolean): ChangeWord[] {
  const family = familyOf(name);
  const keys = new Set([...shapeKeysOf(family), "gain", "topHz", "echoSeconds"]);
  // How long a sound is hangs on its size, and the distance of hits on their rate, whatever the family looks at.
  if (isLengthHeard) keys.add("size");
  if (family.kind === "hits") keys.add("rate");
  const surface = changes.findLast(({ change }) => change.surface !== undefined);
  return changes.filter(
    (word) =>
      !Object.keys(word.change).some((key) => keys.has(key) && (key !== "surface" || word === surface)),
  );
}

/** Sounds that are heard together. Words that shape a sound stand before it, or after it at the end of its clause. */
function readStep(
  part: readonly Meaning[],
  { placeChanges, unused }: { readonly placeChanges: Change[]; readonly unused: Unused },
): Growing[] {
  const sounds: Growing[] = [];
  let inClause: Growing[] = [];
  let changes: ChangeWord[] = [];
  let counts: CountWord[] = [];
  let isLeftOut = false;
  const close = () => {
    // Words alone between two commas are said of what follows: "a big, loud explosion".
    const last = inClause.at(-1);
    if (last !== undefined) {
      last.changes.push(...changes);
      last.counts.push(...counts);
      changes = [];
    } else for (const count of counts) unused.add(count);
    for (const one of inClause) addSound(sounds, one, { absorbs: false });
    inClause = [];
    counts = [];
    isLeftOut = false;
  };
  for (const meaning of part) {
    if (meaning.kind === "link") {
      if (meaning.link === "and") close();
      else if (meaning.link === "without") isLeftOut = true;
    } else if (meaning.kind === "count") counts.push(meaning);
    else if (meaning.kind === "change") {
      if (meaning.change.isPlace === true) placeChanges.push(meaning.change);
      else changes.push(meaning);
    } else if (meaning.kind === "sound") {
      const { name, isRepeated } = meaning;
      if (!isLeftOut) addSound(inClause, { name, words: [meaning], isRepeated, counts, changes });
      isLeftOut = false;
      changes = [];
      counts = [];
    }
  }
  close();
  const last = sounds.at(-1);
  if (last === undefined) for (const change of changes) unused.add(change);
  else last.changes.push(...changes);
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
    words: [...same.words, ...added.words],
    counts: [...same.counts, ...added.counts],
    isRepeated: same.isRepeated || added.isRepeated,
    changes: [...same.changes, ...added.changes],
  };
}
