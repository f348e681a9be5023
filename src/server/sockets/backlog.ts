/** Messages that wait, in their order, as bytes: the server library lends each of them for one call only. */

/** What a message is read from: lent by the server library, or a view of a backlog. Good for one call only. */
export type Bytes = ArrayBuffer | Uint8Array;

interface WaitingMessage {
  readonly bytes: Uint8Array;
  readonly isBinary: boolean;
}

/** A hundred thousand small messages share a few blocks: an object for each of them would cost more than its bytes. */
const BLOCK_BYTES = 65_536;
/** In front of each message: its length, and whether it is binary in the lowest bit. */
const HEAD_BYTES = 4;

interface Block {
  readonly bytes: Buffer;
  /** Where the first message that waits begins, and where the last one ends. */
  from: number;
  to: number;
}

export class Backlog {
  /** All but the last hold a message that waits. */
  readonly #blocks: Block[] = [];
  #bytes = 0;

  /** Bytes of all that waits, with four for each message. */
  get bytes(): number {
    return this.#bytes;
  }

  /** What a message takes of the bound, bytes. */
  static sizeOf(message: Bytes): number {
    return HEAD_BYTES + message.byteLength;
  }

  /** Copies a message behind the others. */
  push(message: Bytes, isBinary: boolean): void {
    const size = Backlog.sizeOf(message);
    const block = this.#blockFor(size);
    block.bytes.writeUInt32LE(message.byteLength * 2 + (isBinary ? 1 : 0), block.to);
    // A view of a view would cost another object.
    block.bytes.set(message instanceof Uint8Array ? message : new Uint8Array(message), block.to + HEAD_BYTES);
    block.to += size;
    this.#bytes += size;
  }

  /** Takes the first one; null: none waits. */
  shift(): WaitingMessage | null {
    const block = this.#blocks[0];
    if (block === undefined) return null;
    const head = block.bytes.readUInt32LE(block.from);
    const start = block.from + HEAD_BYTES;
    const end = start + Math.floor(head / 2);
    this.#bytes -= end - block.from;
    block.from = end;
    // The block lives on in the view until that was read.
    if (block.from === block.to) this.#blocks.shift();
    return { bytes: block.bytes.subarray(start, end), isBinary: head % 2 === 1 };
  }

  #blockFor(size: number): Block {
    const last = this.#blocks.at(-1);
    if (last !== undefined && last.to + size <= last.bytes.length) return last;
    const block = { bytes: Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, size)), from: 0, to: 0 };
    this.#blocks.push(block);
    return block;
  }
}
