/** The parts that dialects share: marks, the order of media, pieces of audio. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createFrameMaker } from "../../../../src/audio/framing/frame-maker.ts";
import { silentByte } from "../../../../src/protocol/carrier/carrier-format.ts";
import { MediaOrder } from "../../../../src/protocol/carrier/media-order.ts";
import { PieceCutter } from "../../../../src/protocol/carrier/payload.ts";
import { PendingMarks } from "../../../../src/protocol/carrier/pending-marks.ts";
import { SOUND_FORMATS } from "../../../../src/protocol/vocabulary.ts";

describe("silentByte()", () => {
  it.each(SOUND_FORMATS)("in %s is what a listener gets for silence", (format) => {
    const heard = new Set<number>();
    const maker = createFrameMaker(
      { format, frameMs: 20 },
      {
        frames: (bytes) => bytes.forEach((byte) => void heard.add(byte)),
        error: (error) => expect.unreachable(error.message),
      },
    );
    maker.pushSilence(1000);
    maker.flush();
    maker.close();
    expect([...heard]).toEqual([silentByte(format)]);
  });
});

describe("PendingMarks", () => {
  it("never calls a mark played that was pending at a clear", () => {
    const marks = new PendingMarks();
    for (const name of ["a", "b", "c"]) marks.ask(name);
    expect(marks.answer("a")).toBe("played");
    marks.clear();
    marks.ask("d");
    expect(["b", "c", "d", "d"].map((name) => marks.answer(name))).toEqual([
      "cleared",
      "cleared",
      "played",
      "unknown",
    ]);
  });

  it("takes those before an answered mark for settled", () => {
    const marks = new PendingMarks(2);
    marks.ask("a");
    marks.ask("b");
    expect(marks.ask("c")).toBe(false);
    expect(marks.answer("b")).toBe("played");
    expect(marks.answer("a")).toBe("unknown");
    expect(marks.ask("c")).toBe(true);
  });

  it("forgets cleared marks clear by clear as they are confirmed", () => {
    const marks = new PendingMarks();
    marks.ask("a");
    marks.clear();
    marks.ask("b");
    marks.clear();
    marks.confirmClear();
    expect(marks.answer("a")).toBe("unknown");
    expect(marks.answer("b")).toBe("cleared");
    // More confirmations than clears say nothing about the next one.
    marks.confirmClear();
    marks.confirmClear();
    marks.ask("c");
    marks.clear();
    expect(marks.answer("c")).toBe("cleared");
  });

  it("keeps at most 256 cleared marks", () => {
    const marks = new PendingMarks();
    for (let i = 0; i < 300; i += 1) {
      marks.ask(`m${i}`);
      marks.clear();
    }
    expect(marks.answer("m43")).toBe("unknown");
    expect(marks.answer("m44")).toBe("cleared");
  });
});

describe("MediaOrder", () => {
  const piece = (n: number) => Uint8Array.of(n);
  const play = (chunks: readonly number[]) => {
    const order = new MediaOrder();
    const odd: string[] = [];
    const out: number[] = [];
    for (const chunk of chunks) {
      const { audio, odd: what } = order.push(chunk, piece(chunk));
      out.push(...audio.map((bytes) => bytes[0] ?? -1));
      if (what !== null) odd.push(what);
    }
    out.push(...order.flush().map((bytes) => bytes[0] ?? -1));
    return { out, odd };
  };

  it("restores any order within its window", () => {
    // Five that are shuffled: at most four wait for the first of them.
    const shuffled = (first: number) =>
      fc.shuffledSubarray([0, 1, 2, 3, 4], { minLength: 5 }).map((order) => order.map((i) => first + i));
    fc.assert(
      fc.property(fc.tuple(shuffled(2), shuffled(7), shuffled(12), shuffled(17)), (blocks) => {
        const sent = [1, ...blocks.flat()];
        expect(play(sent)).toEqual({ out: [...sent].sort((a, b) => a - b), odd: [] });
      }),
    );
  });

  it("waits for a lost piece until four wait behind it, and reports it once", () => {
    expect(play([1, 3, 4, 5, 6])).toEqual({ out: [1, 3, 4, 5, 6], odd: [] });
    expect(play([1, 3, 4, 5, 6, 7, 8])).toEqual({
      out: [1, 3, 4, 5, 6, 7, 8],
      odd: ["1 media message is missing"],
    });
  });

  it("drops what comes twice or too late", () => {
    expect(play([5, 6, 6, 5, 7])).toEqual({
      out: [5, 6, 7],
      odd: ["a media message came twice or too late"],
    });
    expect(play([5, 7, 7, 6])).toEqual({ out: [5, 6, 7], odd: ["a media message came twice"] });
  });

  it("goes along with a carrier that counts again", () => {
    const { out, odd } = play([100, 101, ...Array.from({ length: 30 }, (_, i) => i + 1)]);
    expect(out).toEqual([100, 101, ...Array.from({ length: 15 }, (_, i) => i + 16)]);
    expect(odd).toContain("the numbers of the media messages start again");
  });
});

describe("PieceCutter", () => {
  it("cuts any frames into pieces by its rule, and loses no byte", () => {
    const rule = fc
      .record({ step: fc.integer({ min: 1, max: 40 }), minSteps: fc.integer({ min: 0, max: 5 }) })
      .map(({ step, minSteps }) => ({
        stepBytes: step,
        minBytes: step * minSteps,
        maxBytes: step * Math.max(1, 2 * minSteps + 1),
      }));
    fc.assert(
      fc.property(
        rule,
        fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 12 }),
        fc.nat(3),
        (bounds, frames, bundle) => {
          const cutter = new PieceCutter(bounds, "pcm_8000");
          const pieces: Buffer[] = [];
          const keep = (buffer: Buffer, bytes: number) => pieces.push(Buffer.from(buffer.subarray(0, bytes)));
          for (let at = 0; at < frames.length; at += bundle + 1)
            cutter.push(frames.slice(at, at + bundle + 1), keep);
          expect(cutter.heldBytes).toBeLessThan(bounds.maxBytes);
          cutter.flush(keep);
          const sent = Buffer.concat(frames);
          const out = Buffer.concat(pieces);
          expect(out.subarray(0, sent.length).equals(sent)).toBe(true);
          expect(out.length - sent.length).toBeLessThan(Math.max(bounds.minBytes, bounds.stepBytes) + 1);
          for (const piece of pieces) {
            expect(piece.length % bounds.stepBytes).toBe(0);
            expect(piece.length).toBeGreaterThanOrEqual(Math.max(1, bounds.minBytes));
            expect(piece.length).toBeLessThanOrEqual(bounds.maxBytes);
          }
        },
      ),
    );
  });

  it("completes with the silence of the format", () => {
    for (const [format, byte] of [
      ["ulaw_8000", 0xff],
      ["alaw_8000", 0xd5],
      ["pcm_8000", 0],
    ] as const) {
      const cutter = new PieceCutter({ minBytes: 4, stepBytes: 2, maxBytes: 8 }, format);
      const pieces: Buffer[] = [];
      cutter.push([Uint8Array.of(1)], () => undefined);
      cutter.flush((buffer, bytes) => pieces.push(Buffer.from(buffer.subarray(0, bytes))));
      expect(pieces).toEqual([Buffer.from([1, byte, byte, byte])]);
      cutter.push([Uint8Array.of(1)], () => undefined);
      cutter.drop();
      expect(cutter.heldBytes).toBe(0);
    }
  });
});
