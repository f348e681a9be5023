/**
 * Clients that arrived at one node, and sessions that another one owns. The node where a client arrived passes its messages
 * on and hands it what comes back; the owner treats it like a client of its own.
 *
 *   client --socket--> its node: connect() ----bus----> owner: host.opened() --> session
 *   client <--socket-- ArrivedSocket <---------bus----- RelayedListener <-- deliver, notify, end
 */
import type { Delivery, Listener, SendResult } from "../../delivery/listener.ts";
import { ERRORS, GatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import { ABNORMAL_CLOSURE, POLICY_VIOLATION } from "../../kit/close-codes.ts";
import { laterMs } from "../../kit/spread.ts";
import type { Event } from "../../protocol/events.ts";
import type { OffsetUnit } from "../../protocol/vocabulary.ts";
import type { Bus, BusHandle } from "../bus/bus.ts";
import { type RelayDelivery, type RelayItem, readRelayMessage } from "./relay-format.ts";
import { type ConnectionRecord, RelayLink, type RelayLinkOptions, relayLost } from "./relay-link.ts";

/** What a client that arrived at another node asks for. `Facts`: what the owner has to know of it, as JSON. */
export interface RelayHost<Facts, Connection> {
  /** undefined: the facts can't be read; the connection is ended. */
  readFacts(value: unknown): Facts | undefined;
  opened(facts: Facts, listener: RelayedListener): Connection;
  /** Its bytes are lent for the call. */
  message(connection: Connection, item: RelayItem): void;
  drained(connection: Connection): void;
  /** Once, behind everything else. `code` as the client's node saw it. */
  closed(connection: Connection, code: number): void;
}

/** A client's socket at the node where it arrived. */
export interface ArrivedSocket {
  send(items: readonly RelayItem[]): SendResult;
  bufferedBytes(): number;
  /** Its close handler calls `closed` of what `connect` gave. `retryAfterMs`: where its session's node can't say when to come back. */
  end(closeCode: number, reason: string, retryAfterMs?: number): void;
}

/** The way of one client's messages to the owner. */
export interface OwnerConnection {
  /** Ends the client's socket where it is too large, or far more is on its way than may be (bus_too_large, bus_full). */
  message(item: RelayItem): void;
  /** So much is on its way that what the client says next has to wait. */
  readonly isFull: boolean;
  /** Calls `goOn` once, when there is room again or the connection is over. One for a connection at a time. */
  whenRoom(goOn: () => void): void;
  /** Its socket has taken all. */
  drained(): void;
  /** Idempotent. */
  closed(code: number): void;
}

export interface RelayOptions<Facts, Connection> {
  readonly bus: Bus;
  readonly clock: Clock;
  /** This process: unlike that of any other, also of one that had the same name before. */
  readonly incarnation: string;
  readonly host: RelayHost<Facts, Connection>;
  /** Bytes under way to one node. */
  readonly windowBytes: number;
  /** Where so many bytes wait for a client, its owner gets to know. */
  readonly slowBytes: number;
  /** Connections with one other node. */
  readonly maxConnections: number;
}

/** What crossed the bus between this node and all others, since its start. */
interface RelayTraffic {
  readonly messagesIn: number;
  readonly bytesIn: number;
  readonly messagesOut: number;
  readonly bytesOut: number;
}

const OVERFULL_RETRY_MS = 1000;
/** So often each link with clients says something: who waits on the other side learns that a message is missing. */
const LOOK_MS = 1000;
/** A link with clients may be silent for longer than a node that hangs is waited for. */
const MAX_SILENT_LOOKS = 5;
const MAX_GENERATIONS = 1000;

export class Relay<Facts, Connection> {
  readonly #options: RelayOptions<Facts, Connection>;
  readonly #peers = new Map<string, Peer<Facts, Connection>>();
  /** Of processes that were taken for ended, and may not be: the generation that the link with each goes on with. */
  readonly #generations = new Map<string, number>();
  readonly #traffic = { messagesIn: 0, bytesIn: 0, messagesOut: 0, bytesOut: 0 };
  #handles: BusHandle[] = [];
  #timer: Timer;
  #isClosed = false;

  private constructor(options: RelayOptions<Facts, Connection>) {
    this.#options = options;
    this.#timer = this.#lookSoon();
  }

  get traffic(): RelayTraffic {
    return this.#traffic;
  }

  /** Rejects as the bus does. */
  static async open<F, C>(options: RelayOptions<F, C>): Promise<Relay<F, C>> {
    const relay = new Relay(options);
    const { bus, incarnation } = options;
    relay.#handles = [
      await bus.subscribe(subjectOf(incarnation), (bytes) => relay.#read(bytes)),
      bus.onState((state) => {
        if (state !== "up") relay.#loseAll(relayLost("the bus is lost"));
      }),
    ];
    return relay;
  }

  /** Connections from here to other nodes, and from other nodes to here. */
  get sizes(): { readonly arrived: number; readonly hosted: number } {
    let arrived = 0;
    let hosted = 0;
    for (const peer of this.#peers.values()) {
      arrived += peer.arrived.size;
      hosted += peer.hosted.size;
    }
    return { arrived, hosted };
  }

  /**
   * A client has arrived here whose session that process owns. `facts`: what `readFacts` of the other side reads, as JSON.
   * Throws bus_lost, bus_full.
   */
  connect(owner: string, facts: object, socket: ArrivedSocket): OwnerConnection {
    if (this.#isClosed || this.#options.bus.state !== "up") throw relayLost("the bus is lost");
    return this.#peer(owner).connect(facts, socket);
  }

  /** That process has ended, or is taken for ended. */
  nodeGone(incarnation: string): void {
    const peer = this.#peers.get(incarnation);
    if (peer === undefined) return;
    this.#peers.delete(incarnation);
    peer.end(relayLost("the node is gone"));
    this.#generations.set(incarnation, peer.generation);
    for (const oldest of this.#generations.keys()) {
      if (this.#generations.size <= MAX_GENERATIONS) break;
      this.#generations.delete(oldest);
    }
  }

  /** Idempotent. */
  close(error: GatewayError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timer.cancel();
    for (const handle of this.#handles) handle.close();
    for (const peer of this.#peers.values()) {
      // Sessions that have ended here have said so to their clients.
      peer.flush();
      peer.end(error);
    }
    this.#peers.clear();
  }

  #lookSoon(): Timer {
    const { clock } = this.#options;
    return clock.at(clock.nowMs() + LOOK_MS, () => {
      this.#timer = this.#lookSoon();
      for (const [incarnation, peer] of [...this.#peers]) {
        peer.breakSilence();
        // What a process had said may be read after its end: nobody says then that its clients have gone.
        if (peer.isForsaken) this.nodeGone(incarnation);
      }
    });
  }

  #loseAll(error: GatewayError): void {
    for (const peer of this.#peers.values()) peer.lose(error);
  }

  #read(bytes: Uint8Array): void {
    this.#traffic.messagesIn += 1;
    this.#traffic.bytesIn += bytes.length;
    const message = readRelayMessage(bytes);
    if (message !== undefined) this.#peer(message.from).read(message, bytes.length);
  }

  /** Throws as the bus does. */
  #publish(incarnation: string, bytes: Uint8Array): void {
    this.#options.bus.publish(subjectOf(incarnation), bytes);
    this.#traffic.messagesOut += 1;
    this.#traffic.bytesOut += bytes.length;
  }

  #peer(incarnation: string): Peer<Facts, Connection> {
    const known = this.#peers.get(incarnation);
    if (known !== undefined) return known;
    const generation = this.#generations.get(incarnation) ?? 0;
    this.#generations.delete(incarnation);
    const peer = new Peer(this.#options, {
      generation,
      publish: (bytes) => this.#publish(incarnation, bytes),
    });
    this.#peers.set(incarnation, peer);
    return peer;
  }
}

