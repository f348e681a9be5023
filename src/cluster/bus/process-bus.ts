/** The bus of a worker process: everything is carried out by the process that started it (process-hub.ts). */
import type { Duplex } from "node:stream";
import { GatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import {
  type Answerer,
  type Bus,
  type BusHandle,
  type BusState,
  busLost,
  CLOSE_GRACE_MS,
  type Claim,
  checkName,
  checkPrefix,
  DEFAULT_LEASE_MS,
  DEFAULT_MAX_MESSAGE_BYTES,
  DEFAULT_MAX_WAITING_BYTES,
  type Entry,
  type KeyTable,
  type MessageListener,
  type RequestOptions,
  type TableChange,
} from "./bus.ts";
import { BusListeners, callSafely } from "./callbacks.ts";
import {
  type FromHub,
  fromWireError,
  type HubCall,
  ProcessWire,
  type TableName,
  type ToHub,
  toWireError,
} from "./process-wire.ts";

export interface ProcessBusOptions {
  readonly stream: Duplex;
  readonly clock: Clock;
  readonly log: Logger;
  /** What may wait to be sent. */
  readonly maxWaitingBytes?: number;
}

type OnCalled = (message: Extract<FromHub, { readonly kind: "heard" | "changed" | "asked" }>) => void;

interface PendingCall {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: GatewayError) => void;
}

export class ProcessBus implements Bus {
  readonly owners: KeyTable;
  readonly leases: KeyTable;
  readonly leaseMs = DEFAULT_LEASE_MS;
  readonly maxMessageBytes = DEFAULT_MAX_MESSAGE_BYTES;
  readonly #options: ProcessBusOptions;
  readonly #wire: ProcessWire<FromHub, ToHub>;
  readonly #listeners: BusListeners;
  readonly #pending = new Map<number, PendingCall>();
  /** What stands at the hub, by the number of its call. */
  readonly #standing = new Map<number, OnCalled>();
  #nextId = 1;
  #state: BusState = "up";
  #closing: Promise<void> | null = null;

  constructor(options: ProcessBusOptions) {
    this.#options = options;
    this.#listeners = new BusListeners(options.log);
    this.#wire = new ProcessWire(
      options.stream,
      (message) => this.#take(message),
      // Without the process that started it a worker ends, too.
      () => this.#stateIs("lost"),
    );
    const link = { call: this.#call.bind(this), stand: this.#stand.bind(this) };
    this.owners = new ProcessTable("owners", link);
    this.leases = new ProcessTable("leases", link);
  }

  get state(): BusState {
    return this.#state;
  }

  get isReached(): boolean {
    return this.#state === "up";
  }

  get waitingBytes(): number {
    return this.#wire.waitingBytes;
  }

  onState(listener: (state: BusState) => void): BusHandle {
    return this.#listeners.onState(listener);
  }

  publish(subject: string, bytes: Uint8Array): void {
    checkName(subject);
    this.#assertSendable(bytes);
    this.#wire.send({ kind: "publish", subject, bytes });
  }

