/**
 * Letters to sounds by ordered rules, as the Naval Research Laboratory's of 1976 did it (Elovitz et al., NRL Report 7948):
 * at each place of a word the first rule that fits takes its letters and gives their sounds.
 *
 * A rule is `left(letters)right SOUNDS`; left and right are regular expressions of what has to stand beside the letters, `V`
 * in them is any vowel letter, `C` any consonant letter, `^` and `$` the word's ends. Without sounds the letters are silent.
 */
import { isPhone, type Phone } from "./phones.ts";

/** Letters of a word and what is heard of them. */
export interface LetterSounds {
  /** Offsets in the word, `end` exclusive. */
  readonly start: number;
  readonly end: number;
  readonly phones: readonly Phone[];
}

interface Rule {
  readonly letters: string;
  readonly pattern: RegExp;
  /** One letter, wherever it stands. */
  readonly isPlain: boolean;
  readonly phones: readonly Phone[];
}

const VOWELS = "[aeiouyäöüåáàâãéèêëíìîïóòôõúùûæœąę]";
const CONSONANTS = "[bcdfghjklmnpqrstvwxzçñßłśćźżń]";
const FORM = /^([^()]*)\(([^()]+)\)(\S*)\s*(.*)$/;

export class LetterRules {
  /** By first letter, in order. */
  readonly #rules = new Map<string, Rule[]>();

  /** `tables`: rules apart by `;` or line breaks; those of an earlier table come first. Throws TypeError on a bad rule. */
  constructor(...tables: readonly string[]) {
    for (const text of tables.flatMap((table) => table.split(/[;\n]/))) {
      if (text.trim() === "") continue;
      const rule = ruleOf(text.trim());
      const first = rule.letters.charAt(0);
      const same = this.#rules.get(first);
      if (same === undefined) this.#rules.set(first, [rule]);
      else same.push(rule);
    }
  }

  /** The sounds of a word in small letters; letters without a rule are silent. */
  soundsOf(word: string): LetterSounds[] {
    const sounds: LetterSounds[] = [];
    for (let at = 0; at < word.length; ) {
      const rule = this.#ruleAt(word, at);
      const end = at + (rule?.letters.length ?? 1);
      if (rule !== undefined && rule.phones.length > 0) sounds.push({ start: at, end, phones: rule.phones });
      at = end;
    }
    return sounds;
  }

  #ruleAt(word: string, at: number): Rule | undefined {
    const letter = word.charAt(at);
    const fitting = this.#rules.get(letter)?.find(({ pattern }) => {
      pattern.lastIndex = at;
      return pattern.test(word);
    });
    // An accent that no rule knows changes nothing.
    return fitting ?? this.#rules.get(baseLetter(letter))?.find(({ isPlain }) => isPlain);
  }
}

function ruleOf(text: string): Rule {
  const [, left = "", letters = "", right = "", names = ""] = FORM.exec(text) ?? [];
  const phones = names.split(" ").filter((name) => name !== "");
  if (letters === "" || !phones.every(isPhone)) throw new TypeError(`Not a letter rule: ${text}`);
  const classes = (context: string): string => context.replaceAll("V", VOWELS).replaceAll("C", CONSONANTS);
  const before = left === "" ? "" : `(?<=${classes(left)})`;
  const behind = right === "" ? "" : `(?=${classes(right)})`;
  return {
    letters,
    pattern: new RegExp(`${before}${letters}${behind}`, "y"),
    isPlain: letters.length === 1 && left === "" && right === "",
    phones,
  };
}

/** A letter without its accents. */
function baseLetter(letter: string): string {
  return letter.normalize("NFD").charAt(0);
}
