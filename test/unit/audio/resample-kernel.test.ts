import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import loadWabt from "wabt";
import { kernelBytes, MAX_SAMPLES, ResampleKernel } from "../../../src/audio/resample/resample-kernel.ts";
import { noise } from "./helpers.ts";

/** What the kernel has to say, in the plainest way. */
function plain(
  table: { up: number; down: number; taps: number; rows: Float32Array },
  samples: Int16Array,
  phase: number,
) {
  const outputs: number[] = [];
  let at = 0;
  let place = phase;
  while (at + table.taps <= samples.length) {
    let sum = 0;
    for (let tap = 0; tap < table.taps; tap += 1)
      sum += (table.rows[place * table.taps + tap] ?? 0) * (samples[at + tap] ?? 0);
    outputs.push(sum);
    place += table.down;
    at += Math.floor(place / table.up);
    place %= table.up;
  }
  return { outputs, used: at, phase: place };
}

describe("the resampler's kernel", () => {
  it("is what its source says", async () => {
    const wabt = await loadWabt();
    const source = await readFile(
      new URL("../../../src/audio/resample/resample-kernel.wat", import.meta.url),
      "utf8",
    );
    const module = wabt.parseWat("resample-kernel.wat", source, { simd: true });
    module.validate();
    const { buffer } = module.toBinary({ write_debug_names: false });
    module.destroy();
    expect(Buffer.from(kernelBytes()).equals(Buffer.from(buffer))).toBe(true);
  });

  it("makes the outputs of the plain sum, for any number of taps and phases, clipped and rounded", () => {
    const kernel = new ResampleKernel();
    for (const [up, down, taps] of [
      [1, 6, 336],
      [2, 3, 84],
      [160, 147, 60],
      [3, 1, 4],
    ] as const) {
      const rows = Float32Array.from({ length: up * taps }, (_, index) => Math.sin(index * 1.7) / (taps / 8));
      const plainTable = { up, down, taps, rows };
      const table = kernel.addTable(plainTable);
      for (const count of [taps - 1, taps, taps + 5, MAX_SAMPLES]) {
        const samples = noise(count, count);
        const output = new Int16Array(MAX_SAMPLES * 6);
        const expected = plain(plainTable, samples, up - 1);
        const { used, phase, made } = kernel.convert(table, samples, { phase: up - 1, output, at: 3 });
        expect({ used, phase, made }).toEqual({
          used: expected.used,
          phase: expected.phase,
          made: expected.outputs.length,
        });
        expected.outputs.forEach((value, index) => {
          const clipped = Math.max(-32_768, Math.min(32_767, value));
          expect(Math.abs((output[index + 3] ?? 0) - clipped)).toBeLessThan(0.6);
        });
      }
    }
  });

  it("several tables stand side by side", () => {
    const kernel = new ResampleKernel();
    const half = { up: 1, down: 1, taps: 8, rows: Float32Array.of(0.5, 0, 0, 0, 0, 0, 0, 0) };
    const first = kernel.addTable(half);
    const large = kernel.addTable({ up: 320, down: 147, taps: 60, rows: new Float32Array(320 * 60).fill(1) });
    const output = new Int16Array(1);
    kernel.convert(first, Int16Array.of(100, 0, 0, 0, 0, 0, 0, 0), { phase: 0, output, at: 0 });
    expect(output[0]).toBe(50);
    expect(large.rowsAt).toBeGreaterThanOrEqual(first.rowsAt + 8 * 4);
  });
});
