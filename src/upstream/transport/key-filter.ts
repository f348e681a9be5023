/**
 * Finds the key's text in an answer that is passed on, however its bytes are split. Older accounts get their key back from
 * GET /v1/user, and whoever reads it has the whole account.
 */

/** A shorter key is an ordinary word (`secret`), which answers hold for other reasons. */
const MIN_KEY_CHARS = 16;
const NOTHING = Buffer.alloc(0);

export function isFilteredKey(key: string): boolean {
  return key.length >= MIN_KEY_CHARS;
}

/** For one answer. */
export class KeyFilter {
  readonly #key: Buffer;
  /** The end of what has come, where the key could begin: at most the key's length less one. */
  #held: Buffer = NOTHING;

  constructor(key: string) {
    this.#key = Buffer.from(key, "latin1");
  }

  /** The bytes that may go on: views of `piece` where nothing was held. null: the key is in them. */
  push(piece: Buffer): Buffer | null {
    const bytes = this.#held.length === 0 ? piece : Buffer.concat([this.#held, piece]);
    if (bytes.includes(this.#key)) return null;
    const goesOn = this.#keyStart(bytes);
    // A copy: the piece's memory is taken back.
    this.#held = goesOn === bytes.length ? NOTHING : Buffer.from(bytes.subarray(goesOn));
    return bytes.subarray(0, goesOn);
  }

  /** What is left to go on at the end of the answer. */
  end(): Buffer {
    const rest = this.#held;
    this.#held = NOTHING;
    return rest;
  }

  /** Where the end of `bytes` is a beginning of the key; their length where it is none. */
  #keyStart(bytes: Buffer): number {
    const key = this.#key;
    const first = key[0] ?? 0;
    let at = bytes.indexOf(first, Math.max(0, bytes.length - key.length + 1));
    while (at >= 0) {
      if (bytes.compare(key, 0, bytes.length - at, at) === 0) return at;
      at = bytes.indexOf(first, at + 1);
    }
    return bytes.length;
  }
}
