/** Reads an answer of messages on a socket: each piece is one of them, JSON that may carry audio under one key. */
import type { BodyReader } from "../transport/speech-stream.ts";
import { type JsonObject, readAudioLine, truncated } from "./json-values.ts";

export interface MessageReaderOptions {
  /** See audioKey. */
  readonly key: Buffer;
  /** `audio`: what stood under the key; null where nothing did. Returns whether it was the last one. May throw. */
  readonly onMessage: (value: JsonObject, audio: Buffer | null) => boolean;
  /** The service may close the socket in the place of its last message. */
  readonly mayJustClose?: boolean;
}

export function messageReader({ key, onMessage, mayJustClose = false }: MessageReaderOptions): BodyReader {
  let isComplete = false;
  return {
    get isComplete() {
      return isComplete;
    },
    push: (piece) => {
      if (isComplete) return;
      const { value, audio } = readAudioLine(piece, { start: 0, end: piece.length }, key);
      isComplete = onMessage(value, audio);
    },
    end: () => {
      if (!isComplete && !mayJustClose) throw truncated("its last message is missing");
    },
  };
}
