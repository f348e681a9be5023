/** Packets in, sound out: decoder, playout, loudness and the browser's share of the latency, as one part. */
import { openSpeaker, SilentOut } from "./audio-out.ts";
import { type DecodedBlock, type Decoder, type DecoderKind, openDecoder } from "./decoder.ts";
import { Playout } from "./playout.ts";
import { SoundLatency } from "./sound-latency.ts";
import { WaveHistory } from "./wave-history.ts";

/** Packets that wait while the decoder is being opened: ten seconds of 20 ms. */
const MAX_WAITING = 500;

export class AudioEngine {
  readonly wave = new WaveHistory();
  readonly latency = new SoundLatency();
  readonly #playout = new Playout(new SilentOut());
  #decoder: Decoder | null = null;
  #isWasmForced: boolean;
  #waiting: { packet: Uint8Array; atMs: number }[] = [];
  #isUnlocked = false;
  #unlocking: Promise<void> | null = null;
  decodedBlocks = 0;

  constructor(options: { readonly isWasmForced: boolean }) {
    this.#isWasmForced = options.isWasmForced;
  }

  /** Whether sound can be heard; browsers allow it only after a gesture. */
  get isUnlocked(): boolean {
    return this.#isUnlocked;
  }
  get decoderKind(): DecoderKind | null {
    return this.#decoder?.kind ?? null;
  }
  get positionMs(): number {
    return this.#playout.positionMs;
  }
  get aheadMs(): number {
    return this.#playout.aheadMs;
  }
  get level(): number {
    return this.#playout.level;
  }
  get underruns(): number {
    return this.#playout.underruns;
  }

  /** Opens the decoder; packets that come before it is ready wait. */
  async start(): Promise<void> {
    this.#decoder = await openDecoder(this.#isWasmForced, {
      block: (block) => this.#decoderOnBlock(block),
      failed: () => this.#decoderOnFailed(),
    });
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { packet, atMs } of waiting) this.frame(packet, atMs);
  }

  /** Opens the loudspeaker; call it from a gesture. May be called again. */
  unlock(): Promise<void> {
    if (this.#isUnlocked) return Promise.resolve();
    this.#unlocking ??= this.#openSpeaker();
    return this.#unlocking;
  }

  frame(packet: Uint8Array, atMs: number): void {
    if (this.#decoder === null) {
      this.#waiting.push({ packet, atMs });
      if (this.#waiting.length > MAX_WAITING) this.#waiting.shift();
      return;
    }
    this.#decoder.decode(packet, atMs);
  }

  expectStart(): void {
    this.#playout.expectStart();
  }

  /** Stops the sound at once and forgets all that was to come. */
  silence(): void {
    this.#waiting = [];
    this.#decoder?.reset();
    this.#playout.silence();
  }

  /** Joins another timeline at `atMs`. */
  restart(atMs: number): void {
    this.silence();
    this.#playout.restart(atMs);
    this.wave.clear();
  }

  async #openSpeaker(): Promise<void> {
    const speaker = await openSpeaker().finally(() => {
      this.#unlocking = null;
    });
    if (speaker === null) return;
    this.#playout.use(speaker);
    this.#isUnlocked = true;
  }

  #decoderOnBlock({ samples, atMs }: DecodedBlock): void {
    this.decodedBlocks += 1;
    this.wave.add(samples, atMs);
    const placement = this.#playout.push(samples, atMs);
    if (placement === null) return;
    const endMs = atMs + (samples.length / 48_000) * 1000;
    this.latency.block(endMs, performance.now(), placement.untilPlayedMs);
  }

  #decoderOnFailed(): void {
    if (this.#decoder === null || this.#decoder.kind === "wasm") return;
    // The browser's decoder gave up: libopus takes over with the next packet.
    this.#decoder.close();
    this.#decoder = null;
    this.#isWasmForced = true;
    this.start().catch(() => undefined);
  }
}
