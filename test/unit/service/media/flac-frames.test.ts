/** Frames of FLAC files cut apart, and work that grows with the bytes alone. */
import { describe, expect, it } from "vitest";
import { FlacEncoder } from "../../../../src/audio/codecs/flac.ts";
import { FlacFrames } from "../../../../src/service/media/decoders/flac-frames.ts";
import { createFlacUpload, createVorbisUpload } from "../../../../src/service/media/decoders/wasm.ts";
import { vorbisComments, vorbisFile, vorbisIdentification } from "../../../kit/vorbis.ts";

const BLOCK_SAMPLES = 1024;
const HEADER_BYTES = 42;

/** The header, and the frames one by one. The noise makes syncs inside of frames. */
function encoded(frames: number): { readonly header: Uint8Array; readonly frames: readonly Uint8Array[] } {
  const encoder = new FlacEncoder({ sampleRate: 16_000 });
  const made = Array.from({ length: frames }, (_, frame) =>
    encoder.push(
      Int16Array.from(
        { length: BLOCK_SAMPLES },
        (_, at) => Math.imul(frame * 1024 + at + 1, 0x9e3779b1) >> 16,
      ),
    ),
  );
  const [first = new Uint8Array(0), ...others] = made;
  return { header: first.subarray(0, HEADER_BYTES), frames: [first.subarray(HEADER_BYTES), ...others] };
}

function framesOf(bytes: Uint8Array, pieceBytes: number): Buffer[] {
  const frames = new FlacFrames();
  const found: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const piece = Buffer.from(bytes.subarray(at, at + pieceBytes));
    found.push(...frames.push(piece).map((frame) => Buffer.from(frame)));
    piece.fill(0xaa);
  }
  const last = frames.finish();
  return [...found, ...(last === null ? [] : [last])].map((frame) => Buffer.from(frame));
}

describe("FlacFrames", () => {
  const { frames } = encoded(5);
  const bytes = Buffer.concat(frames);

  it.each([1, 7, 1000, 100_000])("cuts frames apart, in pieces of %d bytes", (pieceBytes) => {
    expect(framesOf(bytes, pieceBytes)).toEqual(frames.map((frame) => Buffer.from(frame)));
  });

  it("passes over bytes before the first frame, and leaves out a last one that is cut off", () => {
    const found = framesOf(
      Buffer.concat([Buffer.from("\u00ff\u00f8junk", "latin1"), bytes.subarray(0, -1)]),
      50,
    );
    expect(found).toEqual(frames.slice(0, -1).map((frame) => Buffer.from(frame)));
  });

  it("goes on behind a frame that is broken for longer than any may be", () => {
    const [first = new Uint8Array(0)] = frames;
    const broken = Buffer.concat([first.subarray(0, 100), Buffer.alloc(600_000)]);
    expect(framesOf(Buffer.concat([broken, bytes]), 8192)).toEqual(frames.map((frame) => Buffer.from(frame)));
  });
});

describe("uploads that would keep the processor busy", () => {
  it("FLAC: headers of frames without an end", async () => {
    const { header, frames } = encoded(1);
    const heads = Buffer.alloc(131_072, frames[0]?.subarray(0, 6));
    for (let files = 0; files < 16; files += 1) {
      const upload = createFlacUpload();
      for (const bytes of [header, heads]) expect(await upload.push(bytes)).toEqual([]);
      upload.close();
    }
  }, 5000);

  it("Vorbis: comments in thousands of pieces", async () => {
    const upload = createVorbisUpload();
    const file = vorbisFile([vorbisIdentification(), vorbisComments("x".repeat(30_000))]);
    for (let at = 0; at < 20_000; at += 8) expect(await upload.push(file.subarray(at, at + 8))).toEqual([]);
    upload.close();
  }, 5000);
});
