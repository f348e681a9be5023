/**
 * One node's side of what it says to another. Messages are numbered. Where one is missing, or the bus was lost, every
 * connection of the link ends with an error that its client can come back from, and a new link begins: `resume` then gives
 * what was missed. Nothing is sent again here.
 *
 *   records --> writer --end of this turn, or half a message--> bus.publish
 *   taken   <-- each eighth of the window that the other has read; beyond the window listeners count as slow
 */
import { ERRORS, GatewayError, toGatewayError } from "../../errors.ts";
import type { OffsetUnit } from "../../protocol/vocabulary.ts";
import {
  deliverLength,
  HEAD_BYTES,
  messageLength,
  type RelayDelivery,
  type RelayItem,
  type RelayMessage,
  type RelayRecord,
  RelayWriter,
} from "./relay-format.ts";

export interface RelayLinkOptions {
  /** This process. */
  readonly from: string;
  /** Sends one message to the other node. Throws bus_lost, bus_full. */
  readonly publish: (bytes: Uint8Array) => void;
  readonly maxMessageBytes: number;
  /** Bytes that may be under way. */
  readonly windowBytes: number;
  /** A record that is about a connection. */
  readonly onRecord: (record: ConnectionRecord) => void;
  /** The other has read on: who was slow because of the link may go on. */
  readonly onRoom: () => void;
  /** All of its connections are over. A new link begins when the next record is written. */
  readonly onLost: (error: GatewayError) => void;
}

export type ConnectionRecord = Exclude<RelayRecord, { readonly kind: "taken" | "reset" }>;

/** What waits to be written and is not taken by the bus at the end of a turn would grow without end. */
const MAX_UNTAKEN_WINDOWS = 4;

export class RelayLink {
  readonly #options: RelayLinkOptions;
  readonly #writer = new RelayWriter();
  #id = 0;
  #number = 0;
  #flushing: NodeJS.Immediate | null = null;
  #sentBytes = 0;
  #takenBytes = 0;
  #wasFull = false;
  /** The batch of the last record; null: it was none. */
  #batch: { readonly items: readonly RelayDelivery[]; readonly offsets: OffsetUnit } | null = null;
  /** The other's link; null: nothing has come yet. */
  #other: { readonly id: number; number: number; readBytes: number; reportedBytes: number } | null = null;
  #isClosed = false;

  constructor(options: RelayLinkOptions) {
    this.#options = options;
    this.#id = newLinkId();
  }

  /** So much is under way, or waits for the end of the turn, that listeners have to wait, and clients with what they say. */
  get isFull(): boolean {
    return this.#untakenBytes > this.#options.windowBytes / 2;
  }

  /** Who says something all the same is refused: nobody who sends without end ends the connections of others. */
  get isOverfull(): boolean {
    return this.#untakenBytes > this.#options.windowBytes;
  }

