/**
 * MP4 and M4A files in the order of a stream: many writers put the index ("moov") behind the sound ("mdat"), and a decoder
 * that is fed through a pipe needs it first. The file is read twice then; any other file goes through as it is.
 */
import { isMp4 } from "./decoders/sniff.ts";

/** What may stand before the index or the sound. */
const MAX_FRONT_BYTES = 65_536;
/** An hour of AAC has 0.7 MB. */
const MAX_INDEX_BYTES = 16_777_216;
const BOX_HEADER_BYTES = 8;
const LONG_BOX_HEADER_BYTES = 16;

interface Readable {
  /** From the start, each time it is called. */
  read(): AsyncIterable<Uint8Array>;
}

/** The bytes of the file. One whose index comes first, and one that is no MP4, is read once. */
export async function* inStreamOrder(file: Readable): AsyncGenerator<Uint8Array> {
  const source = file.read()[Symbol.asyncIterator]();
  let isEnded = false;
  const next = async (): Promise<Uint8Array | null> => {
    const step = await source.next();
    isEnded = step.done === true;
    return step.done === true ? null : step.value;
  };
  try {
    let front: Uint8Array = new Uint8Array(0);
    let order: Order = "unknown";
    for (let bytes = await next(); bytes !== null; bytes = await next()) {
      front = front.length === 0 ? bytes : Buffer.concat([front, bytes]);
      order = orderOf(front);
      if (order !== "unknown") break;
    }
    if (order === "unknown" || order === "as it is") {
      yield front;
      for (let bytes = isEnded ? null : await next(); bytes !== null; bytes = await next()) yield bytes;
      return;
    }
    const scan = new IndexScan();
    scan.push(front);
    for (let bytes = await next(); bytes !== null && !scan.isOver; bytes = await next()) scan.push(bytes);
    yield* reordered(file.read(), scan.found, order.soundAt);
  } finally {
    if (!isEnded) await source.return?.();
  }
}

/** `soundAt`: byte at which the sound begins, before any index. */
type Order = "unknown" | "as it is" | { readonly soundAt: number };

function orderOf(front: Uint8Array): Order {
  if (front.length < BOX_HEADER_BYTES) return "unknown";
  if (!isMp4(front)) return "as it is";
  for (let at = 0; at < MAX_FRONT_BYTES; ) {
    const box = boxAt(front, at);
    if (box === null) return front.length > MAX_FRONT_BYTES ? "as it is" : "unknown";
    if (box.name === "mdat") return Number.isFinite(box.size) ? { soundAt: at } : "as it is";
    if (box.name === "moov" || box.name === "moof" || !Number.isFinite(box.size)) return "as it is";
    at += box.size;
  }
  return "as it is";
}

interface Box {
  readonly name: string;
  /** With its header; Infinity: up to the end of the file. */
  readonly size: number;
  readonly headerBytes: number;
}

/** null where its header is not there yet. A size that no box can have counts as one up to the end. */
function boxAt(bytes: Uint8Array, at: number): Box | null {
  if (bytes.length < at + BOX_HEADER_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, bytes.length - at);
  const name = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
  const size = view.getUint32(0);
  if (size !== 1) {
    return { name, size: size < BOX_HEADER_BYTES ? Infinity : size, headerBytes: BOX_HEADER_BYTES };
  }
  if (view.byteLength < LONG_BOX_HEADER_BYTES) return null;
  const long = Number(view.getBigUint64(8));
  const isSane = Number.isSafeInteger(long) && long >= LONG_BOX_HEADER_BYTES;
  return { name, size: isSane ? long : Infinity, headerBytes: LONG_BOX_HEADER_BYTES };
}

interface Index {
  /** Byte of the file at which it stands. */
  readonly at: number;
  readonly bytes: Uint8Array;
}

/** Passes over the boxes of a file up to its index, and holds no other. */
class IndexScan {
  #held: Uint8Array = new Uint8Array(0);
  /** Byte of the file at which `held` begins. */
  #at = 0;
  #toSkip = 0;
  #found: Index | null = null;
  #isOver = false;

  get isOver(): boolean {
    return this.#isOver;
  }

  /** null where there is none. */
  get found(): Index | null {
    return this.#found;
  }

  push(bytes: Uint8Array): void {
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    while (!this.#isOver && this.#step());
    this.#held = new Uint8Array(this.#held);
  }

  /** False where more bytes are needed. */
  #step(): boolean {
    const skipped = Math.min(this.#toSkip, this.#held.length);
    this.#held = this.#held.subarray(skipped);
    this.#at += skipped;
    this.#toSkip -= skipped;
    const box = this.#toSkip > 0 ? null : boxAt(this.#held, 0);
    if (box === null) return false;
    if (box.name !== "moov") {
      this.#toSkip = box.size;
      return Number.isFinite(box.size);
    }
    this.#isOver = box.size > MAX_INDEX_BYTES;
    if (this.#isOver || this.#held.length < box.size) return false;
    this.#found = { at: this.#at, bytes: new Uint8Array(this.#held.subarray(0, box.size)) };
    this.#isOver = true;
    return false;
  }
}

/** The file with its index in front of the sound. */
async function* reordered(
  source: AsyncIterable<Uint8Array>,
  index: Index | null,
  soundAt: number,
): AsyncGenerator<Uint8Array> {
  if (index !== null) shiftOffsets(index, soundAt);
  const [from, to] = index === null ? [0, 0] : [index.at, index.at + index.bytes.length];
  let at = 0;
  for await (const bytes of source) {
    const end = at + bytes.length;
    const part = (first: number, last: number): Uint8Array =>
      bytes.subarray(Math.max(0, first - at), Math.max(0, Math.min(last, end) - at));
    if (index === null) yield bytes;
    else {
      yield part(at, soundAt);
      if (at <= soundAt && soundAt < end) yield index.bytes;
      yield part(Math.max(at, soundAt), from);
      yield part(Math.max(at, to), end);
    }
    at = end;
  }
}

/** Where the offsets of the sound stand: boxes in boxes. */
const PARENTS: ReadonlySet<string> = new Set(["moov", "trak", "mdia", "minf", "stbl"]);
/** Their header, version, flags and count. */
const TABLE_AT = 16;

/** What stands between the sound's begin and the index moves back by the length of the index. */
function shiftOffsets(index: Index, soundAt: number): void {
  const { bytes } = index;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const moved = (offset: number): number =>
    offset >= soundAt && offset < index.at ? offset + bytes.length : offset;
  for (let at = 0; at < bytes.length; ) {
    const box = boxAt(bytes, at);
    if (box === null) return;
    if (PARENTS.has(box.name)) {
      at += box.headerBytes;
      continue;
    }
    const end = Math.min(bytes.length, at + box.size);
    if (box.name === "stco") {
      for (let entry = at + TABLE_AT; entry + 4 <= end; entry += 4) {
        view.setUint32(entry, moved(view.getUint32(entry)));
      }
    }
    if (box.name === "co64") {
      for (let entry = at + TABLE_AT; entry + 8 <= end; entry += 8) {
        view.setBigUint64(entry, BigInt(moved(Number(view.getBigUint64(entry)))));
      }
    }
    at = end;
  }
}
