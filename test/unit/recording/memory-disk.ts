/** A disk in memory for recordings, which a test makes full. */
import type { RecordingsOptions } from "../../../src/recording/recordings.ts";

export class MemoryDisk implements NonNullable<RecordingsOptions["disk"]> {
  readonly files = new Map<string, string>();
  freeBytes = 1e12;
  /** So many more bytes can be written. */
  room = Number.POSITIVE_INFINITY;
  /** Nothing is written before it. */
  ready: Promise<unknown> = Promise.resolve();

  create(path: string) {
    if (this.room <= 0) return Promise.reject(new Error("ENOSPC: no space left on device"));
    this.files.set(path, "");
    return Promise.resolve({
      append: async (bytes: Uint8Array) => {
        await this.ready;
        if (this.room <= 0) throw new Error("ENOSPC: no space left on device");
        const taken = bytes.subarray(0, Math.min(bytes.length, this.room));
        this.room -= taken.length;
        this.files.set(path, (this.files.get(path) ?? "") + Buffer.from(taken).toString());
        return taken.length;
      },
      close: () => Promise.resolve(),
    });
  }

  free(): Promise<number> {
    return Promise.resolve(this.freeBytes);
  }

  /** Lines of the only file, or of the one at this place. */
  lines(index = 0): string[] {
    const text = [...this.files.values()][index] ?? "";
    return text.split("\n").slice(0, -1);
  }
}
