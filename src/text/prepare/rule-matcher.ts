/** Where replacement rules match: the first place, there the longest match, of several as long the first rule's. */
import type { Replacement } from "../../protocol/commands.ts";
import { unitsOf } from "../characters.ts";
import { foldCase, mayEndWord, mayStartWord } from "./letters.ts";
import { type View, WAIT } from "./match.ts";

interface Rule {
  readonly to: string;
  /** Place in the client's list. */
  readonly order: number;
}

interface RuleMatch {
  readonly start: number;
  readonly end: number;
  readonly rule: Rule;
}

/** Text up to `settled` has no match but `match`, which starts there; what follows `settled` is open without one. */
interface RuleSearch {
  readonly settled: number;
  readonly match: RuleMatch | null;
}

/** A prefix of some rules' words, by code points; `rule`: the first one whose word it is. */
interface Prefix {
  readonly next: Map<number, Prefix>;
  rule: Rule | null;
}

/** Rules of one kind. Their words are at most 200 characters long: that bounds the way from each place. */
interface RuleTree {
  readonly root: Prefix;
  readonly isWholeWord: boolean;
  readonly keyOf: (codePoint: number) => number;
}

const KINDS = [
  { ignoresCase: false, isWholeWord: true },
  { ignoresCase: false, isWholeWord: false },
  { ignoresCase: true, isWholeWord: true },
  { ignoresCase: true, isWholeWord: false },
] as const;

export class RuleMatcher {
  readonly #trees: readonly RuleTree[];

  constructor(replacements: readonly Replacement[]) {
    this.#trees = KINDS.map(({ ignoresCase, isWholeWord }) => {
      const keyOf = ignoresCase ? foldCase : (codePoint: number) => codePoint;
      const root = newPrefix();
      for (const [order, { from, to, ignore_case = false, whole_word = true }] of replacements.entries()) {
        if (ignore_case !== ignoresCase || whole_word !== isWholeWord) continue;
        const word = prefixOf(root, from, keyOf);
        word.rule ??= { to, order };
      }
      return { root, isWholeWord, keyOf };
    }).filter(({ root }) => root.next.size > 0);
  }

  /** Whether no rule can start in `text`, which follows `before`. */
  isQuiet(text: string, before: number): boolean {
    const view = { text, isFinal: false };
    const { settled, match } = this.search(view, 0, before);
    return match === null && settled === text.length;
  }

  /** Searches from `from` on. `before`: the code point before it, 0 = none. */
  search(view: View, from: number, before: number): RuleSearch {
    if (this.#trees.length === 0) return { settled: view.text.length, match: null };
    let previous = before;
    for (let at = from; at < view.text.length; ) {
      const match = this.#matchAt(view, at, previous);
      if (match === WAIT) return { settled: at, match: null };
      if (match !== null) return { settled: at, match };
      previous = view.text.codePointAt(at) ?? 0;
      at += unitsOf(previous);
    }
    return { settled: view.text.length, match: null };
  }

  #matchAt(view: View, start: number, before: number): RuleMatch | null | typeof WAIT {
    const first = view.text.codePointAt(start) ?? 0;
    let best: RuleMatch | null = null;
    for (const tree of this.#trees) {
      if (!tree.root.next.has(tree.keyOf(first))) continue;
      if (tree.isWholeWord && !mayStartWord(before, first)) continue;
      const match = longestAt(tree, view, start);
      if (match === WAIT) return WAIT;
      best = better(best, match);
    }
    return best;
  }
}

function newPrefix(): Prefix {
  return { next: new Map(), rule: null };
}

function prefixOf(root: Prefix, word: string, keyOf: (codePoint: number) => number): Prefix {
  let prefix = root;
  for (const character of word) {
    const key = keyOf(character.codePointAt(0) ?? 0);
    const next = prefix.next.get(key) ?? newPrefix();
    prefix.next.set(key, next);
    prefix = next;
  }
  return prefix;
}

/** The longest match that starts at `start`; `WAIT` where the text ends within one, or before it shows that a word ends. */
function longestAt(
  { root, isWholeWord, keyOf }: RuleTree,
  { text, isFinal }: View,
  start: number,
): RuleMatch | null | typeof WAIT {
  let best: RuleMatch | null = null;
  let prefix: Prefix | undefined = root;
  for (let at = start; at < text.length; ) {
    const codePoint = text.codePointAt(at) ?? 0;
    prefix = prefix.next.get(keyOf(codePoint));
    if (prefix === undefined) return best;
    at += unitsOf(codePoint);
    const { rule, next }: Prefix = prefix;
    const isOpen = next.size > 0 || (isWholeWord && rule !== null);
    if (isOpen && at >= text.length && !isFinal) return WAIT;
    const isWhole = !isWholeWord || mayEndWord(codePoint, text.codePointAt(at) ?? 0);
    if (rule !== null && isWhole) best = { start, end: at, rule };
  }
  return best;
}

function better(one: RuleMatch | null, other: RuleMatch | null): RuleMatch | null {
  if (one === null || other === null) return one ?? other;
  if (one.end !== other.end) return one.end > other.end ? one : other;
  return one.rule.order <= other.rule.order ? one : other;
}
