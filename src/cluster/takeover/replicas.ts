/** The buddy's side of a takeover: what other nodes have told this one of their sessions. */
import type { Logger } from "../../kit/log.ts";
import type {
  HeardUpTo,
  SavedConnection,
  SavedSession,
  SavedUtterance,
} from "../../session/saved-session.ts";
import type { Bus, BusHandle } from "../bus/bus.ts";
import {
  decodeReplica,
  MAX_GIVEN_CONNECTIONS,
  type NewPlaces,
  type ReplicaMessage,
  type ReplicaRecord,
  type SessionUpdate,
  type UtteranceUpdate,
} from "./replica-format.ts";
import { replicaAgainSubject, replicaSubject } from "./replicator.ts";

/** Words that ended so long before what was sent are of no use to anybody who comes back, ms. */
const REACH_MS = 1000;
/** Places of an utterance behind which those are looked for. */
const FEW_PLACES = 16;
/** What a connection that may come back counts as, beside texts. */
const CONNECTION_CHARS = 100;

export interface ReplicasOptions {
  readonly bus: Bus;
  /** This process. */
  readonly incarnation: string;
  /** Text of all replicas, UTF-16 code units: sessions for which there is no room are not kept. */
  readonly maxChars: number;
  readonly log: Logger;
}

/** A session as its owner described it last. */
export interface Replica {
  readonly epoch: string;
  readonly saved: SavedSession;
}

interface KeptReplica {
  readonly number: number;
  readonly epoch: string;
  sentMs: number;
  readonly utterances: KeptUtterance[];
  /** By token. */
  readonly connections: Map<string, SavedConnection>;
  chars: number;
}

interface KeptUtterance extends SavedUtterance {
  startMs: number | null;
  heard: HeardUpTo[];
}

interface Owner {
  /** null: a message was missed, and all is asked for again. */
  nextSeq: number | null;
  readonly sessions: Map<string, KeptReplica>;
  /** By number. */
  readonly numbered: Map<number, KeptReplica>;
  /** Sessions for which there was no room. */
  readonly refused: Set<string>;
}

export class Replicas {
  readonly #options: ReplicasOptions;
  /** By incarnation. */
  readonly #owners = new Map<string, Owner>();
  #chars = 0;
  /** Sessions that did not fit in. */
  #refused = 0;
  #handle: BusHandle | null = null;

  private constructor(options: ReplicasOptions) {
    this.#options = options;
  }

