/** What an ONNX file says of itself, and files that are none. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { OnnxFault, readOnnxBytes, readOnnxFile } from "../../../../../src/service/voice/neural/onnx-file.ts";
import { onnxModel } from "../../../../kit/onnx-model.ts";

const METADATA = { model_type: "vits", language: "Deutsch, größer", n_speakers: 3 };
const model = (isNoisy: boolean, samples = 40_000) =>
  onnxModel({
    metadata: METADATA,
    sounds: [new Float32Array(samples), new Float32Array(samples).fill(0.1)],
    speakers: 3,
    isNoisy,
  });

describe("an ONNX file", () => {
  it("is read for its metadata, from a file and from bytes alike", () => {
    const folder = mkdtempSync(join(tmpdir(), "voicewire-onnx-"));
    try {
      const path = join(folder, "model.onnx");
      writeFileSync(path, model(true));
      expect(Object.fromEntries(readOnnxFile(path).metadata)).toEqual({ ...METADATA, n_speakers: "3" });
      expect(readOnnxFile(path)).toEqual(readOnnxBytes(model(true)));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("says whether its graph draws random numbers", () => {
    expect(readOnnxBytes(model(true)).isRandom).toBe(true);
    expect(readOnnxBytes(model(false)).isRandom).toBe(false);
  });

  it("that is cut off anywhere is refused, or says less", () => {
    const whole = model(true, 20);
    const { metadata } = readOnnxBytes(whole);
    let refused = 0;
    for (let length = 0; length < whole.length; length += 1) {
      try {
        const read = readOnnxBytes(whole.subarray(0, length));
        // It ends between two entries.
        expect(read.metadata.size).toBeLessThan(metadata.size);
      } catch (thrown) {
        if (!(thrown instanceof OnnxFault)) throw thrown;
        refused += 1;
      }
    }
    expect(refused).toBeGreaterThan(whole.length - metadata.size - 1);
  });

  it.each([
    ["an HTML page", Buffer.from("<!doctype html><title>404</title>")],
    [
      "a pointer of Git LFS",
      Buffer.from("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 63201294\n"),
    ],
    ["nothing", new Uint8Array(0)],
    ["zeros", new Uint8Array(1000)],
  ])("that is %s is refused", (_, bytes) => {
    expect(() => readOnnxBytes(bytes)).toThrow(OnnxFault);
  });
});
