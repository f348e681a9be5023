import { describe, expect, it } from "vitest";
import { wavHeader } from "../../../../src/audio/containers/wav.ts";
import { decodeOnce } from "../../../../src/service/media/decode-once.ts";
import { decodeUpload } from "../../../../src/service/media/decode-upload.ts";
import type { PcmPiece } from "../../../../src/service/media/pieces.ts";
import { TemporaryFiles } from "../../../../src/service/media/temporary-file.ts";
import { openTemporaryFiles } from "../../../service/temporary-parts.ts";
import { hasProgram } from "../../audio/helpers.ts";
import { encodeFile, fileOf, testSound } from "./helpers.ts";

const other = { fileFormat: "other" } as const;
const { signal } = new AbortController();
const temporaryFiles = new TemporaryFiles();

/** Samples of each rate in turn. */
async function runsOf(pieces: AsyncIterable<PcmPiece>): Promise<{ sampleRate: number; samples: number[] }[]> {
  const runs: { sampleRate: number; samples: number[] }[] = [];
  for await (const { pcm, sampleRate } of pieces) {
    expect(pcm.length).toBeGreaterThan(0);
    if (runs.at(-1)?.sampleRate !== sampleRate) runs.push({ sampleRate, samples: [] });
    for (const sample of pcm) runs.at(-1)?.samples.push(sample);
  }
  return runs;
}

function wavOf(seconds: number, sampleRate: number): Uint8Array {
  const pcm = testSound(seconds, sampleRate);
  const bytes = new Uint8Array(pcm.buffer);
  return new Uint8Array(Buffer.concat([wavHeader({ sampleRate, dataBytes: bytes.length }), bytes]));
}

/** Counts how often it is read. */
function counted(bytes: Uint8Array) {
  const file = fileOf(bytes);
  const counting = {
    reads: 0,
    read() {
      counting.reads += 1;
      return file.read();
    },
  };
  return counting;
}

describe("an upload that is decoded once", () => {
  it.each([16_000, 44_100, 11_127])(
    "gives the same samples as often as asked, at %i Hz, and is read once",
    async (rate) => {
      const bytes = wavOf(3.21, rate);
      const file = counted(bytes);
      const decoded = await decodeOnce(file, { ...other, temporaryFiles, signal });
      const expected = await runsOf(decodeUpload(fileOf(bytes), other));
      expect(await runsOf(decoded.pieces())).toEqual(expected);
      expect(await runsOf(decoded.pieces())).toEqual(expected);
      expect(decoded.seconds).toBeCloseTo(3.21, 3);
      expect(file.reads).toBe(1);
      expect(openTemporaryFiles()).toBe(1);
      await decoded.close();
      await decoded.close();
      expect(openTemporaryFiles()).toBe(0);
    },
  );

  it.runIf(hasProgram("ffmpeg"))("keeps the rates apart of a file that changes it", async () => {
    const mp3 = (rate: number) =>
      encodeFile(testSound(1, rate), ["-c:a", "libmp3lame", "-id3v2_version", "0", "-f", "mp3"], rate);
    const bytes = new Uint8Array(Buffer.concat([mp3(44_100), mp3(16_000)]));
    const decoded = await decodeOnce(counted(bytes), { ...other, temporaryFiles, signal });
    const runs = await runsOf(decoded.pieces());
    expect(runs.map(({ sampleRate }) => sampleRate)).toEqual([44_100, 16_000]);
    expect(runs).toEqual(await runsOf(decodeUpload(fileOf(bytes), other)));
    await decoded.close();
  });

  it("is decoded again where there is more than may be kept, and nothing of it is kept", async () => {
    const bytes = wavOf(2, 16_000);
    const file = counted(bytes);
    const decoded = await decodeOnce(file, { ...other, temporaryFiles, signal, maxKeptBytes: 63_999 });
    expect(openTemporaryFiles()).toBe(0);
    expect(decoded.seconds).toBe(2);
    expect(await runsOf(decoded.pieces())).toEqual(await runsOf(decodeUpload(fileOf(bytes), other)));
    expect(file.reads).toBe(2);
    await decoded.close();
    const fitting = counted(bytes);
    const kept = await decodeOnce(fitting, { ...other, temporaryFiles, signal, maxKeptBytes: 64_000 });
    await runsOf(kept.pieces());
    expect(fitting.reads).toBe(1);
    await kept.close();
  });

  it("rejects with what is wrong with it, or why it was given up, and leaves no file", async () => {
    const leaving = new AbortController();
    const endless = {
      async *read() {
        yield wavOf(1, 16_000);
        leaving.abort(new Error("Gone"));
        yield new Uint8Array(100_000);
      },
    };
    await expect(
      decodeOnce(endless, { fileFormat: "pcm_s16le_16", temporaryFiles, signal: leaving.signal }),
    ).rejects.toThrow("Gone");
    await expect(
      decodeOnce(fileOf(new Uint8Array(9000)), { ...other, temporaryFiles, signal }),
    ).rejects.toMatchObject({
      httpStatus: 400,
    });
    expect(openTemporaryFiles()).toBe(0);
  });
});
