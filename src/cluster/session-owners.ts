/**
 * Which node owns which session: one entry for each session, written by its owner and released when the session has ended.
 * An owner that is gone is followed by whoever claims next; its epoch is older then, and it ends the session when it sees that.
 */
import { GatewayError } from "../errors.ts";
import type { Clock, Timer } from "../kit/clock.ts";
import { type Logger, silentLog } from "../kit/log.ts";
import type { Bus, BusHandle, Entry, TableChange } from "./bus/bus.ts";
import { isLiving, type NodeRegistry } from "./bus/node-registry.ts";

interface SessionOwner {
  /** Name of the node, and which process of that name it is. */
  readonly node: string;
  readonly incarnation: string;
  /** Newer than that of every owner before. */
  readonly epoch: number;
  /** It is this process. */
  readonly isHere: boolean;
}

export interface SessionOwnersOptions {
  readonly bus: Bus;
  readonly nodes: Pick<NodeRegistry, "name" | "incarnation" | "find" | "heirOf">;
  /** Another node owns this session now: what is here of it has to end. */
  readonly onLost: (sessionId: string) => void;
  readonly clock: Clock;
  readonly log?: Logger;
}

const PREFIX = "session.";
/** Where two nodes claim at the same time one wins; more tries than this are a fault. */
const CLAIM_TRIES = 5;
/** So long behind a loss another node's last try to connect (3 s) and its claim (2 s) may take. */
const RETURN_MS = 5000;
/** Entries that are read at the same time. */
const ASKED_AT_ONCE = 64;

export class SessionOwners {
  readonly #options: SessionOwnersOptions;
  readonly #value: Uint8Array;
  /** As the store had them last, by session. */
  readonly #known = new Map<string, SessionOwner>();
  /** Entries that this process wrote. */
  readonly #held = new Map<string, Entry>();
  /** Held, and not seen in the store since: a loss of the bus may hide that they are gone. */
  readonly #unseen = new Set<string>();
  /** Sessions of other nodes when the bus was lost, until the store has them again: it may have come back empty. */
  readonly #returning = new Map<string, SessionOwner>();
  #returned: Timer | undefined;
  #handles: readonly BusHandle[] = [];
  #takeovers = 0;
  #lost = 0;

  private constructor(options: SessionOwnersOptions) {
    this.#options = options;
    const { name, incarnation } = options.nodes;
    this.#value = new TextEncoder().encode(`${name} ${incarnation}`);
  }

  /** Rejects as the bus does. */
  static async open(options: SessionOwnersOptions): Promise<SessionOwners> {
    const owners = new SessionOwners(options);
    const { bus } = options;
    owners.#handles = [
      await bus.owners.watch(PREFIX, (change) => owners.#changed(change)),
      bus.onState((state) => {
        if (state === "lost") owners.#expectAll();
        if (state !== "up") return;
        owners.#claimUnseen();
        owners.#expectNoLonger();
      }),
    ];
    return owners;
  }

