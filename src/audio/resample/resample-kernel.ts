/**
 * The inner loop of the resampler in WebAssembly, eight multiplications at a time: resample-kernel.wat is its source, and a
 * test holds these bytes against it. One instance a thread; nothing of a stream stays in it between two calls. A second of
 * 48 kHz takes 0.9 ms to 8 kHz; the same loop in JavaScript took 11.5 (one core of 2.5 GHz).
 *
 *   memory   |samples, 16 bit|the same as floats|outputs, 16 bit|rows of a pair of rates|rows of another|...
 */

const WASM =
  "AGFzbQEAAAABDwFgCn9/f39/f39/f38BfwMCAQAFAwEAAQYLAn8BQQALfwFBAAsHJAQGbWVtb3J5AgAFc3RhcnQDAAVwaGFzZQMB" +
  "B2NvbnZlcnQAAAr1AgHyAgMKfwJ7AX0gACEKIAEhECAAIAJBAXRqIQsCQANAIAogC08NASAQIAr9AwMA/foB/QsEACAQIAr9AwMI" +
  "/foB/QsEECAKQRBqIQogEEEgaiEQDAALCyACIARrIQxBACENIAghDiAJIRACQANAIA0gDEoNASADIA4gBWxBAnRqIREgESAFQQJ0" +
  "aiETIAEgDUECdGohEv0MAAAAAAAAAAAAAAAAAAAAACEU/QwAAAAAAAAAAAAAAAAAAAAAIRUDQCAUIBH9AAQAIBL9AAQA/eYB/eQB" +
  "IRQgFSAR/QAEECAS/QAEEP3mAf3kASEVIBFBIGohESASQSBqIRIgESATSQ0ACyAUIBX95AEhFCAU/R8AIBT9HwGSIBT9HwIgFP0f" +
  "A5KSIRYgEEMAAADHQwD+/0YgFpCWl/wAOwEAIBBBAmohECAOIAdqIQ4gDiAGbiEPIA4gDyAGbGshDiANIA9qIQ0MAAsLIA0kACAO" +
  "JAEgECAJa0EBdgs=";

/** Samples that one call may be given, those that were left over before included. */
export const MAX_SAMPLES = 2048;
/** Outputs of one call: the highest of SAMPLE_RATES from the lowest. */
const MAX_OUTPUTS = MAX_SAMPLES * 6;
/** Rows are read eight floats at a time. */
const ROW_STEP = 8;
const PAGE_BYTES = 65_536;
const SAMPLES_AT = 0;
const FLOATS_AT = MAX_SAMPLES * 2 + 64;
const OUTPUTS_AT = FLOATS_AT + MAX_SAMPLES * 4 + 128;
const ROWS_AT = OUTPUTS_AT + MAX_OUTPUTS * 2 + 64;

/** One pair of rates, its filter's rows in the kernel's memory. */
export interface KernelTable {
  /** Output and input steps in lowest terms. */
  readonly up: number;
  readonly down: number;
  /** Taps a row, and the floats from one row to the next. */
  readonly taps: number;
  readonly stride: number;
  readonly rowsAt: number;
}

/** Where a stream stands after a call. */
interface KernelPlace {
  /** Samples that no later output needs. */
  readonly used: number;
  /** Place of the next output between two inputs, 0 .. up-1. */
  readonly phase: number;
  /** Outputs written. */
  readonly made: number;
}

type Convert = (
  samples: number,
  floats: number,
  count: number,
  rows: number,
  taps: number,
  stride: number,
  up: number,
  down: number,
  phase: number,
  out: number,
) => number;

interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  readonly start: { readonly value: number };
  readonly phase: { readonly value: number };
  readonly convert: Convert;
}

/** As much of WebAssembly as is used: its types come with those of browsers only. */
interface Wasm {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: Exports };
}

export class ResampleKernel {
  readonly #exports: Exports;
  #samples: Int16Array;
  #outputs: Int16Array;
  #free = ROWS_AT;

  constructor() {
    const { Instance, Module } = (globalThis as unknown as { WebAssembly: Wasm }).WebAssembly;
    this.#exports = new Instance(new Module(kernelBytes())).exports;
    this.#exports.memory.grow(1);
    [this.#samples, this.#outputs] = this.#views();
  }

  /** Takes the filter's rows, `up` of `taps` each, into the memory for good: there are only so many pairs of SAMPLE_RATES. */
  addTable(table: {
    readonly up: number;
    readonly down: number;
    readonly taps: number;
    readonly rows: Float32Array;
  }): KernelTable {
    const { up, down, taps, rows } = table;
    const stride = Math.ceil(taps / ROW_STEP) * ROW_STEP;
    const rowsAt = this.#free;
    this.#free += up * stride * 4;
    const { memory } = this.#exports;
    const missing = this.#free - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / PAGE_BYTES));
    [this.#samples, this.#outputs] = this.#views();
    const all = new Float32Array(memory.buffer, rowsAt, up * stride);
    for (let row = 0; row < up; row += 1) all.set(rows.subarray(row * taps, (row + 1) * taps), row * stride);
    return { up, down, taps, stride, rowsAt };
  }

  /** All outputs that `samples` (at most MAX_SAMPLES) allow, written to `output` from `at` on. */
  convert(
    table: KernelTable,
    samples: Int16Array,
    to: { readonly phase: number; readonly output: Int16Array; readonly at: number },
  ): KernelPlace {
    const { rowsAt, taps, stride, up, down } = table;
    this.#samples.set(samples);
    const { convert, start, phase } = this.#exports;
    const made = convert(
      SAMPLES_AT,
      FLOATS_AT,
      samples.length,
      rowsAt,
      taps,
      stride,
      up,
      down,
      to.phase,
      OUTPUTS_AT,
    );
    to.output.set(this.#outputs.subarray(0, made), to.at);
    return { used: start.value, phase: phase.value, made };
  }

  /** Made again after the memory has grown: the former views are of no memory any more. */
  #views(): [samples: Int16Array, outputs: Int16Array] {
    const { buffer } = this.#exports.memory;
    return [new Int16Array(buffer, SAMPLES_AT, MAX_SAMPLES), new Int16Array(buffer, OUTPUTS_AT, MAX_OUTPUTS)];
  }
}

/** The module, as the test compares it. */
export function kernelBytes(): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(Buffer.from(WASM, "base64"));
}
