import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BLOCK_BYTES, BlockPool } from "../../../../src/kit/block-pool.ts";
import { WaitingChunks } from "../../../../src/session/synthesis/waiting-chunks.ts";
import type { SynthesisChunk } from "../../../../src/upstream/types.ts";

/** Counts what is lent. */
class CountedPool extends BlockPool {
  readonly lent = new Set<Uint8Array>();

  override take(): Uint8Array {
    const block = super.take();
    this.lent.add(block);
    return block;
  }

  override give(block: Uint8Array): void {
    expect(this.lent.delete(block)).toBe(true);
    // Whoever still looks at it sees it.
    block.fill(0xee);
    super.give(block);
  }
}

function chunkOf(audio: Uint8Array, text = ""): SynthesisChunk {
  const characters = [...text];
  const times = characters.map((_character, index) => index);
  const alignment =
    text === ""
      ? null
      : { characters, character_start_times_seconds: times, character_end_times_seconds: times };
  return { audio, alignment, normalizedAlignment: null, voiceSegments: [] };
}

function bytesOf(length: number, seed: number): Uint8Array {
  return Uint8Array.from({ length }, (_byte, index) => (index * 7 + seed) % 251);
}

describe("WaitingChunks", () => {
  it("gives back all bytes in their order, whatever comes and goes in between, and every block in the end", () => {
    const step = fc.record({
      bytes: fc.integer({ min: 0, max: 3 * BLOCK_BYTES }),
      isTimed: fc.boolean(),
      taken: fc.integer({ min: 0, max: 6 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), fc.boolean(), (steps, mayDivide) => {
        const pool = new CountedPool();
        const waiting = new WaitingChunks({ pool, mayDivide });
        const [pushed, taken]: [number[], number[]] = [[], []];
        let [texts, emitted] = ["", ""];
        const take = (): boolean => {
          const chunk = waiting.take();
          if (chunk === undefined) return false;
          taken.push(...chunk.audio);
          emitted += chunk.alignment?.characters.join("") ?? "";
          return true;
        };
        for (const [index, { bytes, isTimed, taken: count }] of steps.entries()) {
          const audio = bytesOf(bytes, index);
          const text = isTimed ? `t${index}.` : "";
          waiting.push(chunkOf(audio, text));
          pushed.push(...audio);
          texts += text;
          // What came in is somebody else's memory.
          audio.fill(0xdd);
          expect(waiting.audioBytes).toBe(pushed.length - taken.length);
          for (let round = 0; round < count; round += 1) take();
        }
        expect(waiting.timedChars).toBe(texts.length - emitted.length);
        while (take());
        expect(taken).toEqual(pushed);
        expect(emitted).toBe(texts);
        expect([waiting.isEmpty, waiting.audioBytes, pool.lent.size]).toEqual([true, 0, 0]);
      }),
    );
  });

  it("divides sound that is long where it may, and keeps a chunk whole where it may not", () => {
    const audio = bytesOf(2 * BLOCK_BYTES + 100, 1);
    const divided = new WaitingChunks({ pool: new BlockPool(), mayDivide: true });
    divided.push(chunkOf(audio));
    expect(divided.take()?.audio).toEqual(audio.subarray(0, BLOCK_BYTES));
    const whole = new WaitingChunks({ pool: new BlockPool(), mayDivide: false });
    whole.push(chunkOf(audio, "a"));
    expect(new Uint8Array(whole.take()?.audio ?? [])).toEqual(audio);
    expect(whole.take()).toBeUndefined();
  });

  it("keeps nothing of a piece that came, and little for small ones", () => {
    const pool = new CountedPool();
    const waiting = new WaitingChunks({ pool, mayDivide: true });
    for (let index = 0; index < 25; index += 1) waiting.push(chunkOf(bytesOf(160, index)));
    expect(pool.lent.size).toBe(1);
    waiting.clear();
    expect(pool.lent.size).toBe(0);
    expect(waiting.take()).toBeUndefined();
  });

  it("makes one piece of sound that came in many reads", () => {
    const waiting = new WaitingChunks({ pool: new CountedPool(), mayDivide: true });
    const reads = Array.from({ length: 25 }, (_, index) => bytesOf(160, index));
    for (const audio of reads) waiting.push(chunkOf(audio));
    expect(Buffer.from(waiting.take()?.audio ?? []).equals(Buffer.concat(reads))).toBe(true);
    expect(waiting.take()).toBeUndefined();
  });

  it("without a pool hands on the very chunks that came", () => {
    const waiting = new WaitingChunks({ pool: null, mayDivide: true });
    const chunk = chunkOf(bytesOf(3 * BLOCK_BYTES, 0));
    waiting.push(chunk);
    expect(waiting.take()).toBe(chunk);
  });
});

describe("BlockPool", () => {
  it("lends what came back, and keeps at most 16 MB of it", () => {
    const pool = new BlockPool();
    const blocks = Array.from({ length: 5000 }, () => pool.take());
    expect(pool.lentBytes).toBe(5000 * BLOCK_BYTES);
    for (const block of blocks) pool.give(block);
    expect(pool.lentBytes).toBe(0);
    expect(pool.spareBytes).toBe(16 * 1024 * 1024);
    expect(blocks).toContain(pool.take());
  });
});
