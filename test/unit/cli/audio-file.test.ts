import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MPEGDecoder } from "mpg123-decoder";
import { afterAll, describe, expect, test } from "vitest";
import { OpusEncoder } from "../../../src/audio/codecs/opus-encoder.ts";
import { prepareAudioFile } from "../../../src/cli/output/audio-file.ts";
import { outputFormatOf } from "../../../src/cli/output/output-plan.ts";
import { MemoryOutput } from "./memory-io.ts";

const folder = mkdtempSync(join(tmpdir(), "voicewire-audio-file-"));
afterAll(() => rmSync(folder, { recursive: true }));

function tone(samples: number, rate: number): Int16Array {
  return Int16Array.from({ length: samples }, (_, at) =>
    Math.round(12_000 * Math.sin((at * 2 * Math.PI * 440) / rate)),
  );
}

function bytesOf(pcm: Int16Array): Uint8Array {
  return new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength);
}

async function write(name: string, frames: readonly Uint8Array[], format?: string): Promise<Buffer> {
  const path = name === "-" ? name : join(folder, name);
  const stdout = new MemoryOutput();
  const open = await prepareAudioFile({ path, stdout, ...outputFormatOf(path, format) });
  const file = open();
  for (const frame of frames) file.write(frame);
  file.close();
  file.close();
  const written = name === "-" ? stdout.bytes : readFileSync(path);
  expect(file.bytes).toBe(written.length);
  return written;
}

describe("prepareAudioFile()", () => {
  test("WAV holds the samples behind a header with their true sizes", async () => {
    const pcm = bytesOf(tone(960, 24_000));
    const wav = await write("a.wav", [pcm.subarray(0, 960), pcm.subarray(960)]);
    expect(wav.subarray(0, 4).toString()).toBe("RIFF");
    expect(wav.readUInt32LE(4)).toBe(wav.length - 8);
    expect(wav.readUInt32LE(24)).toBe(24_000);
    expect(wav.readUInt32LE(40)).toBe(pcm.length);
    expect(wav.subarray(44).equals(pcm)).toBe(true);
  });

  test("an empty WAV is a valid one", async () => {
    const wav = await write("empty.wav", []);
    expect(wav.length).toBe(44);
    expect(wav.readUInt32LE(40)).toBe(0);
  });

  test("given up before a frame came, leaves no file, or the one that was there before", async () => {
    const give = async (name: string, frames: readonly Uint8Array[]): Promise<string> => {
      const path = join(folder, name);
      const open = await prepareAudioFile({
        path,
        stdout: new MemoryOutput(),
        ...outputFormatOf(path, undefined),
      });
      const file = open();
      for (const frame of frames) file.write(frame);
      file.discard();
      file.discard();
      return path;
    };
    expect(existsSync(await give("none.wav", []))).toBe(false);
    const before = join(folder, "before.wav");
    writeFileSync(before, "before");
    await give("before.wav", []);
    expect(readFileSync(before, "utf8")).toBe("before");
    const wav = readFileSync(await give("before.wav", [Uint8Array.of(1, 2)]));
    expect(wav.length).toBe(46);
    expect(wav.readUInt32LE(40)).toBe(2);
  });

  test("a longer file that was there before is gone behind the new one's end", async () => {
    writeFileSync(join(folder, "long.ulaw"), Buffer.alloc(5000));
    expect([...(await write("long.ulaw", [Uint8Array.of(1, 2, 3)]))]).toEqual([1, 2, 3]);
  });

  test("mu-law, PCM and stdout are the frames and nothing else", async () => {
    const frames = [Uint8Array.of(1, 2, 3), Uint8Array.of(4)];
    expect([...(await write("a.ulaw", frames))]).toEqual([1, 2, 3, 4]);
    expect([...(await write("a.pcm", frames))]).toEqual([1, 2, 3, 4]);
    expect([...(await write("-", frames, "alaw_8000"))]).toEqual([1, 2, 3, 4]);
  });

  test("Ogg decodes to as much audio as packets went in", async () => {
    const encoder = new OpusEncoder({ sampleRate: 48_000, bitrateKbps: 64, complexity: 0 });
    const pcm = tone(48_000, 48_000);
    const packets = Array.from({ length: 50 }, (_, index) =>
      encoder.encode(pcm.slice(index * 960, (index + 1) * 960)),
    );
    encoder.close();
    const ogg = await write("a.ogg", packets);
    const { OggOpusDecoder } = await import("ogg-opus-decoder");
    const decoder = new OggOpusDecoder();
    await decoder.ready;
    const { samplesDecoded, errors } = await decoder.decodeFile(ogg);
    decoder.free();
    expect(errors).toEqual([]);
    // The encoder's lookahead is cut off at the front.
    expect(samplesDecoded).toBe(48_000 - 312);
  });

  test("MP3 decodes to the tone, whatever the address of the frames", async () => {
    const pcm = tone(44_100, 44_100);
    const odd = new Uint8Array(pcm.byteLength + 1);
    odd.set(bytesOf(pcm), 1);
    const mp3 = await write("a.mp3", [odd.subarray(1, 30_001), odd.subarray(30_001)]);
    const decoder = new MPEGDecoder();
    await decoder.ready;
    const { samplesDecoded, sampleRate, channelData } = decoder.decode(mp3);
    decoder.free();
    expect(sampleRate).toBe(44_100);
    expect(samplesDecoded).toBeGreaterThanOrEqual(44_100);
    const loudest = Math.max(...(channelData[0]?.slice(10_000, 12_000) ?? []));
    expect(loudest).toBeGreaterThan(0.3);
  });

  test("says which file can't be written, and why", async () => {
    const path = join(folder, "no", "such", "folder.wav");
    await expect(write(path.slice(folder.length), [])).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringMatching(/^Output ".*folder\.wav" can't be written: ENOENT/),
    });
  });
});
