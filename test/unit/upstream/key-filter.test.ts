/** The upstream's key in an answer that is passed on: found in any split, and nothing else held back for long. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isFilteredKey, KeyFilter } from "../../../src/upstream/transport/key-filter.ts";

const KEY = "sk_0123456789abcdef0123456789abcdef";

/** What goes on of these pieces; null where the key was found. */
function filtered(pieces: readonly Buffer[], key = KEY): Buffer | null {
  const filter = new KeyFilter(key);
  const passed: Buffer[] = [];
  for (const piece of pieces) {
    const bytes = filter.push(piece);
    if (bytes === null) return null;
    // The piece is only good until push() returns.
    passed.push(Buffer.from(bytes));
    piece.fill(0);
  }
  return Buffer.concat([...passed, filter.end()]);
}

/** Splits `bytes` at the given places. */
function split(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, index) => Buffer.from(bytes.subarray(places[index], end)));
}

/** Keys that repeat themselves are the hard ones: a beginning that fails may hold another. */
const KEYS = fc.constantFrom(KEY, "aaaaaaaaaaaaaaaa", "abababababababac", "aabaabaabaabaabx");
const NOISE = fc.array(fc.constantFrom("a", "b", "s", "k", "_", "sk_0123", "aaaaaaaa", "ababab", "\n"));
const CUTS = fc.array(fc.nat(), { maxLength: 12 });

describe("KeyFilter", () => {
  it("any split of an answer with the key in it is caught", () => {
    fc.assert(
      fc.property(KEYS, NOISE, NOISE, CUTS, (key, before, after, cuts) => {
        const bytes = Buffer.from([...before, key, ...after].join(""));
        expect(filtered(split(bytes, cuts), key)).toBeNull();
      }),
      { seed: 7 },
    );
  });

  it("any split of an answer without the key goes on byte for byte", () => {
    fc.assert(
      fc.property(KEYS, NOISE, CUTS, (key, noise, cuts) => {
        const bytes = Buffer.from(noise.join(""));
        fc.pre(!bytes.includes(key));
        expect(filtered(split(bytes, cuts), key)?.equals(bytes)).toBe(true);
      }),
      { seed: 7 },
    );
  });

  it("holds nothing of a piece whose end can't begin the key, and of others only that end", () => {
    const filter = new KeyFilter(KEY);
    const audio = Buffer.alloc(4096, 7);
    expect(filter.push(audio)).toHaveLength(4096);
    expect(filter.push(Buffer.from("sound sk_01"))?.toString()).toBe("sound ");
    expect(filter.push(Buffer.from("x"))?.toString()).toBe("sk_01x");
    expect(filter.push(Buffer.from(KEY.slice(0, -1)))).toHaveLength(0);
    expect(filter.end().toString()).toBe(KEY.slice(0, -1));
  });

  it("keys of 16 characters and more are looked for", () => {
    expect([isFilteredKey(""), isFilteredKey("x".repeat(15)), isFilteredKey("x".repeat(16))]).toEqual([
      false,
      false,
      true,
    ]);
  });
});
