/** What a connection was sent, as a recording has it: how much, which events, and a hash of all of it. */
import { createHash } from "node:crypto";
import type { Delivery } from "../delivery/listener.ts";
import type { OffsetUnit } from "../protocol/vocabulary.ts";
import type { Json } from "./json.ts";

/** Events that are remembered to be in the recording: more than a session keeps to send. */
const KNOWN_EVENTS = 4096;
const HASH_CHARS = 16;
const DECODER = new TextDecoder();

export interface Delivered {
  readonly frames: number;
  readonly bytes: number;
  /** Numbers of its events. */
  readonly seqs: readonly number[];
  readonly hash: string;
  /** JSON of those that nobody was sent before. */
  readonly events: readonly string[];
}

export class Deliveries {
  readonly #known = new Set<number>();
  /** What was sent last: others get the same in the same moment. */
  #last: {
    readonly batch: readonly Delivery[];
    readonly offsets: OffsetUnit;
    readonly as: Delivered;
  } | null = null;

  of(batch: readonly Delivery[], offsets: OffsetUnit): Delivered {
    const last = this.#last;
    if (last?.batch === batch && last.offsets === offsets) return { ...last.as, events: [] };
    const as = this.#describe(batch, offsets);
    this.#last = { batch, offsets, as };
    return as;
  }

  #describe(batch: readonly Delivery[], offsets: OffsetUnit): Delivered {
    const hash = createHash("sha256");
    const seqs: number[] = [];
    const events: string[] = [];
    let [frames, bytes] = [0, 0];
    for (const item of batch) {
      if (item instanceof Uint8Array) {
        hash.update(item);
        frames += 1;
        bytes += item.byteLength;
        continue;
      }
      const json = item.json(offsets);
      hash.update(json);
      seqs.push(item.seq);
      if (this.#isNew(item.seq)) events.push(DECODER.decode(json));
    }
    return { frames, bytes, seqs, hash: hash.digest("base64url").slice(0, HASH_CHARS), events };
  }

  #isNew(seq: number): boolean {
    if (this.#known.has(seq)) return false;
    this.#known.add(seq);
    if (this.#known.size > KNOWN_EVENTS) {
      // Sets keep their order: the oldest half goes.
      let left = KNOWN_EVENTS / 2;
      for (const old of this.#known) {
        if (left === 0) break;
        this.#known.delete(old);
        left -= 1;
      }
    }
    return true;
  }
}

/** As it stands in a line: connection, frames, bytes, numbers of events, hash, new events. */
export function deliveredJson(connection: number, { frames, bytes, seqs, hash, events }: Delivered): Json[] {
  return [connection, frames, bytes, seqs, hash, ...(events.length === 0 ? [] : [events])];
}
