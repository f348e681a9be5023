/** The records of a `with-timestamps` stream, a line each. */
import type { SynthesisChunk } from "../types.ts";
import { JsonLines, type JsonLinesOptions } from "./json-lines.ts";
import { readRecord } from "./record.ts";

export interface NdjsonOptions extends Omit<JsonLinesOptions, "onLine"> {
  /** Called for each record, in order, from within `push` and `flush`. */
  readonly onRecord: (record: SynthesisChunk) => void;
}

export class NdjsonParser {
  readonly #lines: JsonLines;

  constructor({ onRecord, ...options }: NdjsonOptions) {
    this.#lines = new JsonLines({
      ...options,
      onLine: (bytes, start, end) => onRecord(readRecord(bytes, { start, end })),
    });
  }

  /** As JsonLines.push. */
  push(piece: Buffer): void {
    this.#lines.push(piece);
  }

  /** As JsonLines.flush. */
  flush(): void {
    this.#lines.flush();
  }
}
