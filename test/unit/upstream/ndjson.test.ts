/** The line splitter: however it is cut into pieces, it gives the same records, at a cost linear in the stream. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../src/errors.ts";
import { JsonLines } from "../../../src/upstream/parse/json-lines.ts";
import { readRecord } from "../../../src/upstream/parse/record.ts";
import type { SynthesisChunk } from "../../../src/upstream/types.ts";
import { ndjsonSpeech } from "../../helpers/fake-upstream.ts";

/** Audio as latin1: a string is compared at once, a Buffer byte by byte. */
interface ReadRecord extends Omit<SynthesisChunk, "audio"> {
  readonly audio: string;
}

interface Parsed {
  readonly records: readonly ReadRecord[];
  readonly error: string | null;
}

function parse(pieces: readonly Buffer[], maxLineBytes?: number): Parsed {
  const chunks: SynthesisChunk[] = [];
  const parser = new JsonLines({
    onLine: (bytes, start, end) => void chunks.push(readRecord(bytes, { start, end })),
    ...(maxLineBytes === undefined ? {} : { maxLineBytes }),
  });
  let error: string | null = null;
  try {
    for (const piece of pieces) parser.push(piece);
    parser.flush();
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    error = `${thrown.code} ${thrown.message}`;
  }
  // Read only now, so that audio that later lines wrote over is found out.
  const records = chunks.map((chunk) => ({ ...chunk, audio: Buffer.from(chunk.audio).toString("latin1") }));
  return { records, error };
}

/** Copies, so that a parser that keeps a piece instead of its bytes is found out. */
function cut(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [0, ...[...cuts].sort((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, index) => Buffer.from(bytes.subarray(at[index], end)));
}

const text = "Zoë sagt „你好“ 🙂 to José\u0301.";
const speech = ndjsonSpeech({ text, charsPerChunk: 3 });
const stream = Buffer.concat(speech.chunks.map((chunk) => chunk.line));

describe("records of lines", () => {
  it("gives the same records for any cut of the stream", () => {
    const whole = parse([stream]);
    expect(whole.error).toBeNull();
    expect(whole.records.map((record) => record.audio).join("")).toBe(speech.audio.toString("latin1"));
    expect(whole.records.flatMap((record) => record.alignment?.characters ?? [])).toEqual(Array.from(text));
    fc.assert(
      fc.property(fc.array(fc.nat({ max: stream.length }), { maxLength: 40 }), (cuts) => {
        expect(parse(cut(stream, cuts))).toEqual(whole);
      }),
      { numRuns: 200 },
    );
    const bytes = Array.from(stream, (_, index) => index);
    expect(parse(cut(stream, bytes))).toEqual(whole);
  });

  it("gives the same records and the same error for any cut of a stream with prefixes, blanks and faults", () => {
    const line = speech.chunks[0]?.line.toString().trimEnd() ?? "";
    const lineOf = fc.constantFrom(
      ...["", "\r", "  ", "id: 7", "retry: 100", "event: x", ": note", "data:", "id", "nonsense", "{"],
      ...[line, `${line}\r`, ` ${line}`, `data: ${line}`, `data:${line}\r`, `{"audio_base64":"!"}`],
    );
    const newline = fc.constantFrom("\n", "");
    fc.assert(
      fc.property(
        fc.array(lineOf, { maxLength: 8 }),
        newline,
        fc.array(fc.nat({ max: 3000 }), { maxLength: 12 }),
        (lines, last, cuts) => {
          const bytes = Buffer.from(lines.join("\n") + last);
          const within = cuts.filter((at) => at <= bytes.length);
          expect(parse(cut(bytes, within), 1400)).toEqual(parse([bytes], 1400));
        },
      ),
      { numRuns: 1000 },
    );
  });

  it("skips blank lines and the prefixes of event streams, and reads data lines", () => {
    const line = '{"audio_base64":"AQ=="}';
    const parsed = parse([
      Buffer.from(`\n\r\nid: 1\nretry: 5\nevent: a\n: b\ndata: ${line}\n\n${line}\r\n  ${line}\ndata:\n`),
    ]);
    expect(parsed.error).toBeNull();
    expect(parsed.records).toHaveLength(3);
  });

  it("reads a last line without newline", () => {
    expect(parse([stream.subarray(0, -1)])).toEqual(parse([stream]));
  });

  it("a broken line, with its number, is not a stream that ends inside one", () => {
    const good = '{"audio_base64":"AQ=="}\n';
    expect(parse([Buffer.from(`${good}\n{"audio\n${good}`)]).error).toMatch(
      /^upstream_protocol .*\(line 3\)$/,
    );
    expect(parse([Buffer.from(`${good}{"audio`)])).toMatchObject({
      error: expect.stringMatching(/^upstream_truncated /),
    });
    expect(parse([Buffer.from(`${good}{"audio`)]).records).toHaveLength(1);
  });

  it("takes a line of the longest length and refuses one byte more, however it comes", () => {
    const line = (length: number) => Buffer.from(`${" ".repeat(length - 23)}{"audio_base64":"AQ=="}\n`);
    const atLimit = line(500);
    expect(parse([atLimit], 500).records).toHaveLength(1);
    expect(parse(cut(atLimit, [100, 499]), 500).records).toHaveLength(1);
    const over = line(501);
    expect(parse([over], 500).error).toMatch(/^upstream_protocol .*over 500 bytes/);
    expect(parse(cut(over, [100, 499]), 500).error).toMatch(/over 500 bytes/);
    // Before its newline has come.
    expect(parse([over.subarray(0, 501)], 500).error).toMatch(/over 500 bytes/);
  });

  it("copies each byte of a line that comes in small pieces a bounded number of times", () => {
    // 2 MB in pieces of 16 bytes: 131,072 pieces, which concatenating again and again would copy 137 GB for.
    const audio = Buffer.alloc(1_500_000, 7);
    const line = Buffer.from(`{"audio_base64":"${audio.toString("base64")}"}\n`);
    const pieces = Array.from({ length: Math.ceil(line.length / 16) }, (_, index) =>
      line.subarray(index * 16, index * 16 + 16),
    );
    const { records } = parse(pieces);
    expect(records[0]?.audio === audio.toString("latin1")).toBe(true);
  });
});
