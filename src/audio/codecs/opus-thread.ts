/**
 * One worker thread of an Opus pool with the slots it has: hands orders over once per turn of the event loop, gives
 * packets to the streams they are for, and starts another thread when it dies.
 */
import { Worker } from "node:worker_threads";
import { GatewayError } from "../../errors.ts";
import { workerUrl } from "../../kit/worker-url.ts";
import type { OpusRate } from "./opus-codec.ts";
import type { OpusBatch, OpusOrder, OpusReply, OpusWorkerSetup } from "./opus-messages.ts";

/** A thread's view of a stream: one life of a slot. */
export interface SlotHolder {
  readonly generation: number;
  deliver(packets: readonly Uint8Array[]): void;
  fail(error: GatewayError): void;
}

/** A thread that dies this often before it ever was ready has a fault that a new start won't cure. */
const MAX_FAILED_STARTS = 3;

interface Start {
  resolve(): void;
  reject(error: GatewayError): void;
}

export class OpusThread {
  readonly #setup: OpusWorkerSetup;
  readonly #holders: (SlotHolder | null)[];
  readonly #rates: OpusRate[];
  #worker: Worker | null = null;
  #failedStarts = 0;
  #generation = 0;
  #cause: unknown = null;
  #orders: OpusOrder[] = [];
  #pcm: Int16Array[] = [];
  #start: Start | null = null;
  #isClosed = false;

  constructor(setup: OpusWorkerSetup) {
    this.#setup = setup;
    this.#holders = setup.rates.map(() => null);
    this.#rates = [...setup.rates];
  }

  /** Resolves when the encoders stand. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#start = { resolve, reject };
      this.#spawn();
    });
  }

  /** Encoders in all. */
  get slots(): number {
    return this.#holders.length;
  }

  get freeSlots(): number {
    if (this.#worker === null) return 0;
    return this.#holders.reduce((total, holder) => total + (holder === null ? 1 : 0), 0);
  }

  /** Whether its thread died and won't be started again. */
  get hasFailed(): boolean {
    return this.#worker === null && !this.#isClosed;
  }

  /** A free slot, one whose encoder has the rate already if there is one; undefined if all are taken. */
  freeSlot(sampleRate: OpusRate): number | undefined {
    if (this.#worker === null) return undefined;
    const suited = this.#holders.findIndex(
      (holder, slot) => holder === null && this.#rates[slot] === sampleRate,
    );
    const slot = suited >= 0 ? suited : this.#holders.indexOf(null);
    return slot >= 0 ? slot : undefined;
  }

  /** The holder's `generation` comes from `nextGeneration`. */
  open(slot: number, holder: SlotHolder, options: { sampleRate: OpusRate; frameSamples: number }): void {
    this.#holders[slot] = holder;
    this.#rates[slot] = options.sampleRate;
    this.#order({ kind: "open", slot, generation: holder.generation, ...options });
  }

  nextGeneration(): number {
    this.#generation = (this.#generation + 1) & 0x7fffffff;
    return this.#generation;
  }

  /** `pcm` is copied. */
  encode(slot: number, pcm: Int16Array): void {
    this.#pcm.push(pcm.slice());
    this.#order({ kind: "encode", slot, samples: pcm.length });
  }

  /** `isBusy`: something of it may still wait to be encoded. */
  free(slot: number, isBusy: boolean): void {
    this.#holders[slot] = null;
    if (isBusy) this.#order({ kind: "drop", slot });
  }

  /** Ends the thread; holders get the error, nothing is delivered any more. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const worker = this.#worker;
    this.#worker = null;
    this.#failHolders(new GatewayError("encoder_failed", "Cannot encode Opus: the pool was closed"));
    await worker?.terminate();
  }

  #spawn(): void {
    const worker = new Worker(workerUrl("./opus-worker.ts", import.meta.url), { workerData: this.#setup });
    worker.on("message", (reply: OpusReply) => this.#workerOnMessage(reply));
    worker.on("error", (cause) => {
      this.#cause = cause;
    });
    worker.on("exit", () => this.#workerOnExit(worker));
    this.#worker = worker;
  }

  #workerOnMessage(reply: OpusReply): void {
    if (this.#isClosed) return;
    if (reply.kind === "ready") {
      this.#failedStarts = 0;
      this.#start?.resolve();
      this.#start = null;
    } else {
      this.#deliver(reply.heads, reply.bytes);
    }
  }

  #workerOnExit(worker: Worker): void {
    if (this.#isClosed || this.#worker !== worker) return;
    this.#failedStarts += 1;
    this.#orders = [];
    this.#pcm = [];
    const reason = this.#cause instanceof Error ? this.#cause.message : "it ended";
    const error = new GatewayError("encoder_failed", `Opus encoder thread failed: ${reason}`, {
      cause: this.#cause,
    });
    this.#cause = null;
    this.#worker = null;
    if (this.#start !== null) {
      this.#start.reject(error);
      this.#start = null;
      return;
    }
    // The new thread stands before holders hear of it: what they ask for in return can be given.
    this.#setup.rates.forEach((rate, slot) => {
      this.#rates[slot] = rate;
    });
    if (this.#failedStarts <= MAX_FAILED_STARTS) this.#spawn();
    this.#failHolders(error);
  }

  #failHolders(error: GatewayError): void {
    const holders = this.#holders.splice(0, this.#holders.length, ...this.#holders.map(() => null));
    for (const holder of holders) holder?.fail(error);
  }

  /** Streams are many and push in the same turn: one message for all of them. */
  #order(order: OpusOrder): void {
    if (this.#worker === null) return;
    this.#orders.push(order);
    if (this.#orders.length === 1) queueMicrotask(() => this.#send());
  }

  #send(): void {
    if (this.#worker === null || this.#orders.length === 0) return;
    const pcm = new Int16Array(this.#pcm.reduce((total, piece) => total + piece.length, 0));
    let at = 0;
    for (const piece of this.#pcm) {
      pcm.set(piece, at);
      at += piece.length;
    }
    const batch: OpusBatch = { orders: this.#orders, pcm };
    this.#orders = [];
    this.#pcm = [];
    this.#worker.postMessage(batch, [pcm.buffer]);
  }

  /** Packets of one slot in a row are delivered together; those of an older generation are dropped. */
  #deliver(heads: Int32Array, bytes: Uint8Array): void {
    let at = 0;
    for (let head = 0; head < heads.length; ) {
      const slot = heads[head] ?? 0;
      const generation = heads[head + 1] ?? 0;
      const packets: Uint8Array[] = [];
      for (; heads[head] === slot && heads[head + 1] === generation; head += 3) {
        const end = at + (heads[head + 2] ?? 0);
        packets.push(bytes.subarray(at, end));
        at = end;
      }
      const holder = this.#holders[slot];
      if (holder?.generation === generation) holder.deliver(packets);
    }
  }
}