  /** Rejects as the bus does. */
  static async open(options: ReplicasOptions): Promise<Replicas> {
    const replicas = new Replicas(options);
    const { bus, incarnation } = options;
    replicas.#handle = await bus.subscribe(replicaSubject(incarnation), (bytes) => {
      const message = decodeReplica(bytes);
      if (message !== undefined) replicas.#take(message);
    });
    return replicas;
  }

  get sizes(): { readonly sessions: number; readonly chars: number; readonly refused: number } {
    let sessions = 0;
    for (const owner of this.#owners.values()) sessions += owner.sessions.size;
    return { sessions, chars: this.#chars, refused: this.#refused };
  }

  /** Sessions of that process. */
  of(owner: string): string[] {
    return [...(this.#owners.get(owner)?.sessions.keys() ?? [])];
  }

  /** Which process has told of the session. */
  ownerOf(sessionId: string): string | undefined {
    for (const [incarnation, { sessions }] of this.#owners) if (sessions.has(sessionId)) return incarnation;
    return undefined;
  }

  /** What was told of the session, which is not kept any more. */
  take(sessionId: string): Replica | undefined {
    for (const owner of this.#owners.values()) {
      const kept = owner.sessions.get(sessionId);
      if (kept === undefined) continue;
      this.#forget(owner, sessionId);
      const { epoch, sentMs, utterances, connections } = kept;
      return { epoch, saved: { sentMs, utterances, connections: [...connections.values()] } };
    }
    return undefined;
  }

  /** The process has ended in order, or its sessions were taken over. */
  forget(incarnation: string): void {
    const owner = this.#owners.get(incarnation);
    if (owner === undefined) return;
    for (const id of [...owner.sessions.keys()]) this.#forget(owner, id);
    this.#owners.delete(incarnation);
  }

  /** Idempotent. */
  close(): void {
    this.#handle?.close();
    this.#owners.clear();
    this.#chars = 0;
  }

  #take(message: ReplicaMessage): void {
    if (message.seq === 0) this.forget(message.from);
    const owner = this.#owners.get(message.from) ?? {
      nextSeq: 0,
      sessions: new Map(),
      numbered: new Map(),
      refused: new Set(),
    };
    this.#owners.set(message.from, owner);
    if (owner.nextSeq !== message.seq) {
      if (owner.nextSeq !== null) this.#askAgain(message.from);
      owner.nextSeq = null;
      return;
    }
    owner.nextSeq = message.seq + 1;
    for (const record of message.records) this.#note(owner, record);
    for (const id of message.ended) {
      owner.refused.delete(id);
      this.#forget(owner, id);
    }
    for (const update of message.sessions) {
      if (this.#update(owner, update)) continue;
      owner.nextSeq = null;
      this.#askAgain(message.from);
      return;
    }
  }

  /** What there was no room for has none here. */
  #note(owner: Owner, record: ReplicaRecord): void {
    const kept = owner.numbered.get(record.session);
    if (kept === undefined) return;
    if (record.kind === "sent") {
      kept.sentMs = record.sentMs;
      return;
    }
    const utterance = kept.utterances[record.utterance];
    if (utterance === undefined) return;
    if (record.kind === "places") {
      place(utterance, record.places, kept.sentMs);
      return;
    }
    kept.utterances.splice(record.utterance, 1);
    kept.chars -= utterance.text.length;
    this.#chars -= utterance.text.length;
  }

  /** False where the beginning of something is missing. */
  #update(owner: Owner, update: SessionUpdate): boolean {
    if (owner.refused.has(update.id)) return true;
    const before = owner.sessions.get(update.id);
    const utterances: KeptUtterance[] = [];
    for (const change of update.utterances) {
      const merged = merge(
        before?.utterances.find(({ id }) => id === change.id),
        change,
      );
      if (merged === undefined) return false;
      utterances.push(merged);
    }
    const connections = before?.connections ?? new Map<string, SavedConnection>();
    for (const connection of update.connections) connections.set(connection.token, connection);
    for (const token of update.disconnected) connections.delete(token);
    const texts = utterances.reduce((sum, { text }) => sum + text.length, 0);
    const chars = texts + CONNECTION_CHARS * connections.size;
    this.#chars += chars - (before?.chars ?? 0);
    const { id, number, epoch, sentMs } = update;
    const kept = { number, epoch, sentMs, utterances, connections, chars };
    owner.numbered.set(number, kept);
    owner.sessions.set(id, kept);
    if (this.#chars > this.#options.maxChars) {
      this.#refused += 1;
      owner.refused.add(id);
      this.#forget(owner, id);
    }
    return true;
  }

  #forget(owner: Owner, sessionId: string): void {
    const kept = owner.sessions.get(sessionId);
    if (kept === undefined) return;
    this.#chars -= kept.chars;
    owner.sessions.delete(sessionId);
    owner.numbered.delete(kept.number);
  }

  #askAgain(owner: string): void {
    const { bus, incarnation, log } = this.#options;
    try {
      bus.publish(replicaAgainSubject(owner), new TextEncoder().encode(incarnation));
    } catch (thrown) {
      // When the bus is back, all is told again anyway.
      log.debug({ err: thrown }, "A node was not asked to tell of its sessions again");
    }
  }
}

/** The one session that the message tells all of; undefined: it does not. */
export function replicaOf({ sessions }: ReplicaMessage): (Replica & { readonly id: string }) | undefined {
  const [session] = sessions;
  if (session === undefined) return undefined;
  const { id, epoch, sentMs, connections } = session;
  const utterances = session.utterances.flatMap((update) => merge(undefined, update) ?? []);
  if (utterances.length < session.utterances.length) return undefined;
  return { id, epoch, saved: { sentMs, utterances, connections } };
}

/** As its owner would tell all of it. */
export function toldWhole(id: string, { epoch, saved }: Replica): SessionUpdate {
  const utterances = saved.utterances.map((own) => ({ ...own, from: 0 }));
  const connections = saved.connections.slice(0, MAX_GIVEN_CONNECTIONS);
  return { id, number: 0, epoch, sentMs: saved.sentMs, utterances, connections, disconnected: [] };
}

function place(utterance: KeptUtterance, { startMs, heard }: NewPlaces, sentMs: number): void {
  const firstMs = heard[0]?.ms ?? Number.POSITIVE_INFINITY;
  utterance.startMs = startMs;
  while ((utterance.heard.at(-1)?.ms ?? -1) >= firstMs) utterance.heard.pop();
  utterance.heard.push(...heard);
  if (utterance.heard.length <= FEW_PLACES) return;
  // The first one holds for all that is before the others.
  const lastUseless = utterance.heard.findLastIndex(({ ms }) => ms <= sentMs - REACH_MS) - 1;
  if (lastUseless > 0) utterance.heard.splice(1, lastUseless);
}

function merge(before: SavedUtterance | undefined, change: UtteranceUpdate): KeptUtterance | undefined {
  const { from, text, command = before?.command, heard, ...rest } = change;
  if (command === undefined || (before?.text.length ?? 0) < from) return undefined;
  return { ...rest, command, heard: [...heard], text: `${before?.text.slice(0, from) ?? ""}${text}` };
}
