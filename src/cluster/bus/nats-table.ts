/** A table of keys in a bucket of JetStream. A bucket that is gone, as after all servers were down, is made again. */
import type { PushConsumer } from "@nats-io/jetstream";
import type { KV } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/transport-node";
import { GatewayError } from "../../errors.ts";
import type { Logger } from "../../kit/log.ts";
import {
  type BusHandle,
  type Claim,
  checkName,
  checkPrefix,
  type Entry,
  type KeyTable,
  LOST_RETRY_MS,
  type TableChange,
} from "./bus.ts";
import { callSafely } from "./callbacks.ts";
import type { Epochs } from "./epochs.ts";
import { isBucketMissing, isConflict, type NatsLibraries, toBusError } from "./nats-libraries.ts";
import { TableView } from "./table-view.ts";

export interface NatsTableOptions {
  /** The bucket's name: letters, digits, `_` and `-`. */
  readonly name: string;
  /** Undefined: entries stay. */
  readonly leaseMs: number | undefined;
  readonly maxMessageBytes: () => number;
  /** The connection that stands. Throws `bus_lost`. */
  readonly connection: () => NatsConnection;
  readonly wantedReplicas: () => 1 | 3;
  readonly libraries: NatsLibraries;
  readonly epochs: Epochs;
  readonly log: Logger;
}

/** Behind that the store has no leader, or its server hangs. */
const STORE_TIMEOUT_MS = 2000;
/** A value is kept behind its epoch, a float of 64 bits. */
const EPOCH_BYTES = 8;
const CLAIM_TRIES = 3;
const WATCH_RETRY_MS = 1000;
/** Behind the last entry that came of those that were present. */
const PRESENT_QUIET_MS = 500;

interface Bucket {
  readonly connection: NatsConnection;
  readonly kv: KV;
}

interface Watching {
  readonly view: TableView;
  /** Grows with each start: what an older one brings is dropped. */
  start: number;
  /** Resolves `watch`. */
  presentGiven(): void;
  /** Ends what runs for it now. */
  stop(): void;
}

export class NatsTable implements KeyTable {
  readonly #options: NatsTableOptions;
  readonly #watches = new Set<Watching>();
  #bucket: Promise<Bucket> | null = null;

  constructor(options: NatsTableOptions) {
    this.#options = options;
  }

  /** Makes the bucket where there is none; a failure of it is the caller's. */
  async open(): Promise<void> {
    await this.#call("open", async () => undefined);
  }

