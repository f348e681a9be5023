/** Ogg Opus uploads, chained streams and pre-skip included, by the reader that the gateway itself uses. */
import { createSourceDecoder } from "../../../audio/containers/source-decoder.ts";
import { GatewayError } from "../../../errors.ts";
import type { PcmPiece } from "../pieces.ts";
import { invalidAudio, type UploadDecoder } from "./decoder.ts";

/** The bit rate in the name is of no matter to a decoder. */
const FORMAT = "opus_48000_64";

export function createOggOpusUpload(): UploadDecoder {
  const decoder = createSourceDecoder(FORMAT);
  const attempt = (decode: () => Int16Array): readonly PcmPiece[] => {
    try {
      return [{ pcm: decode(), sampleRate: decoder.sampleRate }];
    } catch (thrown) {
      // "encoder_failed": as many decoders are open as may be, which is not the file's fault.
      if (!(thrown instanceof GatewayError) || thrown.code !== "upstream_protocol") throw thrown;
      throw invalidAudio("the Ogg Opus stream is broken or cut off");
    }
  };
  return {
    push: async (bytes) => attempt(() => decoder.push(bytes)),
    finish: async () =>
      attempt(() => {
        decoder.finish();
        return new Int16Array(0);
      }),
    close: () => decoder.close(),
  };
}
