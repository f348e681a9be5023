/** The one file of the service that touches mpg123-decoder: MP3 in, samples out, piece by piece. */
import { MPEGDecoder } from "mpg123-decoder";
import { type PcmPiece, type PieceDecoder, toInt16 } from "./pieces.ts";

/** Rejects where WebAssembly can't be started. Free it with `close`. */
export async function createMp3Decoder(): Promise<PieceDecoder> {
  const decoder = new MPEGDecoder({ enableGapless: true });
  await decoder.ready;
  let isClosed = false;
  const push = (bytes: Uint8Array): PcmPiece => {
    const { channelData, samplesDecoded, sampleRate } = decoder.decode(bytes);
    return { pcm: toInt16(channelData, samplesDecoded), sampleRate };
  };
  return {
    push,
    finish: () => ({ pcm: new Int16Array(0), sampleRate: 0 }),
    close: () => {
      if (!isClosed) decoder.free();
      isClosed = true;
    },
  };
}