  claim(key: string, value: Uint8Array): Promise<Claim> {
    checkName(key);
    return this.#call("claim", async (bucket) => {
      for (let tries = 0; tries < CLAIM_TRIES; tries += 1) {
        const epoch = this.#options.epochs.next();
        try {
          const revision = await bucket.kv.create(key, this.#stored(value, epoch));
          return { isOurs: true, entry: { key, value, epoch, revision } };
        } catch (error) {
          if (!isConflict(error, this.#options.libraries)) throw error;
        }
        const holder = await this.#read(bucket, key);
        if (holder !== undefined) return { isOurs: false, entry: holder };
      }
      throw new GatewayError("bus_timeout", `claim: the key changed ${CLAIM_TRIES} times meanwhile`, {
        retryAfterMs: LOST_RETRY_MS,
      });
    });
  }

  takeOver(entry: Entry, value: Uint8Array): Promise<Entry | undefined> {
    this.#options.epochs.see(entry.epoch);
    return this.#replace(entry, value, this.#options.epochs.next());
  }

  renew(entry: Entry, value: Uint8Array): Promise<Entry | undefined> {
    return this.#replace(entry, value, entry.epoch);
  }

  async release(entry: Entry): Promise<boolean> {
    const { libraries, name } = this.#options;
    return this.#swap("release", entry, false, async ({ connection }) => {
      const { key, revision } = entry;
      const headers = libraries.transport.headers();
      headers.set("KV-Operation", "DEL");
      const jetstream = libraries.jetstream.jetstream(connection, { timeout: STORE_TIMEOUT_MS });
      // The mark of a deletion reaches those who watch. It would stay for ever, one for each key there ever was: it goes again.
      const mark = await jetstream.publish(`$KV.${name}.${key}`, new Uint8Array(), {
        headers,
        expect: { lastSubjectSequence: revision },
      });
      const manager = await this.#manager(connection);
      await manager.streams.deleteMessage(`KV_${name}`, mark.seq, false);
      return true;
    });
  }

  find(key: string): Promise<Entry | undefined> {
    checkName(key);
    return this.#call("find", (bucket) => this.#read(bucket, key));
  }

  async watch(prefix: string, listener: (change: TableChange) => void): Promise<BusHandle> {
    const { epochs, log } = this.#options;
    const view = new TableView(checkPrefix(prefix), (change) => {
      if (change.entry !== undefined) epochs.see(change.entry.epoch);
      callSafely(log, "watch", () => listener(change));
    });
    let presentGiven: () => void = () => undefined;
    const isTold = new Promise<void>((resolve) => {
      presentGiven = resolve;
    });
    const watching: Watching = { view, start: 0, presentGiven, stop: () => undefined };
    this.#watches.add(watching);
    try {
      await this.#follow(watching);
    } catch (error) {
      this.#forget(watching);
      throw error;
    }
    await isTold;
    return { close: () => this.#forget(watching) };
  }

  /** The connection stands again: watches begin again, and bring what differs. */
  resync(): void {
    for (const watching of this.#watches) this.#restart(watching);
  }

  close(): void {
    for (const watching of [...this.#watches]) this.#forget(watching);
  }

  #replace(entry: Entry, value: Uint8Array, epoch: number): Promise<Entry | undefined> {
    return this.#swap("write", entry, undefined, async ({ kv }) => {
      const { key } = entry;
      const revision = await kv.update(key, this.#stored(value, epoch), entry.revision);
      return { key, value, epoch, revision };
    });
  }

  /** Runs `write` where exactly this entry stands. Its revision alone could be another entry's, of a store made again. */
  #swap<T>(what: string, entry: Entry, otherwise: T, write: (bucket: Bucket) => Promise<T>): Promise<T> {
    return this.#call(what, async (bucket) => {
      const current = await this.#read(bucket, entry.key);
      if (current?.epoch !== entry.epoch || current.revision !== entry.revision) return otherwise;
      try {
        return await write(bucket);
      } catch (error) {
        if (isConflict(error, this.#options.libraries)) return otherwise;
        throw error;
      }
    });
  }

  async #read({ kv }: Bucket, key: string): Promise<Entry | undefined> {
    const found = await kv.get(key);
    if (found === null || found.operation !== "PUT") return undefined;
    const entry = readEntry(key, found.value, found.revision);
    if (entry !== undefined) this.#options.epochs.see(entry.epoch);
    return entry;
  }

  #stored(value: Uint8Array, epoch: number): Uint8Array {
    const maxBytes = this.#options.maxMessageBytes() - EPOCH_BYTES;
    if (value.length > maxBytes) {
      throw new GatewayError("bus_too_large", `Entry of ${value.length} bytes: the bus takes ${maxBytes}`);
    }
    const stored = new Uint8Array(EPOCH_BYTES + value.length);
    new DataView(stored.buffer).setFloat64(0, epoch);
    stored.set(value, EPOCH_BYTES);
    return stored;
  }

  /** Once more where the bucket was gone. */
  async #call<T>(what: string, act: (bucket: Bucket) => Promise<T>): Promise<T> {
    const { libraries, name, connection } = this.#options;
    const where = `${what} in ${name}`;
    try {
      try {
        return await act(await this.#open(connection()));
      } catch (error) {
        if (!isBucketMissing(error, libraries)) throw error;
        this.#bucket = null;
        const done = await act(await this.#open(connection()));
        this.resync();
        return done;
      }
    } catch (error) {
      const failed = toBusError(error, where, libraries);
      // Nobody answers for the store: that is no node that is gone.
      if (failed.code !== "bus_no_answer") throw failed;
      throw new GatewayError("bus_lost", `${where}: the store does not answer`, {
        cause: error,
        retryAfterMs: LOST_RETRY_MS,
      });
    }
  }

  async #open(connection: NatsConnection): Promise<Bucket> {
    const opened = await this.#bucket?.catch(() => null);
    if (opened?.connection === connection) return opened;
    const bucket = this.#make(connection);
    this.#bucket = bucket;
    return bucket;
  }

  async #make(connection: NatsConnection): Promise<Bucket> {
    const { libraries, name, leaseMs, wantedReplicas } = this.#options;
    const jetstream = libraries.jetstream.jetstream(connection, { timeout: STORE_TIMEOUT_MS });
    const kv = await new libraries.kv.Kvm(jetstream).create(name, {
      history: 1,
      storage: libraries.jetstream.StorageType.Memory,
      replicas: wantedReplicas(),
      // Only the store's leader answers: others may be behind.
      allow_direct: false,
      timeout: STORE_TIMEOUT_MS,
      ...(leaseMs !== undefined && { ttl: leaseMs }),
    });
    return { connection, kv };
  }

  #manager(connection: NatsConnection) {
    return this.#options.libraries.jetstream.jetstreamManager(connection, {
      timeout: STORE_TIMEOUT_MS,
      checkAPI: false,
    });
  }

  async #follow(watching: Watching): Promise<void> {
    const { libraries, name } = this.#options;
    watching.start += 1;
    const { start } = watching;
    const consumer = await this.#call("watch", async ({ connection }) => {
      const jetstream = libraries.jetstream.jetstream(connection, { timeout: STORE_TIMEOUT_MS });
      return jetstream.consumers.getPushConsumer(`KV_${name}`, {
        deliver_policy: libraries.jetstream.DeliverPolicy.LastPerSubject,
        filter_subjects: `$KV.${name}.${watching.view.prefix}>`,
      });
    });
    if (watching.start === start && this.#watches.has(watching)) await this.#consume(watching, consumer);
  }

  async #consume(watching: Watching, consumer: PushConsumer): Promise<void> {
    const { view } = watching;
    const subjectChars = `$KV.${this.#options.name}.`.length;
    let present: Entry[] | null = [];
    let quiet: NodeJS.Timeout | undefined;
    const givePresent = (): void => {
      clearTimeout(quiet);
      if (present === null) return;
      const entries = present;
      present = null;
      view.replaceAll(entries);
      watching.presentGiven();
    };
    const messages = await consumer.consume({
      callback: (message) => {
        const key = message.subject.slice(subjectChars);
        const isWritten = (message.headers?.get("KV-Operation") ?? "") === "";
        const entry = isWritten ? readEntry(key, message.data, message.seq) : undefined;
        if (present === null) {
          if (entry === undefined) view.released(key);
          else view.written(entry);
          return;
        }
        if (entry !== undefined) present.push(entry);
        if (message.info.pending === 0) givePresent();
        else quiet?.refresh();
      },
    });
    watching.stop = () => {
      clearTimeout(quiet);
      present = null;
      messages.stop();
    };
    void this.#restartWhenBroken(watching, messages.status());
    const { num_pending: presentCount } = await consumer.info(true);
    // The last of them may have been released before it was sent.
    if (presentCount === 0) givePresent();
    else if (present !== null) quiet = setTimeout(givePresent, PRESENT_QUIET_MS);
  }

  /** The library goes on behind what it has seen last: in a bucket that was made again that may never come. */
  async #restartWhenBroken(watching: Watching, statuses: AsyncIterable<{ type: string }>): Promise<void> {
    for await (const { type } of statuses) {
      if (!["ordered_consumer_recreated", "stream_not_found", "consumer_deleted"].includes(type)) continue;
      this.#restart(watching);
      return;
    }
  }

  #restart(watching: Watching): void {
    watching.stop();
    watching.stop = () => undefined;
    void this.#follow(watching).catch((error: unknown) => {
      if (!this.#watches.has(watching)) return;
      this.#options.log.debug({ err: error }, "A watch of the bus did not begin: tried again");
      const timer = setTimeout(() => this.#restart(watching), WATCH_RETRY_MS);
      watching.stop = () => clearTimeout(timer);
    });
  }

  #forget(watching: Watching): void {
    this.#watches.delete(watching);
    watching.stop();
  }
}

/** Undefined where somebody else wrote into the bucket. */
function readEntry(key: string, stored: Uint8Array, revision: number): Entry | undefined {
  if (stored.length < EPOCH_BYTES) return undefined;
  const epoch = new DataView(stored.buffer, stored.byteOffset).getFloat64(0);
  if (!Number.isSafeInteger(epoch)) return undefined;
  return { key, value: stored.subarray(EPOCH_BYTES), epoch, revision };
}
