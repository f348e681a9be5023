/** MP3 uploads: the frames themselves are found and decoded by mpg123, which also leaves the encoder's padding out. */
import { createMp3Decoder } from "../mp3-decoder.ts";
import type { PcmPiece, PieceDecoder } from "../pieces.ts";
import { requireRate, type UploadDecoder } from "./decoder.ts";

/** Rejects where WebAssembly can't be started. */
export async function createMp3Upload(): Promise<UploadDecoder> {
  const decoder: PieceDecoder = await createMp3Decoder();
  const sound = (piece: PcmPiece): readonly PcmPiece[] => {
    if (piece.pcm.length === 0) return [];
    requireRate(piece.sampleRate);
    return [piece];
  };
  return {
    push: async (bytes) => sound(decoder.push(bytes)),
    finish: async () => sound(decoder.finish()),
    close: () => decoder.close(),
  };
}
