/**
 * Buses inside one process: of a gateway that is alone, and of many nodes in a test or a simulation. Messages are passed on in
 * a microtask, in the order in which they were published. Time is the hub's clock.
 */
import { GatewayError, toGatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import { type Logger, silentLog } from "../../kit/log.ts";
import {
  type Answerer,
  type Bus,
  type BusHandle,
  type BusState,
  busLost,
  CLOSE_GRACE_MS,
  checkName,
  DEFAULT_LEASE_MS,
  DEFAULT_MAX_MESSAGE_BYTES,
  DEFAULT_MAX_WAITING_BYTES,
  type KeyTable,
  MAX_OPEN_ANSWERS,
  type MessageListener,
  type RequestOptions,
} from "./bus.ts";
import { BusListeners, callSafely } from "./callbacks.ts";
import { Epochs } from "./epochs.ts";
import { MemoryStore, MemoryTable } from "./memory-table.ts";
import { PausableClock } from "./pausable-clock.ts";

export interface MemoryHubOptions {
  readonly clock: Clock;
  readonly log?: Logger;
  /** How long a lease holds without being renewed. */
  readonly leaseMs?: number;
  readonly maxMessageBytes?: number;
  /** What waits to be sent on one bus, or to be heard while its node hangs. */
  readonly maxWaitingBytes?: number;
}

/** What a delivery takes besides its bytes, about. */
const DELIVERY_BYTES = 64;

interface Delivery {
  readonly to: MemoryBus;
  readonly bytes: number;
  readonly act: () => void;
}

/** The wire and the store that its buses share. */
export class MemoryHub {
  readonly clock: Clock;
  readonly log: Logger;
  readonly leaseMs: number;
  readonly maxMessageBytes: number;
  readonly maxWaitingBytes: number;
  readonly owners: MemoryStore;
  readonly leases: MemoryStore;
  /** One for all: what two nodes write within a millisecond is in order, too. */
  readonly epochs: Epochs;
  readonly #listeners = new Map<string, Set<Listening<MessageListener>>>();
  readonly #answerers = new Map<string, Set<Listening<Answerer>>>();
  /** What is under way: delivered in the next microtask. */
  #wire: { from: MemoryBus; delivery: Delivery }[] = [];

  constructor(options: MemoryHubOptions) {
    this.clock = options.clock;
    this.log = options.log ?? silentLog;
    this.leaseMs = options.leaseMs ?? DEFAULT_LEASE_MS;
    this.maxMessageBytes = options.maxMessageBytes ?? DEFAULT_MAX_MESSAGE_BYTES;
    this.maxWaitingBytes = options.maxWaitingBytes ?? DEFAULT_MAX_WAITING_BYTES;
    this.epochs = new Epochs(this.clock);
    this.owners = new MemoryStore(this.clock, Number.POSITIVE_INFINITY);
    this.leases = new MemoryStore(this.clock, this.leaseMs);
  }

  open(): MemoryBus {
    return new MemoryBus(this);
  }

  /** The store as after a restart of all its servers: everything is gone. */
  loseStore(): void {
    this.owners.clear();
    this.leases.clear();
  }

  listen(subject: string, listening: Listening<MessageListener>): BusHandle {
    return addTo(this.#listeners, subject, listening);
  }

  answer(subject: string, answering: Listening<Answerer>): BusHandle {
    return addTo(this.#answerers, subject, answering);
  }

  listenersOf(subject: string): Iterable<Listening<MessageListener>> {
    return this.#listeners.get(subject) ?? [];
  }

  /** Who answers now: not who is cut off. */
  answererOf(subject: string): Listening<Answerer> | undefined {
    return [...(this.#answerers.get(subject) ?? [])].find(({ bus }) => bus.state === "up");
  }

  send(from: MemoryBus, delivery: Delivery): void {
    if (this.#wire.length === 0) queueMicrotask(() => this.#deliver());
    this.#wire.push({ from, delivery });
  }

  #deliver(): void {
    const wire = this.#wire;
    this.#wire = [];
    for (const { from, delivery } of wire) {
      from.sent(delivery.bytes);
      delivery.to.deliver(delivery);
    }
  }
}

interface Listening<Call> {
  readonly bus: MemoryBus;
  readonly call: Call;
}

function addTo<Call>(
  map: Map<string, Set<Listening<Call>>>,
  subject: string,
  added: Listening<Call>,
): BusHandle {
  const here = map.get(subject) ?? new Set();
  map.set(subject, here.add(added));
  return {
    close: () => {
      here.delete(added);
      if (here.size === 0 && map.get(subject) === here) map.delete(subject);
    },
  };
}

interface PendingRequest {
  readonly timer: Timer;
  readonly resolve: (bytes: Uint8Array) => void;
  readonly reject: (error: GatewayError) => void;
}

export class MemoryBus implements Bus {
  readonly owners: KeyTable;
  readonly leases: KeyTable;
  readonly leaseMs: number;
  readonly maxMessageBytes: number;
  /** This node's own: it stands while the node hangs. */
  readonly clock: PausableClock;
  readonly #hub: MemoryHub;
  readonly #listeners: BusListeners;
  readonly #handles = new Set<BusHandle>();
  readonly #tables: readonly MemoryTable[];
  readonly #requests = new Set<PendingRequest>();
  #state: BusState = "up";
  #waitingBytes = 0;
  #openAnswers = 0;
  /** What comes while the node hangs; null while it runs. */
  #held: Delivery[] | null = null;
  #heldBytes = 0;
  #closing: Promise<void> | null = null;

  constructor(hub: MemoryHub) {
    this.#hub = hub;
    this.leaseMs = hub.leaseMs;
    this.maxMessageBytes = hub.maxMessageBytes;
    this.clock = new PausableClock(hub.clock);
    this.#listeners = new BusListeners(hub.log);
    const { epochs } = hub;
    const link = {
      assertUp: () => this.#assertUp(),
      assertFits: (bytes: Uint8Array) => this.#assertFits(bytes),
      pass: (act: () => void) => hub.send(this, { to: this, bytes: 0, act }),
      log: hub.log,
    };
    const owners = new MemoryTable(hub.owners, epochs, link);
    const leases = new MemoryTable(hub.leases, epochs, link);
    this.owners = owners;
    this.leases = leases;
    this.#tables = [owners, leases];
  }

  get state(): BusState {
    return this.#state;
  }

  get isReached(): boolean {
    return this.#state === "up";
  }

  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  onState(listener: (state: BusState) => void): BusHandle {
    return this.#listeners.onState(listener);
  }

  publish(subject: string, bytes: Uint8Array): void {
    checkName(subject);
    this.#assertSendable(bytes);
    for (const { bus, call } of this.#hub.listenersOf(subject)) {
      this.#send(bus, bytes.length, () => callSafely(this.#hub.log, subject, () => call(bytes)));
    }
  }

  async subscribe(subject: string, listener: MessageListener): Promise<BusHandle> {
    this.#assertOpen();
    return this.#kept(this.#hub.listen(checkName(subject), { bus: this, call: listener }));
  }

  async request(subject: string, bytes: Uint8Array, { timeoutMs }: RequestOptions): Promise<Uint8Array> {
    checkName(subject);
    this.#assertSendable(bytes);
    const answering = this.#hub.answererOf(subject);
    if (answering === undefined) {
      throw new GatewayError("bus_no_answer", `Nobody answers ${subject}: its node has ended or is cut off`);
    }
    return new Promise((resolve, reject) => {
      const timer = this.#hub.clock.at(this.#hub.clock.nowMs() + timeoutMs, () => {
        this.#requests.delete(pending);
        reject(new GatewayError("bus_timeout", `No answer of ${subject} within ${timeoutMs} ms`));
      });
      const pending: PendingRequest = { timer, resolve, reject };
      this.#requests.add(pending);
      this.#send(answering.bus, bytes.length, () => {
        void answering.bus.#answerTo(answering.call, bytes).then((reply) => {
          if (answering.bus.state === "up") answering.bus.#send(this, 0, () => this.#settle(pending, reply));
        });
      });
    });
  }

  async answer(subject: string, answerer: Answerer): Promise<BusHandle> {
    this.#assertOpen();
    return this.#kept(this.#hub.answer(checkName(subject), { bus: this, call: answerer }));
  }

  onClose(action: () => Promise<void>): BusHandle {
    return this.#listeners.onClose(action);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** A partition: this node is cut off from all others and from the store. */
  cut(): void {
    if (this.#state !== "up") return;
    this.#lose("lost");
  }

  heal(): void {
    if (this.#state !== "lost") return;
    this.#state = "up";
    for (const table of this.#tables) table.resync();
    this.#listeners.stateIs("up");
  }

  /** A process that hangs: it hears and sends nothing, and its clock stands; the others see a connection that is open. */
  hang(): void {
    this.#held ??= [];
    this.clock.pause();
  }

  wake(): void {
    const held = this.#held ?? [];
    const isOver = this.#heldBytes > this.#hub.maxWaitingBytes;
    this.#held = null;
    this.#heldBytes = 0;
    if (isOver) {
      this.cut();
      this.heal();
    } else {
      for (const delivery of held) this.deliver(delivery);
    }
    this.clock.go();
  }

  /** The hub's: `bytes` of this bus have left. */
  sent(bytes: number): void {
    this.#waitingBytes -= bytes;
  }

  /** The hub's: something arrives. What comes for a node that is cut off is lost. */
  deliver(delivery: Delivery): void {
    if (this.#state !== "up") return;
    if (this.#held === null) {
      delivery.act();
      return;
    }
    this.#heldBytes += delivery.bytes + DELIVERY_BYTES;
    // As a server does with a client that does not read: its connection is given up, which it sees when it wakes.
    if (this.#heldBytes > this.#hub.maxWaitingBytes) this.#held = [];
    else this.#held.push(delivery);
  }

  #send(to: MemoryBus, bytes: number, act: () => void): void {
    this.#waitingBytes += bytes;
    this.#hub.send(this, { to, bytes, act });
  }

  async #answerTo(answerer: Answerer, bytes: Uint8Array): Promise<Uint8Array | GatewayError> {
    if (this.#openAnswers >= MAX_OPEN_ANSWERS)
      return new GatewayError("bus_full", "Too many requests wait for an answer");
    this.#openAnswers += 1;
    try {
      const answer = await answerer(bytes);
      this.#assertFits(answer);
      return answer;
    } catch (error) {
      return toGatewayError(error);
    } finally {
      this.#openAnswers -= 1;
    }
  }

  #settle(pending: PendingRequest, reply: Uint8Array | GatewayError): void {
    if (!this.#requests.delete(pending)) return;
    pending.timer.cancel();
    if (reply instanceof GatewayError) pending.reject(reply);
    else pending.resolve(reply);
  }

  #assertUp(): void {
    if (this.#state !== "up") throw busLost(this.#state);
  }

  #assertOpen(): void {
    if (this.#state === "closed") throw new GatewayError("bus_lost", "The bus is closed");
  }

  #assertSendable(bytes: Uint8Array): void {
    this.#assertUp();
    this.#assertFits(bytes);
    if (this.#waitingBytes + bytes.length > this.#hub.maxWaitingBytes) {
      throw new GatewayError("bus_full", `${this.#waitingBytes} bytes wait to be sent`);
    }
  }

  #assertFits(bytes: Uint8Array): void {
    if (bytes.length > this.maxMessageBytes) {
      throw new GatewayError(
        "bus_too_large",
        `Message of ${bytes.length} bytes: the bus takes ${this.maxMessageBytes}`,
      );
    }
  }

  #kept(handle: BusHandle): BusHandle {
    this.#handles.add(handle);
    return {
      close: () => {
        this.#handles.delete(handle);
        handle.close();
      },
    };
  }

  #lose(state: "lost" | "closed"): void {
    this.#state = state;
    if (this.#held !== null) this.#held = [];
    for (const { timer, reject } of this.#requests) {
      timer.cancel();
      reject(new GatewayError("bus_lost", "The bus was lost before an answer came"));
    }
    this.#requests.clear();
    this.#listeners.stateIs(state);
  }

  async #close(): Promise<void> {
    const { clock } = this.#hub;
    await new Promise<void>((resolve) => {
      const timer = clock.at(clock.nowMs() + CLOSE_GRACE_MS, resolve);
      void this.#listeners.runClosers().then(() => {
        timer.cancel();
        resolve();
      });
    });
    for (const handle of this.#handles) handle.close();
    for (const table of this.#tables) table.close();
    this.#lose("closed");
  }
}
