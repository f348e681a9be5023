/**
 * An upload that is heard twice, first for its length and its faults and then for its sound, but decoded once: the samples
 * are kept in a temporary file while they are few enough, else the upload is decoded again.
 */
import { type DecodeOptions, decodeUpload } from "./decode-upload.ts";
import type { PcmPiece } from "./pieces.ts";
import type { TemporaryFile, TemporaryFiles } from "./temporary-file.ts";

/** Of samples that are kept: 23 minutes at 48 kHz. */
const MAX_KEPT_BYTES = 134_217_728;
/** Changes of the rate (chained files): more are not remembered. */
const MAX_RUNS = 256;
const WRITE_SAMPLES = 32_768;

export interface DecodedUpload {
  /** Length of the whole. */
  readonly seconds: number;
  /** As decodeUpload gives them, from the start each time. Not after `close`. */
  pieces(): AsyncIterable<PcmPiece>;
  /** Frees the file. Idempotent; to be called on every path. */
  close(): Promise<void>;
}

export interface DecodeOnceOptions extends DecodeOptions {
  /** Where the samples are kept. */
  readonly temporaryFiles: TemporaryFiles;
  readonly signal: AbortSignal;
  /** Default 128 MB. */
  readonly maxKeptBytes?: number;
}

/** Rejects as decodeUpload and TemporaryFile.write do, and with the signal's reason once it is aborted; nothing is left of it then. */
export async function decodeOnce(
  file: { read(): AsyncIterable<Uint8Array> },
  { temporaryFiles, signal, maxKeptBytes = MAX_KEPT_BYTES, ...options }: DecodeOnceOptions,
): Promise<DecodedUpload> {
  const kept = new KeptSamples(await temporaryFiles.create(), maxKeptBytes);
  let seconds = 0;
  try {
    for await (const piece of decodeUpload(file, options)) {
      signal.throwIfAborted();
      seconds += piece.pcm.length / piece.sampleRate;
      await kept.add(piece);
    }
    await kept.finish();
  } catch (thrown) {
    await kept.close();
    throw thrown;
  }
  return {
    seconds,
    pieces: () => (kept.isWhole ? kept.read() : decodeUpload(file, options)),
    close: () => kept.close(),
  };
}

/** Samples of one rate after another. */
interface Run {
  readonly sampleRate: number;
  samples: number;
}

class KeptSamples {
  readonly #file: TemporaryFile;
  readonly #maxBytes: number;
  readonly #runs: Run[] = [];
  readonly #unwritten = new Int16Array(WRITE_SAMPLES);
  #unwrittenSamples = 0;
  #isWhole = true;

  constructor(file: TemporaryFile, maxBytes: number) {
    this.#file = file;
    this.#maxBytes = maxBytes;
  }

  /** False once there was too much: then nothing is kept. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  async add({ pcm, sampleRate }: PcmPiece): Promise<void> {
    if (!this.#isWhole) return;
    const run = this.#runs.at(-1);
    if (run?.sampleRate === sampleRate) run.samples += pcm.length;
    else this.#runs.push({ sampleRate, samples: pcm.length });
    const bytes = this.#file.bytes + (this.#unwrittenSamples + pcm.length) * pcm.BYTES_PER_ELEMENT;
    if (bytes > this.#maxBytes || this.#runs.length > MAX_RUNS) {
      this.#isWhole = false;
      await this.#file.close();
      return;
    }
    for (let at = 0; at < pcm.length; ) {
      const part = pcm.subarray(at, at + WRITE_SAMPLES - this.#unwrittenSamples);
      this.#unwritten.set(part, this.#unwrittenSamples);
      this.#unwrittenSamples += part.length;
      at += part.length;
      if (this.#unwrittenSamples === WRITE_SAMPLES) await this.#write();
    }
  }

  async finish(): Promise<void> {
    if (this.#isWhole) await this.#write();
  }

  async *read(): AsyncGenerator<PcmPiece> {
    const samples = wholeSamples(this.#file.read());
    let held: Int16Array = new Int16Array(0);
    for (const run of this.#runs) {
      for (let left = run.samples; left > 0; ) {
        if (held.length === 0) {
          const next = await samples.next();
          if (next.done === true)
            throw new RangeError("Cannot read the samples: fewer are kept than were decoded");
          held = next.value;
        }
        const pcm = held.subarray(0, left);
        held = held.subarray(pcm.length);
        left -= pcm.length;
        yield { pcm, sampleRate: run.sampleRate };
      }
    }
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  async #write(): Promise<void> {
    const { buffer } = this.#unwritten.slice(0, this.#unwrittenSamples);
    this.#unwrittenSamples = 0;
    await this.#file.write(new Uint8Array(buffer));
  }
}

/** A read may end in the middle of a sample. */
async function* wholeSamples(source: AsyncIterable<Uint8Array>): AsyncGenerator<Int16Array> {
  let rest = new Uint8Array(0);
  for await (const bytes of source) {
    const joined = new Uint8Array(rest.length + bytes.length);
    joined.set(rest);
    joined.set(bytes, rest.length);
    const whole = joined.length - (joined.length % 2);
    rest = joined.slice(whole);
    if (whole > 0) yield new Int16Array(joined.buffer, 0, whole / 2);
  }
}
