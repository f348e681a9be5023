/** What an Opus pool and its worker threads say to each other. */
import type { OpusRate } from "./opus-codec.ts";

/** A worker's `workerData`. */
export interface OpusWorkerSetup {
  /** Encoders to make at once; the worker never has more. */
  readonly rates: readonly OpusRate[];
  readonly bitrateKbps: number;
  readonly complexity: number;
}

/**
 * In order. `generation` names one life of a slot: its packets carry it back, so that what was under way for an
 * older one is dropped.
 */
export type OpusOrder =
  | {
      readonly kind: "open";
      readonly slot: number;
      readonly generation: number;
      readonly sampleRate: OpusRate;
      readonly frameSamples: number;
    }
  /** Nobody waits for what the slot has not encoded yet. */
  | { readonly kind: "drop"; readonly slot: number }
  /** Takes the next `samples` of the batch's `pcm`: whole frames. */
  | { readonly kind: "encode"; readonly slot: number; readonly samples: number };

export interface OpusBatch {
  readonly orders: readonly OpusOrder[];
  /** The samples of all `encode` orders, one behind the other. */
  readonly pcm: Int16Array;
}

export type OpusReply =
  | { readonly kind: "ready" }
  | {
      readonly kind: "packets";
      /** Three numbers a packet: slot, generation, bytes. */
      readonly heads: Int32Array;
      /** The packets, one behind the other. */
      readonly bytes: Uint8Array;
    };
