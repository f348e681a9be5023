/** Chance that repeats itself: the same seed gives the same numbers, so that the same prompt gives the same sound. */

/** A 32-bit hash of the text (FNV-1a over UTF-16 units, then mixed). */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return mix(hash);
}

function mix(value: number): number {
  let mixed = value | 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x45d9f3b);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x45d9f3b);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** A generator of numbers (xorshift, 32 bits of state). */
export class Random {
  readonly #seed: number;
  #state: number;

  constructor(seed: number) {
    this.#seed = seed >>> 0;
    this.#state = mix(this.#seed ^ 0x9e3779b9) || 1;
  }

  /** -1..1. */
  signed(): number {
    let state = this.#state;
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    this.#state = state;
    return state / 2_147_483_648;
  }

  /** 0..1. */
  unit(): number {
    return (this.signed() + 1) / 2;
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.unit();
  }

  /** Another generator, which depends on the seed and the label only, not on what was drawn. */
  fork(label: string | number): Random {
    return new Random(mix(this.#seed ^ hashText(String(label))));
  }
}
