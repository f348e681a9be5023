/** Which branches an input has reached, by the counters that instrument.mjs puts into the code. */

/** Of `hits`: behind those of branches. */
const OUTCOMES_AT = 32_768;
const OUTCOMES = 1024;
/** One for each branch, then those of outcomes; each counts to 255 and begins again. */
export const hits = new Uint8Array(OUTCOMES_AT + OUTCOMES);
const words = new Uint32Array(hits.buffer);

/** For code without counters, as WebAssembly is: what came of an input stands for the way that it took there. */
export function noteOutcome(outcome: string): void {
  let hash = 7;
  for (let at = 0; at < outcome.length; at += 1) hash = (Math.imul(hash, 31) + outcome.charCodeAt(at)) >>> 0;
  hits[OUTCOMES_AT + (hash % OUTCOMES)] = 1;
}

/** All that a series of inputs has reached. */
export class Coverage {
  /** By branch, a bit for each number of times that is taken to differ. */
  readonly #seen = new Uint8Array(hits.length);
  #branches = 0;

  get branches(): number {
    return this.#branches;
  }

  /** Whether the counters show something new since they were cleared; clears them. */
  take({ countsTimes }: { readonly countsTimes: boolean }): boolean {
    let isNew = false;
    for (let word = 0; word < words.length; word += 1) {
      if (words[word] === 0) continue;
      for (let point = word * 4; point < word * 4 + 4; point += 1) {
        const times = hits[point] ?? 0;
        if (times === 0) continue;
        const bit = countsTimes ? 1 << bucketOf(times) : 1;
        const seen = this.#seen[point] ?? 0;
        if ((seen & bit) !== 0) continue;
        if (seen === 0) this.#branches += 1;
        this.#seen[point] = seen | bit;
        isNew = true;
      }
    }
    hits.fill(0);
    return isNew;
  }
}

/** 1, 2, 3, 4-7, 8-15, 16-31, 32-127, 128 and more: a loop that runs once more is nothing new. */
function bucketOf(times: number): number {
  if (times < 4) return times - 1;
  if (times < 32) return 29 - Math.clz32(times) + 2;
  return times < 128 ? 6 : 7;
}
