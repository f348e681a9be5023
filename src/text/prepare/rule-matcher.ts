/** Where replacement rules match: the first place, there the longest match, of several as long the first rule's. */
import type { Replacement } from "../../protocol/commands.ts";
import { unitsOf } from "../characters.ts";
import { codePointBefore, foldCase, mayEndWord, mayStartWord } from "./letters.ts";
import type { View } from "./match.ts";
import { type Rule, RuleAutomaton, type State } from "./rule-automaton.ts";

export interface RuleMatch {
  readonly start: number;
  readonly end: number;
  readonly rule: Rule;
}

/** Text up to `settled` has no match but `match`, which starts there; what follows `settled` is open without one. */
export interface RuleSearch {
  readonly settled: number;
  readonly match: RuleMatch | null;
}

export class RuleMatcher {
  readonly #exact = new RuleAutomaton(false);
  readonly #folded = new RuleAutomaton(true);
  /** Which ASCII characters start a rule: 1 = only at a word's edge, 2 = anywhere. */
  readonly #starts = new Uint8Array(128);
  #mayStartWide = false;

  constructor(replacements: readonly Replacement[]) {
    for (const [order, replacement] of replacements.entries()) this.#add(replacement, order);
    this.#exact.link();
    this.#folded.link();
  }

  #add({ from, to, ignore_case = false, whole_word = true }: Replacement, order: number): void {
    const automaton = ignore_case ? this.#folded : this.#exact;
    automaton.add(from, { to, isWholeWord: whole_word, order });
    const first = from.codePointAt(0) ?? -1;
    const key = ignore_case ? foldCase(first) : first;
    this.#addStart(key, whole_word);
    // a-z: the capital letter too.
    if (ignore_case && key >= 0x61 && key <= 0x7a) this.#addStart(key - 0x20, whole_word);
  }

  #addStart(code: number, isWholeWord: boolean): void {
    if (code >= 128) this.#mayStartWide = true;
    else if (code >= 0) this.#starts[code] = isWholeWord ? Math.max(this.#starts[code] ?? 0, 1) : 2;
  }

  /** Whether no rule can start in `text`, which follows `before`. */
  isQuiet(text: string, before: number): boolean {
    return this.#nextStart(text, 0, before) === text.length;
  }

  /** Searches from `from` on. `before`: the code point before it, 0 = none. */
  search(view: View, from: number, before: number): RuleSearch {
    const { text } = view;
    let [exact, folded] = [this.#exact.root, this.#folded.root];
    let best: RuleMatch | null = null;
    let at = from;
    while (at < text.length) {
      if (exact.length === 0 && folded.length === 0) {
        if (best) return { settled: best.start, match: best };
        at = this.#nextStart(text, at, at === from ? before : codePointBefore(text, at));
        if (at >= text.length) break;
      }
      const codePoint = text.codePointAt(at) ?? 0;
      at += unitsOf(codePoint);
      exact = this.#exact.step(exact, codePoint);
      folded = this.#folded.step(folded, codePoint);
      const place = { text, from, before, at };
      best = better(better(best, longestAt(exact, place)), longestAt(folded, place));
      const live = at - Math.max(exact.liveLength, folded.liveLength);
      if (best && live > best.start && !(at >= text.length && !view.isFinal)) {
        return { settled: best.start, match: best };
      }
    }
    const open = view.isFinal ? at : at - Math.max(exact.openLength, folded.openLength);
    if (best && (view.isFinal || open > best.start)) return { settled: best.start, match: best };
    return { settled: Math.min(best?.start ?? open, open), match: null };
  }

  #nextStart(text: string, from: number, before: number): number {
    let previous = before;
    for (let at = from; at < text.length; ) {
      const codePoint = text.codePointAt(at) ?? 0;
      if (codePoint < 128) {
        const start = this.#starts[codePoint];
        if (start === 2 || (start === 1 && mayStartWord(previous, codePoint))) return at;
      } else if (this.#mayStartWide || isFoldedToAscii(codePoint)) {
        if (this.#exact.starts(codePoint) || this.#folded.starts(codePoint)) return at;
      }
      previous = codePoint;
      at += unitsOf(codePoint);
    }
    return text.length;
  }
}

/** The two beyond ASCII whose simple case folding is in it: long s and the Kelvin sign. */
function isFoldedToAscii(codePoint: number): boolean {
  return codePoint === 0x17f || codePoint === 0x212a;
}

interface Place {
  readonly text: string;
  readonly from: number;
  readonly before: number;
  readonly at: number;
}

/** The longest match that ends at `place.at`. */
function longestAt(state: State, { text, from, before, at }: Place): RuleMatch | null {
  for (let found = state.found; found !== null; found = found.fallback?.found ?? null) {
    const start = at - found.length;
    const previous = start === from ? before : codePointBefore(text, start);
    const isWhole =
      mayStartWord(previous, text.codePointAt(start) ?? 0) &&
      mayEndWord(codePointBefore(text, at), text.codePointAt(at) ?? 0);
    const rule = found.rules.find((candidate) => isWhole || !candidate.isWholeWord);
    if (rule) return { start, end: at, rule };
  }
  return null;
}

function better(one: RuleMatch | null, other: RuleMatch | null): RuleMatch | null {
  if (one === null || other === null) return one ?? other;
  if (one.start !== other.start) return one.start < other.start ? one : other;
  if (one.end !== other.end) return one.end > other.end ? one : other;
  return one.rule.order <= other.rule.order ? one : other;
}
