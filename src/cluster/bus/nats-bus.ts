/**
 * The bus of nodes on many machines: core messages of NATS, and two buckets of JetStream in memory. A connection that is lost
 * is thrown away whole and another one is opened: what waited in it is gone with it, and nothing is sent later as if it were fresh.
 */
import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import { GatewayError, isErrorCode, toGatewayError } from "../../errors.ts";
import { type Clock, systemClock, type Timer } from "../../kit/clock.ts";
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
  MAX_OPEN_ANSWERS,
  type MessageListener,
  type RequestOptions,
} from "./bus.ts";
import { BusListeners, callSafely } from "./callbacks.ts";
import { Epochs } from "./epochs.ts";
import { loadNatsLibraries, type NatsLibraries, toBusError } from "./nats-libraries.ts";
import { connectionOptions, type NatsAccess, type NatsServers, parseNatsUrl } from "./nats-options.ts";
import { NatsTable } from "./nats-table.ts";
import { SendWindow } from "./send-window.ts";

export interface NatsBusOptions extends NatsAccess {
  /** Distinguishes clusters on the same servers: letters, digits, `_` and `-`; "voicewire" unless set. */
  readonly cluster?: string;
  readonly log?: Logger;
  readonly clock?: Clock;
  /** How long a lease holds without being renewed. Of a bucket that is there already its own counts. */
  readonly leaseMs?: number;
  /** What may wait to be sent. */
  readonly maxWaitingBytes?: number;
}

/** Older ones were never tried; 2.9 is Debian 12's. */
const OLDEST_SERVER = [2, 9] as const;
const RETRY_MS = { first: 100, most: 2000 } as const;
/** A bucket's replicas where as many servers are known. */
const MAX_REPLICAS = 3;
/** The code of an error that stands in place of an answer. */
const ERROR_HEADER = "Voicewire-Error";

type Link =
  | { readonly state: "up"; readonly connection: NatsConnection; readonly window: SendWindow }
  | { readonly state: "lost"; retry: Timer | undefined }
  | { readonly state: "closed" };

/** What somebody listens to, in every connection that comes. */
interface Listening {
  readonly subject: string;
  readonly hear: (message: Msg) => void;
  subscription: Subscription | undefined;
}

export class NatsBus implements Bus {
  readonly owners: NatsTable;
  readonly leases: NatsTable;
  readonly leaseMs: number;
  readonly #options: NatsBusOptions;
  readonly #servers: NatsServers;
  readonly #libraries: NatsLibraries;
  readonly #cluster: string;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #listeners: BusListeners;
  readonly #listenings = new Set<Listening>();
  #link: Link = { state: "lost", retry: undefined };
  #maxMessageBytes = DEFAULT_MAX_MESSAGE_BYTES;
  #knownServers = 1;
  #serverVersion = "";
  #openAnswers = 0;
  #closing: Promise<void> | null = null;

