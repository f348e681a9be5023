/** Reads bodies of JSON lines or server-sent events, each of which may carry audio under one key. */
import { JsonLines } from "../parse/json-lines.ts";
import type { BodyReader } from "../transport/speech-stream.ts";
import { type JsonObject, readAudioLine } from "./json-values.ts";

export interface LineReaderOptions {
  /** See audioKey. */
  readonly key: Buffer;
  /** `audio`: what stood under the key; null where nothing did. May throw. */
  readonly onLine: (value: JsonObject, audio: Buffer | null) => void;
  /** The body has ended. Throws where it ended too early. */
  readonly onEnd?: () => void;
}

export function lineReader({ key, onLine, onEnd }: LineReaderOptions): BodyReader {
  const lines = new JsonLines({
    onLine: (bytes, start, end) => {
      const { value, audio } = readAudioLine(bytes, { start, end }, key);
      onLine(value, audio);
    },
  });
  return {
    push: (piece) => lines.push(piece),
    end: () => {
      lines.flush();
      onEnd?.();
    },
  };
}