/** Both ways with one other process. */
class Peer<Facts, Connection> {
  readonly #options: RelayOptions<Facts, Connection>;
  readonly #link: RelayLink;
  /** Clients of this node, by the number that this node gave them. */
  readonly arrived = new Map<number, Arrived>();
  /** Clients of the other node, by the number that it gave them. */
  readonly hosted = new Map<number, Hosted<Connection>>();
  /** What clients of this node wait with: one for each at most. */
  readonly #waiting: (() => void)[] = [];
  #nextNumber = 1;
  /** Looks in a row before which nothing came, though there are clients. */
  #silentLooks = 0;

  constructor(
    options: RelayOptions<Facts, Connection>,
    { generation, publish }: Pick<RelayLinkOptions, "publish"> & { readonly generation: number },
  ) {
    this.#options = options;
    const { bus, windowBytes } = options;
    this.#link = new RelayLink({
      from: options.incarnation,
      publish,
      generation,
      maxMessageBytes: bus.maxMessageBytes,
      windowBytes,
      onRecord: (record) => this.#take(record),
      onRoom: () => {
        for (const hosted of [...this.hosted.values()]) this.#drained(hosted);
        this.#goOn();
      },
      onLost: (error) => this.#lost(error),
    });
  }

  connect(facts: object, socket: ArrivedSocket): OwnerConnection {
    const link = this.#link;
    if (link.isOverfull) throw overfull();
    const number = this.#nextNumber++;
    const arrived: Arrived = { socket, reportedBytes: 0 };
    this.arrived.set(number, arrived);
    const isThere = (): boolean => this.arrived.get(number) === arrived;
    link.write((writer) => writer.open(number, facts));
    return {
      message: (item) => {
        if (!isThere()) return;
        if (link.isOverfull) socket.end(ERRORS.bus_full.closeCode, "bus_full");
        else if (!link.message(number, item)) {
          socket.end(ERRORS.bus_too_large.closeCode, "bus_too_large");
        }
      },
      get isFull() {
        return isThere() && link.isFull;
      },
      whenRoom: (goOn) => this.#waiting.push(goOn),
      drained: () => {
        if (!isThere() || arrived.reportedBytes === 0) return;
        arrived.reportedBytes = 0;
        link.write((writer) => writer.buffered(number, 0));
      },
      closed: (code) => {
        if (!isThere()) return;
        this.arrived.delete(number);
        link.write((writer) => writer.closed(number, code));
      },
    };
  }

  read(message: Parameters<RelayLink["read"]>[0], length: number): void {
    this.#silentLooks = 0;
    this.#link.read(message, length);
  }

  get generation(): number {
    return this.#link.generation;
  }

  lose(error: GatewayError): void {
    this.#link.lose(error);
  }

  breakSilence(): void {
    const hasClients = this.arrived.size + this.hosted.size > 0;
    this.#silentLooks = hasClients ? this.#silentLooks + 1 : 0;
    this.#link.breakSilence(hasClients);
  }

  /** The other process would have said something. */
  get isForsaken(): boolean {
    return this.#silentLooks > MAX_SILENT_LOOKS;
  }

  flush(): void {
    this.#link.flush();
  }

  end(error: GatewayError): void {
    this.#link.lose(error);
    this.#link.close();
  }

  #take(record: ConnectionRecord): void {
    if (record.kind === "deliver") {
      for (const number of record.connections) this.#deliver(number, record.items);
    } else if (record.kind === "end") {
      this.arrived.get(record.connection)?.socket.end(record.code, record.reason);
    } else if (record.kind === "open") {
      this.#open(record.connection, record.arrival);
    } else {
      this.#takeOfHosted(record);
    }
  }

  #takeOfHosted(record: Extract<ConnectionRecord, { kind: "message" | "buffered" | "closed" }>): void {
    const hosted = this.hosted.get(record.connection);
    if (hosted === undefined) return;
    const { host } = this.#options;
    if (record.kind === "message") host.message(hosted.connection, record.item);
    else if (record.kind === "closed") this.#closed(record.connection, record.code);
    else {
      hosted.listener.reportedBytes = record.bytes;
      if (record.bytes === 0) this.#drained(hosted);
    }
  }

  #deliver(number: number, items: readonly RelayItem[]): void {
    const arrived = this.arrived.get(number);
    if (arrived === undefined) return;
    const { socket } = arrived;
    if (socket.send(items) === "sent") return;
    const bytes = socket.bufferedBytes();
    // Reported again when it has doubled.
    if (bytes < Math.max(this.#options.slowBytes, 2 * arrived.reportedBytes)) return;
    arrived.reportedBytes = bytes;
    this.#link.write((writer) => writer.buffered(number, bytes));
  }

  #open(number: number, value: unknown): void {
    const { host, maxConnections } = this.#options;
    const facts = host.readFacts(value);
    if (facts === undefined || this.hosted.has(number) || this.hosted.size >= maxConnections) {
      this.#link.write((writer) => writer.end(number, POLICY_VIOLATION, "relay_refused"));
      return;
    }
    const listener = new RelayedListener(this.#link, number);
    this.hosted.set(number, { listener, connection: host.opened(facts, listener) });
  }

  #drained({ listener, connection }: Hosted<Connection>): void {
    if (!listener.isClosed) this.#options.host.drained(connection);
  }

  #closed(number: number, code: number): void {
    const hosted = this.hosted.get(number);
    if (hosted === undefined) return;
    this.hosted.delete(number);
    hosted.listener.markClosed();
    this.#options.host.closed(hosted.connection, code);
  }

  #lost(error: GatewayError): void {
    for (const number of [...this.hosted.keys()]) this.#closed(number, ABNORMAL_CLOSURE);
    const arrived = [...this.arrived.values()];
    this.arrived.clear();
    const { closeCode, code, retryAfterMs = 0 } = error;
    for (const [index, { socket }] of arrived.entries())
      socket.end(closeCode, code, retryAfterMs + laterMs(index, arrived.length));
    this.#goOn();
  }

  /** In the order in which they began to wait. */
  #goOn(): void {
    for (const goOn of this.#waiting.splice(0)) goOn();
  }
}

