/** What one watcher of a table knows: behind a loss it gets only what differs. */
import type { Entry, TableChange } from "./bus.ts";

export class TableView {
  readonly prefix: string;
  readonly #listener: (change: TableChange) => void;
  /** What it got last of each key. Revisions alone would not do: a store that was lost counts from 1 again. */
  readonly #known = new Map<string, { readonly epoch: number; readonly revision: number }>();

  constructor(prefix: string, listener: (change: TableChange) => void) {
    this.prefix = prefix;
    this.#listener = listener;
  }

  written(entry: Entry): void {
    const { key, epoch, revision } = entry;
    const known = this.#known.get(key);
    if (!key.startsWith(this.prefix) || (known?.epoch === epoch && known.revision === revision)) return;
    this.#known.set(key, { epoch, revision });
    this.#listener({ key, entry });
  }

  released(key: string): void {
    if (this.#known.delete(key)) this.#listener({ key, entry: undefined });
  }

  /** `entries` are all that there are now. */
  replaceAll(entries: readonly Entry[]): void {
    const present = new Set(entries.map((entry) => entry.key));
    for (const key of [...this.#known.keys()]) if (!present.has(key)) this.released(key);
    for (const entry of entries) this.written(entry);
  }
}
