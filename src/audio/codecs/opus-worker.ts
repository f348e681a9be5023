/**
 * A worker thread that encodes Opus for an OpusPool. Slots take turns of a few frames, and orders are read between
 * the turns: a long push delays nobody else, and it stops where nobody waits for it. Any fault ends the thread; the pool starts another.
 */
import { parentPort, workerData } from "node:worker_threads";
import { OpusEncoder } from "./opus-encoder.ts";
import type { OpusBatch, OpusOrder, OpusReply, OpusWorkerSetup } from "./opus-messages.ts";

/** Frames that a slot encodes before it is the next one's turn: 100 ms of audio in about 0.5 ms. */
const FRAMES_A_TURN = 5;
/** Frames after which packets are sent and orders are read: about 3 ms. */
const FRAMES_A_REPLY = 25;

interface Slot {
  encoder: OpusEncoder;
  generation: number;
  frameSamples: number;
  /** Samples to encode, oldest first; bounded by the pool's limit of frames in flight. */
  readonly waiting: Int16Array[];
}

interface Packet {
  readonly slot: number;
  readonly generation: number;
  readonly bytes: Uint8Array;
}

class EncoderThread {
  readonly #setup: OpusWorkerSetup;
  readonly #post: (reply: OpusReply, transfer: ArrayBuffer[]) => void;
  readonly #slots: readonly Slot[];
  /** Slots with samples to encode; the first one is next. */
  readonly #busy = new Set<number>();
  #isRoundDue = false;

  constructor(setup: OpusWorkerSetup, post: (reply: OpusReply, transfer: ArrayBuffer[]) => void) {
    this.#setup = setup;
    this.#post = post;
    this.#slots = setup.rates.map((sampleRate) => ({
      encoder: new OpusEncoder({ ...setup, sampleRate }),
      generation: 0,
      frameSamples: sampleRate / 50,
      waiting: [],
    }));
  }

  take(batch: OpusBatch): void {
    let at = 0;
    for (const order of batch.orders) {
      if (order.kind === "encode") {
        this.#slot(order.slot).waiting.push(batch.pcm.subarray(at, at + order.samples));
        this.#busy.add(order.slot);
        at += order.samples;
      } else {
        this.#drop(order.slot);
        if (order.kind === "open") this.#open(order);
      }
    }
    if (!this.#isRoundDue) this.#round();
  }

  #slot(index: number): Slot {
    const slot = this.#slots[index];
    if (slot === undefined) throw new RangeError(`Cannot encode: slot is ${index} of ${this.#slots.length}`);
    return slot;
  }

  #drop(slot: number): void {
    this.#slot(slot).waiting.length = 0;
    this.#busy.delete(slot);
  }

  #open(order: Extract<OpusOrder, { kind: "open" }>): void {
    const slot = this.#slot(order.slot);
    slot.generation = order.generation;
    slot.frameSamples = order.frameSamples;
    if (slot.encoder.sampleRate === order.sampleRate) slot.encoder.reset();
    else {
      slot.encoder.close();
      slot.encoder = new OpusEncoder({ ...this.#setup, sampleRate: order.sampleRate });
    }
  }

  #round(): void {
    const packets: Packet[] = [];
    for (const index of this.#busy) {
      this.#turn(index, packets);
      if (packets.length >= FRAMES_A_REPLY) break;
    }
    this.#reply(packets);
    this.#isRoundDue = this.#busy.size > 0;
    if (this.#isRoundDue) setImmediate(() => this.#round());
  }

  #turn(index: number, packets: Packet[]): void {
    const slot = this.#slot(index);
    for (let left = FRAMES_A_TURN; left > 0; left -= 1) {
      const pcm = slot.waiting[0];
      if (pcm === undefined) break;
      const frame = pcm.subarray(0, slot.frameSamples);
      packets.push({ slot: index, generation: slot.generation, bytes: slot.encoder.encode(frame) });
      if (pcm.length > slot.frameSamples) slot.waiting[0] = pcm.subarray(slot.frameSamples);
      else slot.waiting.shift();
    }
    // To the end of the queue, or out of it.
    this.#busy.delete(index);
    if (slot.waiting.length > 0) this.#busy.add(index);
  }

  #reply(packets: readonly Packet[]): void {
    if (packets.length === 0) return;
    const heads = new Int32Array(packets.length * 3);
    const bytes = new Uint8Array(packets.reduce((total, packet) => total + packet.bytes.length, 0));
    let at = 0;
    for (const [index, packet] of packets.entries()) {
      heads.set([packet.slot, packet.generation, packet.bytes.length], index * 3);
      bytes.set(packet.bytes, at);
      at += packet.bytes.length;
    }
    this.#post({ kind: "packets", heads, bytes }, [heads.buffer, bytes.buffer]);
  }
}

const port = parentPort;
if (port === null)
  throw new Error("Cannot run: opus-worker was started as a program, expected a worker thread");
const thread = new EncoderThread(workerData, (reply, transfer) => port.postMessage(reply, transfer));
port.on("message", (batch: OpusBatch) => thread.take(batch));
port.postMessage({ kind: "ready" } satisfies OpusReply);
