/** What a process holds when everything that can be collected has been. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

export interface MemorySnapshot {
  /** Resident memory of the whole process: heap, buffers, the libraries' own. */
  readonly rssBytes: number;
  /** Live objects of the JavaScript heap. */
  readonly heapBytes: number;
  /** Buffers and what objects hold outside the heap. */
  readonly externalBytes: number;
}

/** Finalizers run between two collections and may free more. */
const COLLECTIONS = 3;

export class MemoryProbe {
  #collect: (() => void) | null = null;

  /** Collects first; takes tens of milliseconds a hundred megabytes. */
  async take(): Promise<MemorySnapshot> {
    for (let round = 0; round < COLLECTIONS; round += 1) {
      this.#collector()();
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
    const { rss, heapUsed, external } = process.memoryUsage();
    return { rssBytes: rss, heapBytes: heapUsed, externalBytes: external };
  }

  /** `--expose-gc` without the flag: fixtures have the flags of the build that they run, and no others. */
  #collector(): () => void {
    if (this.#collect === null) {
      setFlagsFromString("--expose-gc");
      this.#collect = runInNewContext("gc") as () => void;
    }
    return this.#collect;
  }
}

/** Bytes as KB of 1024, with one decimal. */
export function kilobytes(bytes: number): string {
  return (bytes / 1024).toFixed(1);
}

/** Bytes as MB of 1024 x 1024, with one decimal. */
export function megabytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}