  async subscribe(subject: string, listener: MessageListener): Promise<BusHandle> {
    checkName(subject);
    return this.#stand({ name: "subscribe", subject }, (message) => {
      if (message.kind !== "heard") return;
      callSafely(this.#options.log, subject, () => listener(message.bytes));
    });
  }

  async request(subject: string, bytes: Uint8Array, { timeoutMs }: RequestOptions): Promise<Uint8Array> {
    checkName(subject);
    this.#assertSendable(bytes);
    return (await this.#call({ name: "request", subject, bytes, timeoutMs })) as Uint8Array;
  }

  async answer(subject: string, answerer: Answerer): Promise<BusHandle> {
    checkName(subject);
    return this.#stand({ name: "answer", subject }, (message) => {
      if (message.kind === "asked") void this.#answer(message.question, message.bytes, answerer);
    });
  }

  onClose(action: () => Promise<void>): BusHandle {
    return this.#listeners.onClose(action);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#within(this.#listeners.runClosers());
    if (this.#state === "up") await this.#within(this.#call({ name: "close" }));
    this.#wire.end();
    this.#standing.clear();
    this.#stateIs("closed");
  }

  async #within(work: Promise<unknown>): Promise<void> {
    const { clock } = this.#options;
    await new Promise<void>((resolve) => {
      const timer = clock.at(clock.nowMs() + CLOSE_GRACE_MS, resolve);
      const done = (): void => {
        timer.cancel();
        resolve();
      };
      work.then(done, done);
    });
  }

  async #answer(question: number, bytes: Uint8Array, answerer: Answerer): Promise<void> {
    try {
      this.#wire.send({ kind: "answer", question, reply: await answerer(bytes) });
    } catch (thrown) {
      this.#wire.send({ kind: "answer", question, reply: toWireError(thrown) });
    }
  }

  #call(call: HubCall): Promise<unknown> {
    if (this.#state === "closed") return Promise.reject(closed());
    const id = this.#nextId++;
    return this.#called(id, call);
  }

  #called(id: number, call: HubCall): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#wire.send({ kind: "call", id, call });
    });
  }

  async #stand(call: HubCall, onCalled: OnCalled): Promise<BusHandle> {
    if (this.#state === "closed") throw closed();
    const id = this.#nextId++;
    this.#standing.set(id, onCalled);
    try {
      await this.#called(id, call);
    } catch (thrown) {
      this.#standing.delete(id);
      throw thrown;
    }
    return {
      close: () => {
        if (this.#standing.delete(id)) this.#wire.send({ kind: "end", id });
      },
    };
  }

  #take(message: FromHub): void {
    switch (message.kind) {
      case "state":
        // Its end is ours to say.
        if (message.state !== "closed") this.#stateIs(message.state);
        return;
      case "result":
        this.#settled(message.id)?.resolve(message.value);
        return;
      case "error":
        this.#settled(message.id)?.reject(fromWireError(message.error));
        return;
      default:
        this.#standing.get(message.id)?.(message);
    }
  }

  #settled(id: number): PendingCall | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  #stateIs(state: BusState): void {
    if (this.#state === state || this.#state === "closed") return;
    this.#state = state;
    if (state !== "up") {
      for (const { reject } of this.#pending.values()) reject(busLost(state));
      this.#pending.clear();
    }
    this.#listeners.stateIs(state);
  }

  #assertSendable(bytes: Uint8Array): void {
    if (this.#state !== "up") throw busLost(this.#state);
    if (bytes.length > this.maxMessageBytes) {
      throw new GatewayError(
        "bus_too_large",
        `Message of ${bytes.length} bytes: the bus takes ${this.maxMessageBytes}`,
      );
    }
    const { waitingBytes } = this.#wire;
    if (waitingBytes + bytes.length > (this.#options.maxWaitingBytes ?? DEFAULT_MAX_WAITING_BYTES)) {
      throw new GatewayError("bus_full", `${waitingBytes} bytes wait to be sent`);
    }
  }
}

function closed(): GatewayError {
  return new GatewayError("bus_lost", "The bus is closed");
}

interface TableLink {
  readonly call: (call: HubCall) => Promise<unknown>;
  readonly stand: (call: HubCall, onCalled: OnCalled) => Promise<BusHandle>;
}

/** What comes back is what the hub's own table gave: process-hub.ts. */
class ProcessTable implements KeyTable {
  readonly #table: TableName;
  readonly #link: TableLink;

  constructor(table: TableName, link: TableLink) {
    this.#table = table;
    this.#link = link;
  }

  async claim(key: string, value: Uint8Array): Promise<Claim> {
    const call = { name: "claim", table: this.#table, key: checkName(key), value } as const;
    return (await this.#link.call(call)) as Claim;
  }

  async takeOver(entry: Entry, value: Uint8Array): Promise<Entry | undefined> {
    const call = { name: "takeOver", table: this.#table, entry, value } as const;
    return (await this.#link.call(call)) as Entry | undefined;
  }

  async renew(entry: Entry, value: Uint8Array): Promise<Entry | undefined> {
    const call = { name: "renew", table: this.#table, entry, value } as const;
    return (await this.#link.call(call)) as Entry | undefined;
  }

  async release(entry: Entry): Promise<boolean> {
    return (await this.#link.call({ name: "release", table: this.#table, entry })) as boolean;
  }

  async find(key: string): Promise<Entry | undefined> {
    const call = { name: "find", table: this.#table, key: checkName(key) } as const;
    return (await this.#link.call(call)) as Entry | undefined;
  }

  async watch(prefix: string, listener: (change: TableChange) => void): Promise<BusHandle> {
    const call = { name: "watch", table: this.#table, prefix: checkPrefix(prefix) } as const;
    return this.#link.stand(call, (message) => {
      if (message.kind === "changed") listener(message.change);
    });
  }
}