  get #untakenBytes(): number {
    return this.#sentBytes - this.#takenBytes + this.#writer.length;
  }

  /** Writes one record; it leaves at the end of the turn. */
  write(record: (writer: RelayWriter) => void): void {
    if (this.#isClosed) return;
    record(this.#writer);
    this.#batch = null;
    this.#written();
  }

  /** What a client has said. False: it is larger than the bus takes. */
  message(connection: number, item: RelayItem): boolean {
    const bytes = messageLength(item);
    if (!this.#fits(bytes)) return false;
    this.#makeRoom(bytes);
    this.write((writer) => writer.message(connection, item));
    return true;
  }

  /** The same batch for another connection right behind the first costs four bytes. */
  deliver(connection: number, items: readonly RelayDelivery[], offsets: OffsetUnit): void {
    if (this.#isClosed) return;
    if (this.#batch?.items === items && this.#batch.offsets === offsets) {
      this.#writer.deliverAlso(connection);
      this.#written();
      return;
    }
    const bytes = deliverLength(items, offsets);
    if (items.length > 1 && bytes > this.#options.maxMessageBytes / 2) {
      const half = items.length >> 1;
      this.deliver(connection, items.slice(0, half), offsets);
      this.deliver(connection, items.slice(half), offsets);
      return;
    }
    if (!this.#fits(bytes)) {
      // Its listener would miss it: that one ends, and no other of the link.
      const { closeCode } = ERRORS.bus_too_large;
      this.write((writer) => writer.end(connection, closeCode, "bus_too_large"));
      return;
    }
    this.#makeRoom(bytes);
    this.#writer.deliver(connection, items, offsets);
    this.#batch = { items, offsets };
    this.#written();
  }

  /** A message has come. */
  read({ link, number, records }: RelayMessage, length: number): void {
    if (this.#isClosed) return;
    if (this.#other?.id !== link && !this.#follow(link, number)) return;
    const other = this.#other;
    if (other === null) return;
    if (other.number !== number) {
      this.#other = null;
      this.#reset(link, `message ${other.number} is missing`);
      return;
    }
    other.number += 1;
    other.readBytes += length;
    for (const record of records) {
      this.#take(record);
      // A listener may have ended it.
      if (this.#other !== other) return;
    }
    if (other.readBytes - other.reportedBytes < this.#options.windowBytes / 8) return;
    other.reportedBytes = other.readBytes;
    this.write((writer) => writer.taken(other.readBytes));
  }

  /** Every connection is over; the next record begins a new link. */
  lose(error: GatewayError): void {
    if (this.#isClosed) return;
    this.#begin();
    this.#other = null;
    this.#options.onLost(error);
  }

  /** Sends what waits, now. */
  flush(): void {
    if (!this.#isClosed) this.#flush();
  }

  /** What waits is not sent. Idempotent. */
  close(): void {
    this.#isClosed = true;
    if (this.#flushing !== null) clearImmediate(this.#flushing);
  }

  #fits(recordBytes: number): boolean {
    return HEAD_BYTES + recordBytes <= this.#options.maxMessageBytes;
  }

  /** A record that is larger than half a message may not fit behind what waits. */
  #makeRoom(recordBytes: number): void {
    if (!this.#fits(this.#writer.length + recordBytes)) this.#flush();
  }

  #take(record: RelayRecord): void {
    if (record.kind === "reset") {
      if (record.link === this.#id) this.lose(relayLost("the other node misses a message"));
    } else if (record.kind === "taken") {
      this.#takenBytes = Math.max(this.#takenBytes, Math.min(record.bytes, this.#sentBytes));
      if (!this.#wasFull || this.#untakenBytes > this.#options.windowBytes / 4) return;
      this.#wasFull = false;
      this.#options.onRoom();
    } else {
      this.#options.onRecord(record);
    }
  }

  /** The other has begun a link: what stood on its former one is over. */
  #follow(link: number, number: number): boolean {
    if (number !== 0) {
      this.#reset(link, "the link is unknown");
      return false;
    }
    if (this.#other !== null) this.lose(relayLost("the other node began again"));
    this.#other = { id: link, number: 0, readBytes: 0, reportedBytes: 0 };
    return true;
  }

  #reset(link: number, why: string): void {
    this.lose(relayLost(why));
    this.write((writer) => writer.reset(link));
  }

  #begin(): void {
    this.#id = newLinkId();
    this.#number = 0;
    this.#sentBytes = 0;
    this.#takenBytes = 0;
    this.#wasFull = false;
    this.#batch = null;
    this.#writer.clear();
  }

  #written(): void {
    const { maxMessageBytes, windowBytes } = this.#options;
    if (this.isFull) this.#wasFull = true;
    if (this.#writer.length > maxMessageBytes / 2) this.#flush();
    else this.#flushing ??= setImmediate(() => this.#flush());
    if (this.#untakenBytes <= MAX_UNTAKEN_WINDOWS * windowBytes) return;
    this.lose(
      new GatewayError("bus_full", "More waits for another node than the gateway keeps", {
        retryAfterMs: 1000,
      }),
    );
  }

  #flush(): void {
    if (this.#flushing !== null) clearImmediate(this.#flushing);
    this.#flushing = null;
    this.#batch = null;
    if (this.#writer.length === 0) return;
    const bytes = this.#writer.take({ from: this.#options.from, link: this.#id, number: this.#number });
    this.#number += 1;
    this.#sentBytes += bytes.length;
    try {
      this.#options.publish(bytes);
    } catch (thrown) {
      this.lose(toGatewayError(thrown));
    }
  }
}

export function relayLost(why: string): GatewayError {
  return new GatewayError("bus_lost", `Connection to the session's node is lost: ${why}`, {
    retryAfterMs: 500,
  });
}

/** Another one than before, also where the process has begun anew. */
function newLinkId(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
}
