/**
 * The audio rendered last, of whatever utterance, in the upstream's codec. What is heard now may be cut, and go on from the
 * word before; and who comes with a new codec gets what is not heard yet in that.
 *
 *   bytes   |....slice 7|slice 8|slice 9|free....|   a ring: bytes are copied in, so that a slice keeps nothing alive
 *   slices  where each stands on the timeline, and the lengths of its pieces
 */
import type { Slice } from "../source.ts";

/** The ring grows by this: doubling would leave half of it unused in each of a thousand sessions. */
const GRAIN_BYTES = 4096;

export interface PlacedSlice {
  readonly startTicks: number;
  readonly slice: Pick<Slice, "format" | "ticks" | "raw">;
}

interface Entry {
  readonly startTicks: number;
  readonly format: string;
  readonly ticks: number;
  /** Where it begins among all bytes that were rendered. */
  readonly offset: number;
  readonly bytes: number;
  /** Lengths of its pieces; null: it is one piece. Most are, and live just long enough to be old: each object less counts. */
  readonly lengths: readonly number[] | null;
}

export class RecentAudio {
  readonly #maxBytes: number;
  #entries: Entry[] = [];
  #ring = new Uint8Array(0);
  /** Bytes ever rendered. */
  #end = 0;

  /** `maxBytes`: bound on what is kept; beyond it the oldest goes. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(startTicks: number, { format, ticks, raw }: Slice): void {
    const pieces = raw();
    const offset = this.#end;
    let bytes = 0;
    for (const { byteLength } of pieces) bytes += byteLength;
    this.#forgetOver(this.#maxBytes - bytes);
    this.#makeRoom(bytes);
    for (const piece of pieces) this.#append(piece);
    const lengths = pieces.length === 1 ? null : pieces.map(({ byteLength }) => byteLength);
    this.#entries.push({ startTicks, format, ticks, offset, bytes, lengths });
  }

  /** Where the oldest that is kept begins; null where nothing is. */
  get startTicks(): number | null {
    return this.#entries[0]?.startTicks ?? null;
  }

  /** Memory that it takes; what is kept of it is no more than its bound. */
  get bytes(): number {
    return this.#ring.byteLength;
  }

  forgetBefore(ticks: number): void {
    const first = this.#entries.findIndex((entry) => entry.startTicks + entry.ticks > ticks);
    if (first > 0) this.#entries.splice(0, first);
    else if (first < 0 && this.#entries.length > 0) this.#entries = [];
  }

  /** What is kept and ends behind `ticks`, as copies. */
  since(ticks: number): readonly PlacedSlice[] {
    return this.#entries
      .filter((entry) => entry.startTicks + entry.ticks > ticks)
      .map(({ startTicks, format, ticks: length, offset, bytes, lengths }) => {
        let at = offset;
        const pieces = (lengths ?? [bytes]).map((pieceBytes) => {
          at += pieceBytes;
          return this.#copyOf(at - pieceBytes, pieceBytes);
        });
        return { startTicks, slice: { format, ticks: length, raw: () => pieces } };
      });
  }

  /** Gives back memory that what is kept does not need any more. */
  shrink(): void {
    this.#resize(this.#used);
  }

  clear(): void {
    this.#entries = [];
    this.#ring = new Uint8Array(0);
  }

  #append(piece: Uint8Array): void {
    const ring = this.#ring;
    const at = this.#end % ring.byteLength;
    const room = ring.byteLength - at;
    if (piece.byteLength <= room) ring.set(piece, at);
    else {
      ring.set(piece.subarray(0, room), at);
      ring.set(piece.subarray(room), 0);
    }
    this.#end += piece.byteLength;
  }

  #copyOf(offset: number, bytes: number): Uint8Array {
    const ring = this.#ring;
    const at = offset % ring.byteLength;
    const copy = new Uint8Array(bytes);
    copy.set(ring.subarray(at, at + bytes));
    const wrapped = at + bytes - ring.byteLength;
    if (wrapped > 0) copy.set(ring.subarray(0, wrapped), bytes - wrapped);
    return copy;
  }

  /** The oldest, until no more than `bytes` are kept. */
  #forgetOver(bytes: number): void {
    if (this.#used <= bytes) return;
    const first = this.#entries.findIndex((entry) => this.#end - entry.offset <= bytes);
    this.#entries.splice(0, first < 0 ? this.#entries.length : first);
  }

  get #used(): number {
    return this.#end - (this.#entries[0]?.offset ?? this.#end);
  }

  /** So that `bytes` more fit without overwriting what is kept. */
  #makeRoom(bytes: number): void {
    const needed = this.#used + bytes;
    if (needed > this.#ring.byteLength) this.#resize(needed);
  }

  #resize(bytes: number): void {
    const used = this.#used;
    const first = this.#end - used;
    const kept = this.#copyOf(first, used);
    this.#ring = new Uint8Array(Math.ceil(bytes / GRAIN_BYTES) * GRAIN_BYTES);
    // The same bytes stand elsewhere in a ring of another size: they are put in again.
    this.#end = first;
    this.#append(kept);
  }
}
