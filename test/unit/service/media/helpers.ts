/** Sounds and files for the tests of uploads. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../../audio/helpers.ts";

export const RATE = 48_000;

/** Tones that come and go, so that a shift in time shows; -1..1 scaled to 16 bits. */
export function testSound(seconds: number, rate = RATE): Int16Array {
  return Int16Array.from({ length: Math.round(seconds * rate) }, (_, at) => {
    const time = at / rate;
    const tone = Math.sin(2 * Math.PI * (300 * time + 250 * time * time));
    return Math.round(9000 * tone * (0.6 + 0.4 * Math.sin(2 * Math.PI * 3 * time)));
  });
}

/** Encoded by ffmpeg from mono samples at `rate`, to a file in which it can go back to the header. */
export function encodeFile(pcm: Int16Array, args: readonly string[], rate = RATE): Uint8Array {
  return encodeFiles(pcm, [args], rate)[0] ?? new Uint8Array(0);
}

/** A file for each of these arguments, by one process: starting it takes longer than most files. */
export function encodeFiles(
  pcm: Int16Array,
  argsOfFiles: readonly (readonly string[])[],
  rate = RATE,
): Uint8Array[] {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-test-"));
  try {
    const paths = argsOfFiles.map((_, index) => join(folder, `audio-${index}`));
    const input = ["-v", "error", "-f", "s16le", "-ar", String(rate), "-ac", "1", "-i", "pipe:0"];
    const outputs = argsOfFiles.flatMap((args, index) => [...args, paths[index] ?? ""]);
    const bytes = new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength);
    const { stderr, status } = run("ffmpeg", [...input, ...outputs], bytes);
    if (status !== 0) throw new Error(`ffmpeg: ${stderr}`);
    return paths.map((path) => new Uint8Array(readFileSync(path)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Pieces of changing sizes, as a connection gives them. */
export function fileOf(bytes: Uint8Array, pieceBytes = 5000): { read(): AsyncIterable<Uint8Array> } {
  return {
    async *read() {
      for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
    },
  };
}
