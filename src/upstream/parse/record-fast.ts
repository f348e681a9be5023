/**
 * The usual shape of a record, read at byte level. A line is mostly base64 and numbers, and JSON.parse would make a
 * JavaScript string of the one and take 30 ns for each of the other. Measured per line with bench/ndjson.bench.ts.
 *
 * Everything unusual (another key order, escapes, exponents, control characters) answers null or leaves the rest of
 * the line to JSON.parse: what is read here is exactly what JSON.parse would have read, or is not read here.
 */
import type { Alignment } from "../../timing/alignment.ts";
import { type ByteRange, CLOSE_OBJECT, COMMA, JsonCursor, OPEN_OBJECT } from "./json-cursor.ts";

/** What was read of a record: its first one, two or three keys, in this order. */
export interface FastRecord {
  readonly audio: Buffer;
  /** undefined: not read. */
  readonly alignment: Alignment | null | undefined;
  /** undefined: not read. The same object as `alignment` where the upstream sent the same bytes twice. */
  readonly normalizedAlignment: Alignment | null | undefined;
  /** Where the next key's quote stands: from there it is JSON.parse's. -1: the record ends here. */
  readonly restStart: number;
}

const AUDIO = Buffer.from('"audio_base64"');
const ALIGNMENT = Buffer.from('"alignment"');
const NORMALIZED = Buffer.from('"normalized_alignment"');
const CHARACTERS = Buffer.from('"characters"');
const STARTS = Buffer.from('"character_start_times_seconds"');
const ENDS = Buffer.from('"character_end_times_seconds"');
const NULL = Buffer.from("null");

/** null: not the usual shape, or not JSON at all. */
export function readFastRecord(bytes: Buffer, range: ByteRange): FastRecord | null {
  const reader = new RecordReader(new JsonCursor(bytes, range));
  const audio = reader.takeAudio();
  if (audio === null) return null;
  const alignment = reader.takeAlignmentOf(ALIGNMENT);
  const normalizedAlignment = alignment === undefined ? undefined : reader.takeAlignmentOf(NORMALIZED);
  return { audio, alignment, normalizedAlignment, restStart: reader.restStart };
}

class RecordReader {
  readonly #cursor: JsonCursor;
  /** See FastRecord. */
  restStart = -1;
  /** The alignment read last and where it stands, for an upstream that sends the same again. */
  #last: { readonly value: Alignment | null; readonly range: ByteRange } | null = null;

  constructor(cursor: JsonCursor) {
    this.#cursor = cursor;
  }

  /** `{"audio_base64":"..."` and what ends it. */
  takeAudio(): Buffer | null {
    const cursor = this.#cursor;
    if (!cursor.take(OPEN_OBJECT) || !cursor.takeKey(AUDIO)) return null;
    const audio = cursor.takeBase64();
    return audio !== null && this.#takeFieldEnd() ? audio : null;
  }

  /** The alignment or null under `key` if that is the next key; undefined leaves all from there to JSON.parse. */
  takeAlignmentOf(key: Buffer): Alignment | null | undefined {
    const cursor = this.#cursor;
    if (this.restStart === -1 || !cursor.takeKey(key)) return undefined;
    const start = cursor.at;
    const isAgain = this.#last !== null && cursor.takeAgain(this.#last.range);
    const value = isAgain ? this.#last?.value : this.#takeAlignment();
    const end = cursor.at;
    if (value === undefined || !this.#takeFieldEnd()) return undefined;
    this.#last = { value, range: { start, end } };
    return value;
  }

  /**
   * A comma and the next key's quote, or the record's brace and nothing but blanks behind it. A key has to stand
   * there because `{` + the rest is what JSON.parse gets: that is JSON just when the whole line is.
   */
  #takeFieldEnd(): boolean {
    const cursor = this.#cursor;
    if (cursor.take(COMMA)) {
      if (!cursor.isAtString()) return false;
      this.restStart = cursor.at;
      return true;
    }
    if (!cursor.takeLastBrace()) return false;
    this.restStart = -1;
    return true;
  }

  /** undefined: look at it with JSON.parse. */
  #takeAlignment(): Alignment | null | undefined {
    const cursor = this.#cursor;
    if (cursor.takeLiteral(NULL)) return null;
    if (!cursor.take(OPEN_OBJECT) || !cursor.takeKey(CHARACTERS)) return undefined;
    const characters = cursor.takeStrings();
    if (characters === null || !cursor.take(COMMA) || !cursor.takeKey(STARTS)) return undefined;
    const starts = cursor.takeNumbers();
    if (starts?.length !== characters.length || !cursor.take(COMMA) || !cursor.takeKey(ENDS))
      return undefined;
    const ends = cursor.takeNumbers();
    if (ends?.length !== characters.length || !cursor.take(CLOSE_OBJECT)) return undefined;
    return { characters, character_start_times_seconds: starts, character_end_times_seconds: ends };
  }
}