  /** Sessions of all nodes, and of this one. */
  get sizes(): { readonly known: number; readonly held: number } {
    return { known: this.#known.size, held: this.#held.size };
  }

  /** Sessions that were taken over from nodes that are gone, and that others have taken over from this one. */
  get counts(): { readonly takeovers: number; readonly lost: number } {
    return { takeovers: this.#takeovers, lost: this.#lost };
  }

  /** As this node heard last: it may be some milliseconds old. */
  find(sessionId: string): SessionOwner | undefined {
    return this.#known.get(sessionId);
  }

  /** Its epoch where this process has written its entry. */
  heldEpoch(sessionId: string): number | undefined {
    return this.#held.get(sessionId)?.epoch;
  }

  /** As the store has it now, or who goes on with it; undefined: nobody. Rejects as the bus does. */
  async lookUp(sessionId: string): Promise<SessionOwner | undefined> {
    const entry = await this.#options.bus.owners.find(keyOf(sessionId));
    if (entry === undefined) {
      this.#refuseWhileReturning(sessionId);
      return undefined;
    }
    const owner = this.#ownerOf(entry);
    if (owner === undefined) return undefined;
    return (await this.#lives(owner)) ? owner : this.#heirOf(owner);
  }

  /** The owner, or who goes on with its sessions; this node where there is none. Rejects as the bus does. */
  async claim(sessionId: string): Promise<SessionOwner> {
    const { owners } = this.#options.bus;
    const key = keyOf(sessionId);
    // Claimed here, it would end at its owner, who has its speech.
    if (this.#returning.has(sessionId) && (await owners.find(key)) === undefined) {
      this.#refuseWhileReturning(sessionId);
    }
    for (let tries = 0; tries < CLAIM_TRIES; tries += 1) {
      const { isOurs, entry } = await owners.claim(key, this.#value);
      if (isOurs) return this.#hold(sessionId, entry);
      const owner = this.#ownerOf(entry);
      const isHeld = this.#held.get(sessionId)?.revision === entry.revision;
      if (owner !== undefined && (owner.isHere ? isHeld : await this.#lives(owner))) return owner;
      const heir = owner === undefined || owner.isHere ? undefined : this.#heirOf(owner);
      if (heir?.isHere === false) return heir;
      // Its owner is gone, or it is ours and being released: another entry is not touched by that.
      const taken = await owners.takeOver(entry, this.#value);
      if (taken === undefined) continue;
      if (owner?.isHere !== true) this.#takeovers += 1;
      return this.#hold(sessionId, taken);
    }
    throw new GatewayError("bus_timeout", "Other nodes claim this session, too: try again", {
      retryAfterMs: 500,
    });
  }

  /** The session has ended here. What the store says of it is looked at by the next claim: nothing waits for this. */
  release(sessionId: string): void {
    const entry = this.#held.get(sessionId);
    if (entry === undefined) return;
    this.#forget(sessionId);
    this.#options.bus.owners.release(entry).catch((thrown: unknown) => {
      // The entry stays, and names a process that does not have the session: it opens it anew when somebody comes.
      this.#log.debug({ err: thrown }, "A session's entry was not released");
    });
  }

  /** Another process is to have the session: its entry stays for that one to take, and is nobody's concern here. */
  letGo(sessionId: string): Entry | undefined {
    const entry = this.#held.get(sessionId);
    this.#forget(sessionId);
    return entry;
  }

  /** After `letGo`: nobody took it, and it is this process's again. False where somebody did. Rejects as the bus does. */
  async keep(sessionId: string, entry: Entry): Promise<boolean> {
    const kept = await this.#options.bus.owners.takeOver(entry, this.#value);
    if (kept !== undefined) this.#hold(sessionId, kept);
    return kept !== undefined;
  }

  /** The session of a process that has let it go. Rejects with bus_refused where that does not have it, and as the bus does. */
  async takeFrom(sessionId: string, incarnation: string): Promise<void> {
    const { owners } = this.#options.bus;
    const entry = await owners.find(keyOf(sessionId));
    const isTheirs = entry !== undefined && this.#ownerOf(entry)?.incarnation === incarnation;
    const taken = isTheirs ? await owners.takeOver(entry, this.#value) : undefined;
    if (taken === undefined) {
      throw new GatewayError("bus_refused", "The session is not that node's to give away");
    }
    this.#hold(sessionId, taken);
  }

  /** Asks the store whose this node's sessions are: those of others are lost. Rejects as the bus does. */
  async verify(): Promise<void> {
    const all = [...this.#held];
    for (let at = 0; at < all.length; at += ASKED_AT_ONCE) {
      await Promise.all(all.slice(at, at + ASKED_AT_ONCE).map(([id, held]) => this.#verifyOne(id, held)));
    }
  }

  /** Idempotent. Entries stay until they are released, or their node is gone. */
  close(): void {
    for (const handle of this.#handles) handle.close();
    this.#returned?.cancel();
  }

  get #log(): Logger {
    return this.#options.log ?? silentLog;
  }

  #hold(sessionId: string, entry: Entry): SessionOwner {
    this.#held.set(sessionId, entry);
    this.#unseen.add(sessionId);
    const owner = this.#ownerOf(entry);
    if (owner === undefined) throw new TypeError("Own entry can't be read");
    this.#known.set(sessionId, owner);
    return owner;
  }

  #changed({ key, entry }: TableChange): void {
    const sessionId = sessionOf(key);
    if (sessionId === null) return;
    const owner = entry === undefined ? undefined : this.#ownerOf(entry);
    if (owner !== undefined && this.#options.bus.state === "up") this.#returning.delete(sessionId);
    if (owner === undefined) this.#known.delete(sessionId);
    else this.#known.set(sessionId, owner);
    const held = this.#held.get(sessionId);
    if (entry !== undefined && entry.revision === held?.revision) this.#unseen.delete(sessionId);
    if (held === undefined || (entry !== undefined && entry.epoch <= held.epoch)) return;
    if (owner === undefined) void this.#claimAgain(sessionId, held);
    // What this process has just written may be seen before its call returns.
    else if (entry !== undefined && owner.isHere) this.#held.set(sessionId, entry);
    else this.#lose(sessionId);
  }

  #expectAll(): void {
    this.#returned?.cancel();
    for (const [sessionId, owner] of this.#known) if (!owner.isHere) this.#returning.set(sessionId, owner);
  }

  #expectNoLonger(): void {
    const { clock } = this.#options;
    this.#returned?.cancel();
    this.#returned = clock.at(clock.nowMs() + RETURN_MS, () => this.#returning.clear());
  }

  /** Throws bus_lost where the store does not have the session's entry, and its owner may write it again. */
  #refuseWhileReturning(sessionId: string): void {
    const owner = this.#returning.get(sessionId);
    if (owner === undefined) return;
    const view = this.#options.nodes.find(owner.node);
    if (view?.incarnation !== owner.incarnation || !isLiving(view)) return;
    throw new GatewayError("bus_lost", "Session's node has not come back to the bus yet: try again", {
      retryAfterMs: 500,
    });
  }

  #claimUnseen(): void {
    for (const sessionId of this.#unseen) {
      const held = this.#held.get(sessionId);
      if (held !== undefined) void this.#claimAgain(sessionId, held);
    }
  }

  /** An entry that is gone is written again when its watch says so. */
  async #verifyOne(sessionId: string, held: Entry): Promise<void> {
    const entry = await this.#options.bus.owners.find(held.key);
    const isOthers = entry !== undefined && entry.epoch > held.epoch && this.#ownerOf(entry)?.isHere !== true;
    if (isOthers && this.#held.get(sessionId) === held) this.#lose(sessionId);
  }

  /** The store was lost with all its entries: whoever has the session writes it again. */
  async #claimAgain(sessionId: string, held: Entry): Promise<void> {
    try {
      const { isOurs, entry } = await this.#options.bus.owners.claim(held.key, this.#value);
      if (!this.#held.has(sessionId)) {
        if (isOurs) await this.#options.bus.owners.release(entry);
      } else if (isOurs) this.#hold(sessionId, entry);
      else if (this.#ownerOf(entry)?.isHere !== true) this.#lose(sessionId);
    } catch (thrown) {
      this.#log.warn({ err: thrown }, "A session's entry could not be written again");
    }
  }

  #forget(sessionId: string): void {
    this.#held.delete(sessionId);
    this.#unseen.delete(sessionId);
  }

  #lose(sessionId: string): void {
    this.#forget(sessionId);
    this.#lost += 1;
    this.#options.onLost(sessionId);
  }

  #ownerOf({ value, epoch }: Entry): SessionOwner | undefined {
    const [node, incarnation, ...more] = new TextDecoder().decode(value).split(" ");
    if (node === undefined || incarnation === undefined || more.length > 0) return undefined;
    return { node, incarnation, epoch, isHere: incarnation === this.#options.nodes.incarnation };
  }

  /** The buddy of an owner that is gone, where that buddy lives. */
  #heirOf(owner: SessionOwner): SessionOwner | undefined {
    const { nodes } = this.#options;
    const heir = nodes.heirOf(owner.incarnation);
    if (heir?.state !== "alive") return undefined;
    const { name: node, incarnation } = heir;
    return { node, incarnation, epoch: owner.epoch, isHere: incarnation === nodes.incarnation };
  }

  /** A node that has just joined has not heard the others yet: then their leases say who lives. */
  async #lives({ node, incarnation, isHere }: SessionOwner): Promise<boolean> {
    if (isHere) return true;
    const { bus, nodes } = this.#options;
    const view = nodes.find(node);
    if (view !== undefined) return view.incarnation === incarnation && isLiving(view);
    const lease = await bus.leases.find(node);
    return lease !== undefined && new TextDecoder().decode(lease.value) === incarnation;
  }
}

/** Session ids have dots where keys have none. */
function keyOf(sessionId: string): string {
  return `${PREFIX}${Buffer.from(sessionId, "latin1").toString("base64url")}`;
}

function sessionOf(key: string): string | null {
  return key.startsWith(PREFIX)
    ? Buffer.from(key.slice(PREFIX.length), "base64url").toString("latin1")
    : null;
}