  private constructor(options: NatsBusOptions, libraries: NatsLibraries) {
    this.#options = options;
    this.#servers = parseNatsUrl(options.url);
    this.#libraries = libraries;
    this.#cluster = checkCluster(options.cluster ?? "voicewire");
    this.#log = options.log ?? silentLog;
    this.#clock = options.clock ?? systemClock;
    this.#listeners = new BusListeners(this.#log);
    this.leaseMs = options.leaseMs ?? DEFAULT_LEASE_MS;
    const shared = {
      maxMessageBytes: () => this.#maxMessageBytes,
      connection: () => this.#up().connection,
      wantedReplicas: () => (this.#knownServers >= MAX_REPLICAS ? MAX_REPLICAS : 1),
      libraries,
      epochs: new Epochs(this.#clock),
      log: this.#log,
    } as const;
    this.owners = new NatsTable({ ...shared, name: `${this.#cluster}_owners`, leaseMs: undefined });
    this.leases = new NatsTable({ ...shared, name: `${this.#cluster}_leases`, leaseMs: this.leaseMs });
  }

  /** Rejects where no server can be reached, or none that does. From then on a lost connection comes back by itself. */
  static async connect(options: NatsBusOptions): Promise<NatsBus> {
    const bus = new NatsBus(options, await loadNatsLibraries());
    try {
      await bus.#connect();
      await bus.owners.open();
      await bus.leases.open();
    } catch (error) {
      await bus.close();
      throw error;
    }
    return bus;
  }

  get state(): BusState {
    return this.#link.state;
  }

  get isReached(): boolean {
    return this.state === "up";
  }

  /** The version of the server that it was connected to last. */
  get serverVersion(): string {
    return this.#serverVersion;
  }

  get waitingBytes(): number {
    return this.#link.state === "up" ? this.#link.window.waitingBytes : 0;
  }

  get maxMessageBytes(): number {
    return this.#maxMessageBytes;
  }

  onState(listener: (state: BusState) => void): BusHandle {
    return this.#listeners.onState(listener);
  }

  publish(subject: string, bytes: Uint8Array): void {
    const { connection, window } = this.#sendable(bytes);
    connection.publish(this.#full(subject), bytes);
    window.sent(bytes.length);
  }

  subscribe(subject: string, listener: MessageListener): Promise<BusHandle> {
    return this.#listen(subject, ({ data }) => {
      callSafely(this.#log, subject, () => listener(data));
    });
  }

  async request(subject: string, bytes: Uint8Array, { timeoutMs }: RequestOptions): Promise<Uint8Array> {
    const { connection, window } = this.#sendable(bytes);
    const full = this.#full(subject);
    try {
      const asked = connection.request(full, bytes, { timeout: timeoutMs });
      window.sent(bytes.length);
      const answer = await asked;
      const code = answer.headers?.get(ERROR_HEADER) ?? "";
      if (code !== "") throw new GatewayError(isErrorCode(code) ? code : "internal", answer.string());
      return answer.data;
    } catch (error) {
      throw toBusError(error, `Request ${subject}`, this.#libraries);
    }
  }

  answer(subject: string, answerer: Answerer): Promise<BusHandle> {
    return this.#listen(subject, (message) => {
      void this.#answer(message, answerer).catch((error: unknown) => {
        // The one who asked runs into its deadline.
        this.#log.debug({ err: error, subject }, "An answer could not be sent");
      });
    });
  }

  onClose(action: () => Promise<void>): BusHandle {
    return this.#listeners.onClose(action);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  #full(subject: string): string {
    return `${this.#cluster}.${checkName(subject)}`;
  }

  #up(): Extract<Link, { state: "up" }> {
    if (this.#link.state !== "up") throw busLost(this.#link.state);
    return this.#link;
  }

  #sendable(bytes: Uint8Array): Extract<Link, { state: "up" }> {
    const link = this.#up();
    if (bytes.length > this.#maxMessageBytes) {
      throw new GatewayError(
        "bus_too_large",
        `Message of ${bytes.length} bytes: the bus takes ${this.#maxMessageBytes}`,
      );
    }
    const { waitingBytes } = link.window;
    if (waitingBytes + bytes.length > (this.#options.maxWaitingBytes ?? DEFAULT_MAX_WAITING_BYTES)) {
      throw new GatewayError("bus_full", `${waitingBytes} bytes wait to be sent`);
    }
    return link;
  }

  async #listen(subject: string, hear: (message: Msg) => void): Promise<BusHandle> {
    const listening: Listening = { subject: this.#full(subject), hear, subscription: undefined };
    if (this.#link.state === "closed") throw new GatewayError("bus_lost", "The bus is closed");
    this.#listenings.add(listening);
    if (this.#link.state === "up") {
      const { connection } = this.#link;
      this.#subscribe(connection, listening);
      // Lost meanwhile: it is subscribed again with the next connection.
      await connection.flush().catch(() => undefined);
    }
    return {
      close: () => {
        this.#listenings.delete(listening);
        listening.subscription?.unsubscribe();
      },
    };
  }

  #subscribe(connection: NatsConnection, listening: Listening): void {
    listening.subscription = connection.subscribe(listening.subject, {
      callback: (error, message) => {
        if (error === null) listening.hear(message);
        else
          this.#log.error(
            { err: toBusError(error, "Subscribe", this.#libraries) },
            "The bus refuses a subscription",
          );
      },
    });
  }

  async #answer(message: Msg, answerer: Answerer): Promise<void> {
    let answer: Uint8Array;
    try {
      if (this.#openAnswers >= MAX_OPEN_ANSWERS) {
        throw new GatewayError("bus_full", "Too many requests wait for an answer");
      }
      this.#openAnswers += 1;
      try {
        answer = await answerer(message.data);
      } finally {
        this.#openAnswers -= 1;
      }
      this.#sendable(answer);
    } catch (error) {
      const { code, message: text } = toGatewayError(error);
      const headers = this.#libraries.transport.headers();
      headers.set(ERROR_HEADER, code);
      message.respond(text, { headers });
      return;
    }
    message.respond(answer);
    if (this.#link.state === "up") this.#link.window.sent(answer.length);
  }

  async #connect(): Promise<void> {
    const { transport } = this.#libraries;
    const options = connectionOptions(this.#options, this.#servers, this.#libraries);
    let connection: NatsConnection;
    try {
      connection = await transport.connect({ ...options, name: this.#cluster });
    } catch (error) {
      throw toBusError(error, `Bus at ${this.#servers.addresses.join(", ")}`, this.#libraries);
    }
    if (this.#link.state !== "lost") {
      await connection.close();
      return;
    }
    const {
      version = "",
      max_payload = DEFAULT_MAX_MESSAGE_BYTES,
      connect_urls = [],
    } = connection.info ?? {};
    if (!isNewEnough(version)) {
      await connection.close();
      const oldest = OLDEST_SERVER.join(".");
      throw new GatewayError(
        "bus_refused",
        `nats-server ${version} is too old: update it to ${oldest} or newer`,
      );
    }
    this.#maxMessageBytes = max_payload;
    this.#serverVersion = version;
    this.#knownServers = Math.max(this.#servers.addresses.length, connect_urls.length);
    const window = new SendWindow(connection);
    this.#link = { state: "up", connection, window };
    void this.#follow(connection);
    void connection.closed().then((error) => this.#lost(connection, error));
    for (const listening of this.#listenings) this.#subscribe(connection, listening);
    this.#log.info({ server: connection.getServer(), version }, "The bus is up");
    for (const table of [this.owners, this.leases]) table.resync();
    this.#listeners.stateIs("up");
  }

  async #follow(connection: NatsConnection): Promise<void> {
    for await (const status of connection.status()) {
      // The library would wait until the last byte is written, which a server that hangs never takes.
      if (status.type === "staleConnection") this.#lost(connection, new Error("nats-server does not answer"));
      if (status.type === "error") {
        this.#log.error(
          { err: toBusError(status.error, "Bus", this.#libraries) },
          "nats-server refuses a message",
        );
      }
    }
  }

  #lost(connection: NatsConnection, error: unknown): void {
    if (this.#link.state !== "up" || this.#link.connection !== connection) return;
    this.#link = { state: "lost", retry: undefined };
    for (const listening of this.#listenings) listening.subscription = undefined;
    void connection.close();
    const err = toBusError(error ?? new Error("nats-server closed the connection"), "Bus", this.#libraries);
    this.#log.warn({ err, server: connection.getServer() }, "The bus is lost: tried again until it is up");
    this.#listeners.stateIs("lost");
    this.#retry(RETRY_MS.first);
  }

  #retry(afterMs: number): void {
    if (this.#link.state !== "lost") return;
    // Nodes that lost the same server do not come back in the same instant.
    const jitteredMs = afterMs * (0.5 + Math.random());
    this.#link.retry = this.#clock.at(this.#clock.nowMs() + jitteredMs, () => {
      void this.#connect().catch((error: unknown) => {
        this.#log.debug({ err: error }, "The bus is still lost");
        this.#retry(Math.min(afterMs * 2, RETRY_MS.most));
      });
    });
  }

  async #close(): Promise<void> {
    await this.#within(CLOSE_GRACE_MS, this.#listeners.runClosers());
    const link = this.#link;
    this.#link = { state: "closed" };
    for (const table of [this.owners, this.leases]) table.close();
    if (link.state === "lost") link.retry?.cancel();
    if (link.state === "up") {
      // The server knows before the connection ends: a request that comes later fails at once.
      for (const { subscription } of this.#listenings) subscription?.unsubscribe();
      await this.#within(CLOSE_GRACE_MS, link.connection.flush());
      await link.connection.close();
    }
    this.#listeners.stateIs("closed");
  }

  async #within(ms: number, work: Promise<void>): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#clock.at(this.#clock.nowMs() + ms, resolve);
      const done = (): void => {
        timer.cancel();
        resolve();
      };
      work.then(done, done);
    });
  }
}

function checkCluster(name: string): string {
  if (/^[\w-]{1,32}$/.test(name)) return name;
  throw new GatewayError("invalid_config", "The cluster's name is not 1 to 32 letters, digits, _ or -");
}

function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > OLDEST_SERVER[0] || (major === OLDEST_SERVER[0] && minor >= OLDEST_SERVER[1]);
}
