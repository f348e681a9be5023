/** What is fuzzed: a parser of strangers' bytes or text, and what it may throw. */
import { GatewayError } from "../../src/errors.ts";
import { ApiError } from "../../src/service/api-error.ts";

export interface Target {
  /** Sound inputs, each of which gets further than random bytes would. */
  readonly seeds: readonly (string | Uint8Array)[];
  /** Words of the format that are put into inputs. */
  readonly words?: readonly string[];
  /**
   * Of a decoder that takes milliseconds to open: opens a new one. Inputs follow one another in the same one, up to
   * MAX_JOINED_BYTES together or an error; all of them are what breaks it.
   */
  begin?(): Promise<void>;
  /** Throws nothing but a declared error (`isDeclared`); anything else is a fault. */
  run(input: Buffer): void | Promise<void>;
}

/** The longest input, bytes. */
export const MAX_INPUT_BYTES = 16_384;
/** Of inputs that follow one another. */
export const MAX_JOINED_BYTES = 131_072;

/** An error that a caller answers with. A fault of the program itself (`internal`, 500) is none. */
export function isDeclared(thrown: unknown): boolean {
  if (thrown instanceof GatewayError) return thrown.code !== "internal";
  return thrown instanceof ApiError && thrown.httpStatus < 500;
}

/** For targets that hand one input to several parsers: a declared error ends only its own. */
export function tolerate<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch (thrown) {
    if (!isDeclared(thrown)) throw thrown;
    return undefined;
  }
}

/** What an action returns, or the code of its declared error: to compare two ways to read the same. */
export function outcomeOf(action: () => unknown): string {
  try {
    return JSON.stringify(action()) ?? "undefined";
  } catch (thrown) {
    if (!isDeclared(thrown) || !(thrown instanceof Error)) throw thrown;
    return thrown instanceof GatewayError ? thrown.code : thrown.message;
  }
}

/** Throws where two ways to read one input differ. */
export function requireSame(what: string, one: string, other: string): void {
  if (one !== other) throw new Error(`${what}: ${one.slice(0, 300)} is not ${other.slice(0, 300)}`);
}

/** Where an input is cut, by its bytes alone: the lengths of its pieces, many of one byte, some of hundreds. */
export function pieceLengths(input: Buffer): number[] {
  let state = input.reduce((sum, byte) => (Math.imul(sum, 31) + byte) >>> 0, 7);
  const lengths: number[] = [];
  for (let rest = input.length; rest > 0; rest -= lengths.at(-1) ?? 0) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    lengths.push(Math.min(rest, 1 + ((state >>> 8) % (state >>> 31 === 0 ? 4 : 400))));
  }
  return lengths;
}

/** The whole input in one piece. Each piece is written over when the next one is asked for: nobody may keep it. */
export function* whole(input: Buffer): Generator<Buffer> {
  yield* lent(input, [input.length]);
}

/** As `whole`, in pieces (pieceLengths). */
export function* cut(input: Buffer): Generator<Buffer> {
  yield* lent(input, pieceLengths(input));
}

function* lent(input: Buffer, lengths: readonly number[]): Generator<Buffer> {
  let at = 0;
  for (const length of lengths) {
    const piece = Buffer.from(input.subarray(at, at + length));
    yield piece;
    piece.fill(0xaa);
    at += length;
  }
}

/** Whole characters of UTF-8; broken ones are U+FFFD. */
export function textOf(input: Buffer): string {
  return input.toString("utf8");
}

/** An input of several texts has one in each line. */
export function linesOf(input: Buffer): string[] {
  return textOf(input).split("\n");
}
