/** Finds all of a set of words in one pass (Aho and Corasick, "Efficient string matching", 1975), by code points. */
import { foldCase } from "./letters.ts";

export interface Rule {
  readonly to: string;
  readonly isWholeWord: boolean;
  /** Place in the client's list. */
  readonly order: number;
}

/** A prefix of a word: what was read last. */
export interface State {
  readonly next: Map<number, State>;
  /** Rules whose word this is, in order. */
  readonly rules: Rule[];
  /** UTF-16 units. */
  readonly length: number;
  /** The longest shorter prefix that ends in the same way; null for the root. */
  fallback: State | null;
  /** This or the next fallback whose word is complete. */
  found: State | null;
  /** Length of the longest prefix that ends here and may go on. */
  liveLength: number;
  /** The same, or complete but for the character behind it. */
  openLength: number;
}

export class RuleAutomaton {
  readonly root: State = newState(0);
  readonly #folds: boolean;

  constructor(folds: boolean) {
    this.#folds = folds;
  }

  add(word: string, rule: Rule): void {
    let state = this.root;
    for (const character of word) {
      const key = this.#key(character.codePointAt(0) ?? 0);
      const next = state.next.get(key) ?? newState(state.length + character.length);
      state.next.set(key, next);
      state = next;
    }
    if (state !== this.root) state.rules.push(rule);
  }

  /** After the last `add`. */
  link(): void {
    const queue = [this.root];
    for (const state of queue) {
      this.#finish(state);
      for (const [key, next] of state.next) {
        next.fallback = state.fallback === null ? this.root : this.#step(state.fallback, key);
        queue.push(next);
      }
    }
  }

  step(state: State, codePoint: number): State {
    return this.#step(state, this.#key(codePoint));
  }

  starts(codePoint: number): boolean {
    return this.root.next.size > 0 && this.root.next.has(this.#key(codePoint));
  }

  #key(codePoint: number): number {
    return this.#folds ? foldCase(codePoint) : codePoint;
  }

  #step(from: State, key: number): State {
    for (let state: State | null = from; state !== null; state = state.fallback) {
      const next = state.next.get(key);
      if (next) return next;
    }
    return this.root;
  }

  #finish(state: State): void {
    const { fallback, rules } = state;
    const mayGoOn = state.next.size > 0;
    state.found = rules.length > 0 ? state : (fallback?.found ?? null);
    state.liveLength = mayGoOn ? state.length : (fallback?.liveLength ?? 0);
    const isOpen = mayGoOn || rules.some((rule) => rule.isWholeWord);
    state.openLength = isOpen ? state.length : (fallback?.openLength ?? 0);
  }
}

function newState(length: number): State {
  return { next: new Map(), rules: [], length, fallback: null, found: null, liveLength: 0, openLength: 0 };
}
