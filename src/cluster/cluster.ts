/**
 * A gateway as one node of several: its place among them, the sessions that it owns, and clients whose session another owns.
 * Everything that is asked of other nodes goes through here.
 */
import { GatewayError } from "../errors.ts";
import type { Clock } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import type { Bus, BusHandle } from "./bus/bus.ts";
import { NodeRegistry, type NodeView } from "./bus/node-registry.ts";
import { type ArrivedSocket, type OwnerConnection, Relay, type RelayHost } from "./relay/relay.ts";
import { SessionOwners } from "./session-owners.ts";

/** A session's node: this one, or the process that owns it. */
export type SessionPlace = "here" | { readonly owner: string };

export interface ClusterOptions {
  readonly bus: Bus;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Bytes of one client that wait at its node before the owner is told. */
  readonly slowBytes: number;
  readonly maxConnections: number;
  /** This node's sessions. */
  readonly sessions: {
    has(sessionId: string): boolean;
    /** Another node owns it: it ends here. */
    end(sessionId: string, error: GatewayError): void;
  };
}

/** Bytes under way to one node: a second of 300 listeners' mu-law with its events, generously. */
const WINDOW_BYTES = 4 * 1024 * 1024;

export class Cluster {
  readonly #options: ClusterOptions;
  readonly #nodes: NodeRegistry;
  readonly #owners: SessionOwners;
  readonly #handles: BusHandle[] = [];
  /** Which process had a node's name when it was heard last. */
  readonly #incarnations = new Map<string, string>();
  #relay: Pick<Relay<never, never>, "sizes" | "connect" | "nodeGone" | "close"> | null = null;

  private constructor(options: ClusterOptions, nodes: NodeRegistry, owners: SessionOwners) {
    this.#options = options;
    this.#nodes = nodes;
    this.#owners = owners;
    this.#handles.push(nodes.onChange((node) => this.#nodeChanged(node)));
  }

  /** Rejects with node_name_taken, bus_lost, bus_refused. The bus is the caller's to close. */
  static async join(options: ClusterOptions): Promise<Cluster> {
    const { bus, clock, log, nodeName: name, sessions } = options;
    const endAll = (): void =>
      log.error({ node: name }, "Another process has this node's name: no new sessions here");
    const facts = { url: "", load: 0, isDraining: false };
    const nodes = await NodeRegistry.join(bus, { name, facts, clock, log, onReplaced: endAll });
    try {
      const onLost = (sessionId: string): void => sessions.end(sessionId, movedAway());
      return new Cluster(options, nodes, await SessionOwners.open({ bus, nodes, log, onLost }));
    } catch (thrown) {
      await nodes.close();
      throw thrown;
    }
  }

  /** From now on clients that arrived at other nodes come to `host`. Rejects as the bus does. */
  async serve<Facts, Connection>(host: RelayHost<Facts, Connection>): Promise<void> {
    const { bus, slowBytes, maxConnections } = this.#options;
    const { incarnation } = this.#nodes;
    this.#relay = await Relay.open({
      bus,
      incarnation,
      host,
      windowBytes: WINDOW_BYTES,
      slowBytes,
      maxConnections,
    });
  }

  get nodes(): readonly NodeView[] {
    return this.#nodes.nodes;
  }

  /** Clients from here at other nodes, those of other nodes here, and sessions that this node owns. */
  get sizes(): { readonly arrived: number; readonly hosted: number; readonly owned: number } {
    return { ...(this.#relay?.sizes ?? { arrived: 0, hosted: 0 }), owned: this.#owners.sizes.held };
  }

  /** As far as it is known here; undefined: it has to be asked for. */
  known(sessionId: string): SessionPlace | undefined {
    if (this.#options.sessions.has(sessionId)) return "here";
    const owner = this.#owners.find(sessionId);
    return owner === undefined || owner.isHere || !this.#isAlive(owner)
      ? undefined
      : { owner: owner.incarnation };
  }

  /**
   * Where the session is; where it is nowhere, here: claimed for this node if whoever asks may open it. Rejects with bus_lost,
   * bus_timeout, both with a time after which it is worth trying again.
   */
  async place(sessionId: string, { mayOpen }: { readonly mayOpen: boolean }): Promise<SessionPlace> {
    const owner = mayOpen ? await this.#owners.claim(sessionId) : await this.#owners.lookUp(sessionId);
    return owner === undefined || owner.isHere ? "here" : { owner: owner.incarnation };
  }

  /** The epoch of a session that is opened here, as `hello` names it. Claims it where nobody has before. */
  opened(sessionId: string): string {
    const epoch = this.#owners.heldEpoch(sessionId);
    if (epoch !== undefined) return nameOf(epoch);
    this.#owners.claim(sessionId).then(
      ({ isHere }) => {
        // It may have ended meanwhile.
        if (isHere) this.releaseUnopened(sessionId);
        else this.#options.sessions.end(sessionId, movedAway());
      },
      (thrown: unknown) =>
        this.#options.log.warn({ err: thrown }, "A session could not be claimed: other nodes do not find it"),
    );
    return nameOf(Date.now() * 1000);
  }

  /** A session has ended here. */
  ended(sessionId: string): void {
    this.#owners.release(sessionId);
  }

  /** Whoever was to open a session that was claimed for this node was refused, or has gone. */
  releaseUnopened(sessionId: string): void {
    if (!this.#options.sessions.has(sessionId)) this.#owners.release(sessionId);
  }

  /** A client has arrived whose session that process owns. Throws bus_lost. */
  connect(owner: string, facts: object, socket: ArrivedSocket): OwnerConnection {
    if (this.#relay === null) throw new TypeError("Cluster does not serve yet");
    return this.#relay.connect(owner, facts, socket);
  }

  /** Where clients reach this node. */
  listensAt(url: string): void {
    this.#nodes.update({ url });
  }

  drain(): void {
    this.#nodes.update({ isDraining: true });
  }

  /** Idempotent. The bus goes on. */
  async close(): Promise<void> {
    for (const handle of this.#handles) handle.close();
    this.#relay?.close(new GatewayError("draining", "Gateway is shutting down"));
    this.#owners.close();
    await this.#nodes.close();
  }

  #isAlive({ node, incarnation }: { readonly node: string; readonly incarnation: string }): boolean {
    const view = this.#nodes.find(node);
    return view?.incarnation === incarnation && (view.state === "alive" || view.state === "suspect");
  }

  #nodeChanged({ name, incarnation, state }: NodeView): void {
    const before = this.#incarnations.get(name);
    if (before !== undefined && before !== incarnation) this.#relay?.nodeGone(before);
    if (state === "gone" || state === "left") {
      this.#incarnations.delete(name);
      this.#relay?.nodeGone(incarnation);
    } else this.#incarnations.set(name, incarnation);
  }
}

/** Epochs are microseconds since 1970. */
function nameOf(epoch: number): string {
  return `c${epoch.toString(36)}`;
}

/** It is retried by clients, which then find the session where it is. */
export function movedAway(): GatewayError {
  return new GatewayError("bus_lost", "Session is at another node: connect again", { retryAfterMs: 200 });
}
