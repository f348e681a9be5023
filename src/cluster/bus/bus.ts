/**
 * What the nodes of a cluster say to one another, and the two tables that they share. `MemoryHub` hands out buses inside one
 * process, `NatsBus` speaks to nats-server; test/cluster/bus.test.ts holds both to what is written here.
 *
 * Every failure is a `GatewayError`: `bus_lost` (no connection, or no store), `bus_timeout`, `bus_no_answer`, `bus_full`,
 * `bus_too_large`, `bus_refused`. A key or subject that is none throws a `TypeError`.
 */
import { GatewayError } from "../../errors.ts";

/** "lost": nothing is sent or heard. The bus comes back by itself; "closed" is final. */
export type BusState = "up" | "lost" | "closed";

/** An entry of a table as it was when it was read or written: what `takeOver`, `renew` and `release` compare. */
export interface Entry {
  readonly key: string;
  /** Not to be changed by who reads it. */
  readonly value: Uint8Array;
  /**
   * Fencing number, a whole number below 2^53: who sees a newer epoch of a key stops acting on an older one. Grows with each
   * new holder while the entry lives. It is no count, so that it also grows where the store was lost: it begins at the
   * microseconds of the wall clock, and behind every epoch that this node has seen.
   */
  readonly epoch: number;
  /** The store's own number of this write. */
  readonly revision: number;
}

export interface Claim {
  /** False: `entry` is the one that holds the key. */
  readonly isOurs: boolean;
  readonly entry: Entry;
}

/** `entry` is undefined once the key is free again. Leases that expire are not reported: servers before 2.11 do not say so. */
export interface TableChange {
  readonly key: string;
  readonly entry: Entry | undefined;
}

/**
 * Keys with one holder each. Writes compare and swap: of two that change the same entry, one wins. A call that fails with
 * `bus_timeout` or `bus_lost` may have been carried out: claim again, and look whether the holder is oneself.
 */
export interface KeyTable {
  /** Writes a key that is free, or gives the entry that holds it. */
  claim(key: string, value: Uint8Array): Promise<Claim>;
  /** Puts a new holder in the place of exactly this entry, with a new epoch. Undefined where another was faster. */
  takeOver(entry: Entry, value: Uint8Array): Promise<Entry | undefined>;
  /** Writes this entry again with the same epoch; a lease begins from now. Undefined where another holds the key by now. */
  renew(entry: Entry, value: Uint8Array): Promise<Entry | undefined>;
  /** Deletes exactly this entry. False where another holds the key by now, or nobody. */
  release(entry: Entry): Promise<boolean>;
  /** May be as old as the call: decide by `claim` and `takeOver`, never by this. */
  find(key: string): Promise<Entry | undefined>;
  /**
   * Calls with each entry whose key begins with `prefix` (words that each end with a dot; "" is every entry), then with each
   * change. Resolves once the present entries were given. Behind a loss only what differs from before is given.
   */
  watch(prefix: string, listener: (change: TableChange) => void): Promise<BusHandle>;
}

/** A subscription, an answerer, a watch: ends once, however often it is asked to. */
export interface BusHandle {
  close(): void;
}

export type MessageListener = (bytes: Uint8Array) => void;
/** What it throws reaches the one who asked: a `GatewayError` with its code, anything else as `internal`. */
export type Answerer = (bytes: Uint8Array) => Uint8Array | Promise<Uint8Array>;

/**
 * Bytes that are handed over belong to the bus, bytes that come are not to be changed. Listeners are never called inside the
 * call that made them happen; what they throw is logged. A publisher hears itself where it subscribes.
 */
export interface Bus {
  /** Who owns what: entries stay until they are released. */
  readonly owners: KeyTable;
  /** Entries that are free again when they were not renewed for `leaseMs`. */
  readonly leases: KeyTable;
  readonly leaseMs: number;
  /** Longest message, without its subject. */
  readonly maxMessageBytes: number;
  readonly state: BusState;
  /** Whether its server is reached. A bus that works for a node alone until then is up, and does not reach it. */
  readonly isReached: boolean;
  /** Bytes that were published and have not reached the server, about. */
  readonly waitingBytes: number;
  /** Called with each change. What was published while a listener's bus was lost never comes: state is to be asked for again. */
  onState(listener: (state: BusState) => void): BusHandle;
  /**
   * At most once, to all who subscribe; in order for each publisher and subject. Throws `bus_lost`, `bus_too_large`, and
   * `bus_full` when `maxWaitingBytes` wait to be sent: nothing is sent then. Nothing is kept while the bus is lost.
   */
  publish(subject: string, bytes: Uint8Array): void;
  /** Resolves once messages are heard; while the bus is lost at once, and they are heard when it is up. */
  subscribe(subject: string, listener: MessageListener): Promise<BusHandle>;
  /**
   * The first answer. Rejects with `bus_no_answer` at once where nobody answers, with `bus_timeout` behind `timeoutMs` (the
   * other may have acted), and as `publish` does.
   */
  request(subject: string, bytes: Uint8Array, options: RequestOptions): Promise<Uint8Array>;
  /** Answers requests, at most 4096 at once: more get `bus_full`. One node answers a subject. */
  answer(subject: string, answerer: Answerer): Promise<BusHandle>;
  /** `action` runs when the bus is closed, while it still works, for at most a second. */
  onClose(action: () => Promise<void>): BusHandle;
  /** Any number of times; resolves when all is let go. */
  close(): Promise<void>;
}

export interface RequestOptions {
  readonly timeoutMs: number;
}

/** Requests that a bus answers at the same time. */
export const MAX_OPEN_ANSWERS = 4096;
/** Bytes that wait to be sent, or to be heard by a node that hangs. */
export const DEFAULT_MAX_WAITING_BYTES = 8 * 1024 * 1024;
export const DEFAULT_MAX_MESSAGE_BYTES = 1024 * 1024;
/** Longer than a store of three servers takes to find a new leader (6.5 s), and renewed each second. */
export const DEFAULT_LEASE_MS = 12_000;
/** How long `close` waits for what `onClose` began, and for what is being sent. */
export const CLOSE_GRACE_MS = 1000;
/** A server that is lost is tried again each 0.1 to 3 s. Clients are told so with `bus_lost` and `bus_timeout`. */
export const LOST_RETRY_MS = 1000;

const MAX_NAME_CHARS = 255;

/** What a bus throws that can't send now. */
export function busLost(state: BusState): GatewayError {
  return new GatewayError("bus_lost", `The bus is ${state}`, { retryAfterMs: LOST_RETRY_MS });
}

/** Keys and subjects are words of letters, digits, `_`, `-` and `=` with dots between them: what every server takes. */
export function checkName(name: string): string {
  if (name.length > MAX_NAME_CHARS || !/^[\w=-]+(?:\.[\w=-]+)*$/.test(name)) {
    throw new TypeError(
      `Not a key or subject: ${JSON.stringify(name.slice(0, 64))}, expected words with dots between`,
    );
  }
  return name;
}

export function checkPrefix(prefix: string): string {
  if (prefix !== "" && !prefix.endsWith("."))
    throw new TypeError("Not a prefix: expected words that each end with a dot");
  if (prefix !== "") checkName(prefix.slice(0, -1));
  return prefix;
}
