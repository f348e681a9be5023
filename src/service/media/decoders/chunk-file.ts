/** A file of chunks, whose headers are read whole and whose samples are played as they come: what WAV and AIFF have in common. */
import type { PcmPiece } from "../pieces.ts";
import { type Layout, mix } from "./samples.ts";

/** What the bytes that come next are. */
export type Stage =
  | { readonly name: "header"; readonly bytes: number; readonly read: (view: DataView) => Stage }
  | { readonly name: "skip"; bytes: number; readonly next: Stage }
  | { readonly name: "samples"; bytes: number; readonly layout: Layout }
  | { readonly name: "end" };

export class ChunkFile {
  #held: Uint8Array = new Uint8Array(0);
  #stage: Stage;

  constructor(first: Stage) {
    this.#stage = first;
  }

  push(bytes: Uint8Array): readonly PcmPiece[] {
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    const pieces: PcmPiece[] = [];
    while (this.#step(pieces));
    // A copy: what is left must not hold on to the whole.
    this.#held = new Uint8Array(this.#held);
    return pieces;
  }

  close(): void {
    this.#held = new Uint8Array(0);
    this.#stage = { name: "end" };
  }

  /** False where more bytes are needed. */
  #step(pieces: PcmPiece[]): boolean {
    const stage = this.#stage;
    switch (stage.name) {
      case "header": {
        const { bytes, read } = stage;
        if (this.#held.length < bytes) return false;
        this.#stage = read(new DataView(this.#held.buffer, this.#held.byteOffset, bytes));
        this.#held = this.#held.subarray(bytes);
        return true;
      }
      case "skip": {
        const skipped = Math.min(stage.bytes, this.#held.length);
        this.#held = this.#held.subarray(skipped);
        stage.bytes -= skipped;
        if (stage.bytes > 0) return false;
        this.#stage = stage.next;
        return true;
      }
      case "samples":
        return this.#samples(stage, pieces);
      case "end":
        this.#held = this.#held.subarray(this.#held.length);
        return false;
    }
  }

  #samples(stage: { bytes: number; readonly layout: Layout }, pieces: PcmPiece[]): boolean {
    const { layout } = stage;
    const blockBytes = layout.channels * layout.bytesPerSample;
    const there = Math.min(stage.bytes, this.#held.length);
    const taken = there - (there % blockBytes);
    if (taken > 0) pieces.push(mix(this.#held.subarray(0, taken), layout));
    this.#held = this.#held.subarray(taken);
    stage.bytes -= taken;
    if (stage.bytes >= blockBytes) return false;
    // What follows is about the recording, not of it.
    this.#stage = { name: "end" };
    return true;
  }
}

/** The four letters that name a chunk or a codec. */
export function nameAt(view: DataView, at: number): string {
  return String.fromCharCode(...new Uint8Array(view.buffer, view.byteOffset + at, 4));
}
