/**
 * What two nodes say to each other. Messages are numbered. Where one is missing, or the bus was lost, every connection of the
 * link ends with an error that its client can come back from, and the next generation of the link begins: `resume` then gives
 * what was missed. Nothing is sent again here. Both nodes are in one generation. The newer one holds where something was said in
 * it, and what comes of an older one belongs to connections that are over.
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
  /** Default 0: the two have never met. */
  readonly generation?: number;
  /** All of its connections are over. */
  readonly onLost: (error: GatewayError) => void;
}

export type ConnectionRecord = Exclude<RelayRecord, { readonly kind: "taken" }>;

/** What waits to be written and is not taken by the bus at the end of a turn would grow without end. */
const MAX_UNTAKEN_WINDOWS = 4;

export class RelayLink {
  readonly #options: RelayLinkOptions;
  readonly #writer = new RelayWriter();
  #generation: number;
  /** The number that the next message gets. */
  #number = 0;
  #flushing: NodeJS.Immediate | null = null;
  #sentBytes = 0;
  #takenBytes = 0;
  #wasFull = false;
  /** The batch of the last record; null: it was none. */
  #batch: { readonly items: readonly RelayDelivery[]; readonly offsets: OffsetUnit } | null = null;
  /** What has come of the other's messages. */
  #heard = { number: 0, bytes: 0, reportedBytes: 0 };
  /** Messages that the other has sent without knowing of this generation. */
  #oldMessages = 0;
  /** Nothing has left since it was looked last. */
  #isSilent = false;
  #isClosed = false;

  constructor(options: RelayLinkOptions) {
    this.#options = options;
    this.#generation = options.generation ?? 0;
  }

  get generation(): number {
    return this.#generation;
  }

  /** So much is under way, or waits for the end of the turn, that listeners have to wait, and clients with what they say. */
  get isFull(): boolean {
    return this.#untakenBytes > this.#options.windowBytes / 2;
  }

  /** Who says something all the same is refused: nobody who sends without end ends the connections of others. */
  get isOverfull(): boolean {
    return this.#untakenBytes > this.#options.windowBytes;
  }

  /** Nobody has said anything in this generation. */
  get #isUnused(): boolean {
    return this.#number + this.#heard.number + this.#writer.length === 0;
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
  read({ generation, number, records }: RelayMessage, length: number): void {
    if (this.#isClosed) return;
    if (generation < this.#generation && !(this.#isUnused && number === 0)) {
      this.#oldHeard();
      return;
    }
    if (generation !== this.#generation) this.#begin(generation, relayLost("the other node began again"));
    const heard = this.#heard;
    if (heard.number !== number) {
      this.lose(relayLost(`message ${heard.number} is missing`));
      return;
    }
    heard.number += 1;
    heard.bytes += length;
    for (const record of records) {
      this.#take(record);
      // A listener may have ended it.
      if (this.#heard !== heard) return;
    }
    if (heard.bytes - heard.reportedBytes < this.#options.windowBytes / 8) return;
    heard.reportedBytes = heard.bytes;
    this.write((writer) => writer.taken(heard.bytes));
  }

  /** Every connection is over, and the next generation begins. */
  lose(error: GatewayError): void {
    if (this.#isClosed) return;
    this.#begin(this.#generation + 1, error);
    this.#send();
  }

  /**
   * Called from time to time. Where nothing has left since then, the number of the next message does alone: by it the other sees
   * whether the last one is missing, and otherwise would not until somebody speaks. Without clients it is said once in a
   * generation, as the other may have some of before.
   */
  breakSilence(hasClients: boolean): void {
    if (this.#isClosed) return;
    if (this.#isSilent && (hasClients || this.#number === 0)) this.#send();
    this.#isSilent = true;
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
    if (record.kind === "taken") {
      this.#takenBytes = Math.max(this.#takenBytes, Math.min(record.bytes, this.#sentBytes));
      if (!this.#wasFull || this.#untakenBytes > this.#options.windowBytes / 4) return;
      this.#wasFull = false;
      this.#options.onRoom();
    } else {
      this.#options.onRecord(record);
    }
  }

  /** It is under way when the other begins this generation; or the other has not heard of that, as its announcement was lost. */
  #oldHeard(): void {
    this.#oldMessages += 1;
    const isTold = this.#number > 0 && !Number.isInteger(Math.log2(this.#oldMessages));
    if (!isTold) this.#send();
  }

  #begin(generation: number, error: GatewayError): void {
    this.#generation = generation;
    this.#number = 0;
    this.#sentBytes = 0;
    this.#takenBytes = 0;
    this.#wasFull = false;
    this.#batch = null;
    this.#writer.clear();
    this.#heard = { number: 0, bytes: 0, reportedBytes: 0 };
    this.#oldMessages = 0;
    this.#options.onLost(error);
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
    if (this.#writer.length > 0) this.#send();
  }

  /** What waits. Without any of that it is the generation alone: where the bus does not take it, a later message has it. */
  #send(): void {
    if (this.#flushing !== null) clearImmediate(this.#flushing);
    this.#flushing = null;
    this.#batch = null;
    const { from, publish } = this.#options;
    const isEmpty = this.#writer.length === 0;
    const bytes = this.#writer.take({ from, generation: this.#generation, number: this.#number });
    try {
      publish(bytes);
    } catch (thrown) {
      if (!isEmpty) this.#begin(this.#generation + 1, toGatewayError(thrown));
      return;
    }
    this.#number += 1;
    this.#isSilent = false;
    this.#sentBytes += bytes.length;
  }
}

export function relayLost(why: string): GatewayError {
  return new GatewayError("bus_lost", `Connection to the session's node is lost: ${why}`, {
    retryAfterMs: 500,
  });
}
