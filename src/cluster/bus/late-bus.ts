/**
 * The bus of a node that started while no server could be reached. Until one can, the node is alone, on a bus in memory, or
 * with the other workers of its machine. Then it goes over. To those who use the bus that looks as if it had been lost with
 * its store and come back, which they live with anyway.
 */
import { GatewayError, toGatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import type {
  Answerer,
  Bus,
  BusHandle,
  BusState,
  Claim,
  Entry,
  KeyTable,
  MessageListener,
  RequestOptions,
  TableChange,
} from "./bus.ts";
import { BusListeners } from "./callbacks.ts";
import { MemoryHub } from "./memory-bus.ts";
import { TableView } from "./table-view.ts";

export interface LateBusOptions {
  /** Rejects with `bus_lost` or `bus_timeout` while no server can be reached. */
  readonly connect: () => Promise<Bus>;
  /** Opens the bus until then; default: one in memory, for this node alone. */
  readonly openMeanwhile?: (() => Bus) | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

const RETRY_MS = { first: 500, most: 5000 } as const;

/** Something that is heard on a bus. */
interface Opened extends BusHandle {
  /** From now on it counts. */
  begin?(): void;
}

interface Kept {
  readonly open: (bus: Bus) => Promise<Opened>;
  opened: Opened | null;
}

export class LateBus implements Bus {
  readonly owners: KeyTable;
  readonly leases: KeyTable;
  readonly #options: LateBusOptions;
  readonly #listeners: BusListeners;
  readonly #kept = new Set<Kept>();
  #bus: Bus;
  /** False while it is alone. */
  #hasCome = false;
  #retry: Timer | undefined;
  #closing: Promise<void> | null = null;

  private constructor(options: LateBusOptions) {
    const { clock, log, openMeanwhile } = options;
    this.#options = options;
    this.#listeners = new BusListeners(log);
    this.#bus = openMeanwhile?.() ?? new MemoryHub({ clock, log }).open();
    const link = {
      bus: () => this.#bus,
      keep: (open: Kept["open"]) => this.#keep(open),
    };
    this.owners = new LateTable(link, ({ owners }) => owners);
    this.leases = new LateTable(link, ({ leases }) => leases);
    this.#tryAgain(RETRY_MS.first);
  }

  /** The bus itself where it can be reached. Rejects as `connect` does with any other failure: waiting does not mend those. */
  static async open(options: LateBusOptions): Promise<Bus> {
    try {
      return await options.connect();
    } catch (thrown) {
      const { code, message } = toGatewayError(thrown);
      if (code !== "bus_lost" && code !== "bus_timeout") throw thrown;
      options.log.warn(
        { code, detail: message },
        "The bus can't be reached: this node is alone until it can",
      );
      return new LateBus(options);
    }
  }

  get state(): BusState {
    return this.#bus.state;
  }

  get isReached(): boolean {
    return this.#hasCome && this.#bus.isReached;
  }

  get leaseMs(): number {
    return this.#bus.leaseMs;
  }

  get waitingBytes(): number {
    return this.#bus.waitingBytes;
  }

  get maxMessageBytes(): number {
    return this.#bus.maxMessageBytes;
  }

  onState(listener: (state: BusState) => void): BusHandle {
    return this.#listeners.onState(listener);
  }

  publish(subject: string, bytes: Uint8Array): void {
    this.#bus.publish(subject, bytes);
  }

  subscribe(subject: string, listener: MessageListener): Promise<BusHandle> {
    return this.#keep((bus) => bus.subscribe(subject, listener));
  }

  request(subject: string, bytes: Uint8Array, options: RequestOptions): Promise<Uint8Array> {
    return this.#bus.request(subject, bytes, options);
  }

  answer(subject: string, answerer: Answerer): Promise<BusHandle> {
    return this.#keep((bus) => bus.answer(subject, answerer));
  }

  onClose(action: () => Promise<void>): BusHandle {
    return this.#listeners.onClose(action);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#retry?.cancel();
    this.#bus.onClose(() => this.#listeners.runClosers());
    await this.#bus.close();
    if (!this.#hasCome) this.#listeners.stateIs("closed");
  }

  async #keep(open: Kept["open"]): Promise<BusHandle> {
    const kept: Kept = { open, opened: null };
    this.#kept.add(kept);
    try {
      let bus: Bus;
      do {
        bus = this.#bus;
        kept.opened ??= await open(bus);
        // It went over meanwhile, without this one.
      } while (bus !== this.#bus && this.#drop(kept));
      kept.opened.begin?.();
    } catch (thrown) {
      this.#kept.delete(kept);
      throw thrown;
    }
    return {
      close: () => {
        this.#kept.delete(kept);
        kept.opened?.close();
      },
    };
  }

  #drop(kept: Kept): true {
    kept.opened?.close();
    kept.opened = null;
    return true;
  }

  #tryAgain(afterMs: number): void {
    const { clock, connect, log } = this.#options;
    const jitteredMs = afterMs * (0.5 + Math.random());
    this.#retry = clock.at(clock.nowMs() + jitteredMs, () => {
      connect()
        .then((bus) => this.#goOver(bus))
        .catch((thrown: unknown) => {
          const { code, message } = toGatewayError(thrown);
          log.debug({ code, detail: message }, "The bus still can't be reached");
          if (this.#closing === null) this.#tryAgain(Math.min(afterMs * 2, RETRY_MS.most));
        });
    });
  }

  /** All that is heard is opened there first: where that fails, this node stays alone and nobody has noticed. */
  async #goOver(bus: Bus): Promise<void> {
    const opened = new Map<Kept, Opened>();
    try {
      for (;;) {
        // What is opened here at this moment is left to whoever opens it.
        const missing = [...this.#kept].filter((kept) => kept.opened !== null && !opened.has(kept));
        if (missing.length === 0) break;
        for (const kept of missing) opened.set(kept, await kept.open(bus));
      }
      if (this.#closing !== null || bus.state !== "up") throw new GatewayError("bus_lost", "The bus is gone");
    } catch (thrown) {
      for (const handle of opened.values()) handle.close();
      await bus.close();
      throw thrown;
    }
    const alone = this.#bus;
    this.#listeners.stateIs("lost");
    this.#bus = bus;
    this.#hasCome = true;
    for (const [kept, handle] of opened) {
      kept.opened?.close();
      kept.opened = handle;
    }
    for (const [kept, handle] of opened) {
      if (this.#kept.has(kept)) handle.begin?.();
      else handle.close();
    }
    bus.onState((state) => this.#listeners.stateIs(state));
    this.#options.log.info({}, "The bus has come: this node is one of several");
    this.#listeners.stateIs("up");
    await alone.close();
  }
}

interface TableLink {
  readonly bus: () => Bus;
  readonly keep: (open: Kept["open"]) => Promise<BusHandle>;
}

/** An entry of one store is never current in another: epochs differ. */
class LateTable implements KeyTable {
  readonly #link: TableLink;
  readonly #of: (bus: Bus) => KeyTable;

  constructor(link: TableLink, of: (bus: Bus) => KeyTable) {
    this.#link = link;
    this.#of = of;
  }

  claim(key: string, value: Uint8Array): Promise<Claim> {
    return this.#now.claim(key, value);
  }

  takeOver(entry: Entry, value: Uint8Array): Promise<Entry | undefined> {
    return this.#now.takeOver(entry, value);
  }

  renew(entry: Entry, value: Uint8Array): Promise<Entry | undefined> {
    return this.#now.renew(entry, value);
  }

  release(entry: Entry): Promise<boolean> {
    return this.#now.release(entry);
  }

  find(key: string): Promise<Entry | undefined> {
    return this.#now.find(key);
  }

  watch(prefix: string, listener: (change: TableChange) => void): Promise<BusHandle> {
    const view = new TableView(prefix, listener);
    return this.#link.keep(async (bus) => {
      /** What is there; null once it counts, and each change is passed on. */
      let present: Map<string, Entry> | null = new Map();
      const handle = await this.#of(bus).watch(prefix, ({ key, entry }) => {
        if (present === null) {
          if (entry === undefined) view.released(key);
          else view.written(entry);
        } else if (entry === undefined) present.delete(key);
        else present.set(key, entry);
      });
      return {
        close: () => handle.close(),
        begin: () => {
          const entries = [...(present?.values() ?? [])];
          present = null;
          view.replaceAll(entries);
        },
      };
    });
  }

  get #now(): KeyTable {
    return this.#of(this.#link.bus());
  }
}
