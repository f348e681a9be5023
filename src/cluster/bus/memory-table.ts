/** A table of keys inside one process: the store that all buses of a hub share, and each bus's way to it. */
import type { Clock } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import {
  type BusHandle,
  type Claim,
  checkName,
  checkPrefix,
  type Entry,
  type KeyTable,
  type TableChange,
} from "./bus.ts";
import { callSafely } from "./callbacks.ts";
import type { Epochs } from "./epochs.ts";
import { TableView } from "./table-view.ts";

interface Stored {
  readonly entry: Entry;
  readonly expiresAtMs: number;
}

interface StoreWatcher {
  written(entry: Entry): void;
  released(key: string): void;
}

export class MemoryStore {
  readonly watchers = new Set<StoreWatcher>();
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #stored = new Map<string, Stored>();
  #revision = 0;

  /** `leaseMs` infinite: entries stay. */
  constructor(clock: Clock, leaseMs: number) {
    this.#clock = clock;
    this.#leaseMs = leaseMs;
  }

  get entries(): readonly Entry[] {
    return [...this.#stored.keys()].flatMap((key) => this.find(key) ?? []);
  }

  find(key: string): Entry | undefined {
    const stored = this.#stored.get(key);
    if (stored === undefined || stored.expiresAtMs > this.#clock.nowMs()) return stored?.entry;
    this.#stored.delete(key);
    return undefined;
  }

  write(key: string, value: Uint8Array, epoch: number): Entry {
    this.#revision += 1;
    const entry: Entry = { key, value, epoch, revision: this.#revision };
    this.#stored.set(key, { entry, expiresAtMs: this.#clock.nowMs() + this.#leaseMs });
    for (const watcher of this.watchers) watcher.written(entry);
    return entry;
  }

  delete(key: string): void {
    this.#stored.delete(key);
    for (const watcher of this.watchers) watcher.released(key);
  }

  clear(): void {
    for (const key of [...this.#stored.keys()]) this.delete(key);
    this.#revision = 0;
  }
}

/** What a table needs of its bus. */
interface TableLink {
  readonly log: Logger;
  /** Throws `bus_lost`. */
  assertUp(): void;
  /** Throws `bus_too_large`. */
  assertFits(bytes: Uint8Array): void;
  /** Lets `act` happen with the bus's messages, in their order. */
  pass(act: () => void): void;
}

export class MemoryTable implements KeyTable {
  readonly #store: MemoryStore;
  readonly #epochs: Epochs;
  readonly #link: TableLink;
  readonly #views = new Map<TableView, StoreWatcher>();

  constructor(store: MemoryStore, epochs: Epochs, link: TableLink) {
    this.#store = store;
    this.#epochs = epochs;
    this.#link = link;
  }

  async claim(key: string, value: Uint8Array): Promise<Claim> {
    this.#link.assertUp();
    this.#link.assertFits(value);
    const holder = this.#store.find(checkName(key));
    if (holder === undefined)
      return { isOurs: true, entry: this.#store.write(key, value, this.#epochs.next()) };
    this.#epochs.see(holder.epoch);
    return { isOurs: false, entry: holder };
  }

  async takeOver(entry: Entry, value: Uint8Array): Promise<Entry | undefined> {
    this.#link.assertFits(value);
    this.#epochs.see(entry.epoch);
    return this.#isCurrent(entry) ? this.#store.write(entry.key, value, this.#epochs.next()) : undefined;
  }

  async renew(entry: Entry, value: Uint8Array): Promise<Entry | undefined> {
    this.#link.assertFits(value);
    return this.#isCurrent(entry) ? this.#store.write(entry.key, value, entry.epoch) : undefined;
  }

  async release(entry: Entry): Promise<boolean> {
    const isCurrent = this.#isCurrent(entry);
    if (isCurrent) this.#store.delete(entry.key);
    return isCurrent;
  }

  async find(key: string): Promise<Entry | undefined> {
    this.#link.assertUp();
    const entry = this.#store.find(checkName(key));
    if (entry !== undefined) this.#epochs.see(entry.epoch);
    return entry;
  }

  async watch(prefix: string, listener: (change: TableChange) => void): Promise<BusHandle> {
    this.#link.assertUp();
    const view = new TableView(checkPrefix(prefix), (change) => {
      if (change.entry !== undefined) this.#epochs.see(change.entry.epoch);
      callSafely(this.#link.log, "watch", () => listener(change));
    });
    const watcher: StoreWatcher = {
      written: (entry) => this.#link.pass(() => this.#views.has(view) && view.written(entry)),
      released: (key) => this.#link.pass(() => this.#views.has(view) && view.released(key)),
    };
    const present = this.#store.entries;
    this.#views.set(view, watcher);
    this.#store.watchers.add(watcher);
    await new Promise<void>((resolve) => {
      this.#link.pass(() => {
        view.replaceAll(present);
        resolve();
      });
    });
    return { close: () => this.#forget(view) };
  }

  /** The bus was lost and is up again. */
  resync(): void {
    for (const view of this.#views.keys()) {
      this.#link.pass(() => this.#views.has(view) && view.replaceAll(this.#store.entries));
    }
  }

  close(): void {
    for (const view of [...this.#views.keys()]) this.#forget(view);
  }

  #isCurrent(entry: Entry): boolean {
    this.#link.assertUp();
    const current = this.#store.find(entry.key);
    return current?.revision === entry.revision && current.epoch === entry.epoch;
  }

  #forget(view: TableView): void {
    const watcher = this.#views.get(view);
    if (watcher !== undefined) this.#store.watchers.delete(watcher);
    this.#views.delete(view);
  }
}
