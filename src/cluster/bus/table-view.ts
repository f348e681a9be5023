/** What one watcher of a table has been told: behind a loss it hears only what differs. */
import type { Entry, TableChange } from "./bus.ts";

export class TableView {
  readonly prefix: string;
  readonly #listener: (change: TableChange) => void;
  /** What was last told of each key. Revisions alone would not do: a store that was lost counts from 1 again. */
  readonly #told = new Map<string, { readonly epoch: number; readonly revision: number }>();

  constructor(prefix: string, listener: (change: TableChange) => void) {
    this.prefix = prefix;
    this.#listener = listener;
  }

  written(entry: Entry): void {
    const { key, epoch, revision } = entry;
    const told = this.#told.get(key);
    if (!key.startsWith(this.prefix) || (told?.epoch === epoch && told.revision === revision)) return;
    this.#told.set(key, { epoch, revision });
    this.#listener({ key, entry });
  }

  released(key: string): void {
    if (this.#told.delete(key)) this.#listener({ key, entry: undefined });
  }

  /** `entries` are all that there are now. */
  replaceAll(entries: readonly Entry[]): void {
    const present = new Set(entries.map((entry) => entry.key));
    for (const key of [...this.#told.keys()]) if (!present.has(key)) this.released(key);
    for (const entry of entries) this.written(entry);
  }
}
