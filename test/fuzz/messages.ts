/** What the watching thread and the one that runs the inputs hand each other. */

/** What the worker is started with. */
export interface Job {
  readonly target: string;
  readonly inputs: number;
  readonly seed: number;
  /** It ends after so many seconds, whatever is left of the inputs; Infinity: it does not. */
  readonly maxSeconds: number;
  /** Of the target's corpus. */
  readonly corpusFolder: string;
  /** The input that is being run: four words (see SLOT), then its bytes. Who watches saves it where the worker hangs. */
  readonly shared: SharedArrayBuffer;
}

/** Words of `shared`. */
export const SLOT = { count: 0, length: 1, headerBytes: 8 } as const;

export interface Report {
  readonly kind: "done";
  readonly target: string;
  readonly inputs: number;
  readonly seconds: number;
  /** Branches of src/ that the inputs reached. */
  readonly branches: number;
  readonly slowestMs: number;
  readonly slowestBytes: number;
  readonly heapBeforeMb: number;
  readonly heapAfterMb: number;
}

/** An input that broke the target. */
export interface Fault {
  readonly kind: "fault";
  readonly input: Uint8Array;
  readonly what: string;
}