function overfull(): GatewayError {
  return new GatewayError("bus_full", "More is on its way to the session's node than the gateway keeps", {
    retryAfterMs: OVERFULL_RETRY_MS,
  });
}

interface Arrived {
  readonly socket: ArrivedSocket;
  /** What its owner knows. */
  reportedBytes: number;
}

interface Hosted<Connection> {
  readonly listener: RelayedListener;
  readonly connection: Connection;
}

/** A client that arrived at another node, as its session sees it. */
export class RelayedListener implements Listener {
  readonly surface = "other node";
  readonly #link: RelayLink;
  readonly #number: number;
  /** Bytes that waited for the client by the last report of its node. */
  reportedBytes = 0;
  #isClosed = false;
  #isEnded = false;

  constructor(link: RelayLink, number: number) {
    this.#link = link;
    this.#number = number;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }
  /** Whether it was ended from here: what its client still says is not wanted. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  deliver(batch: readonly Delivery[], offsets: OffsetUnit): SendResult {
    if (this.#isClosed) return "sent";
    this.#link.deliver(this.#number, batch, offsets);
    return this.#result;
  }

  /** Messages of any kind: a string is text. */
  send(messages: readonly (string | Uint8Array)[]): SendResult {
    if (this.#isClosed || messages.length === 0) return "sent";
    this.#link.deliver(this.#number, messages.map(deliveryOf), "utf16");
    return this.#result;
  }

  notify(event: Event): SendResult {
    if (this.#isClosed) return "sent";
    this.#link.write((writer) => writer.text(this.#number, JSON.stringify(event)));
    return this.#result;
  }

  /** Where the link is full, more than any listener may have waiting. */
  bufferedBytes(): number {
    if (this.#isClosed) return 0;
    return this.#link.isFull ? Number.POSITIVE_INFINITY : this.reportedBytes;
  }

  end(closeCode: number, reason: string): void {
    if (this.#isEnded || this.#isClosed) return;
    this.#isEnded = true;
    this.#link.write((writer) => writer.end(this.#number, closeCode, reason));
  }

  markClosed(): void {
    this.#isClosed = true;
  }

  /** What has come from another node goes to no third. */
  arrived(): null {
    return null;
  }

  get #result(): SendResult {
    return this.#link.isFull || this.reportedBytes > 0 ? "buffered" : "sent";
  }
}

function deliveryOf(message: string | Uint8Array): RelayDelivery {
  if (typeof message !== "string") return message;
  const bytes = Buffer.from(message, "utf8");
  return { json: () => bytes };
}

function subjectOf(incarnation: string): string {
  return `relay.${incarnation}`;
}
