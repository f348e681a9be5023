/**
 * The owner's side of a takeover: tells one other node, its buddy, what its sessions have accepted and how far their
 * listeners were sent audio. Texts are told at the end of the turn of the event loop in which they came. Where words end is
 * told once, when their audio is made; that one was sent is told just before that. Both are told in rounds, but for words that are
 * sent as soon as they are made.
 */
import { toGatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import type {
  HeardUpTo,
  SavedConnection,
  SavedSession,
  SavedUtterance,
  SpeechReader,
} from "../../session/saved-session.ts";
import type { Bus, BusHandle } from "../bus/bus.ts";
import {
  encodeReplica,
  MAX_GIVEN_CONNECTIONS,
  RecordWriter,
  type ReplicaParts,
  type SessionUpdate,
  type UtteranceUpdate,
} from "./replica-format.ts";

/** A session of this node. */
export interface KeptSession {
  readonly id: string;
  readonly epoch: string;
  readonly isClosed: boolean;
  /** End of the audio that its listeners were sent, ms. */
  readonly sentMs: number;
  /** End of the audio that is rendered, ms. */
  readonly renderedMs: number;
  save(): SavedSession;
  /** Reads what `save` gives but for the connections, as it is at each reading. */
  speechReader(): SpeechReader;
}

export interface ReplicatorOptions {
  readonly bus: Bus;
  /** This process. */
  readonly incarnation: string;
  readonly sessions: () => Iterable<KeptSession>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What the buddy knows of a session. */
interface Told {
  readonly number: number;
  readonly speech: SpeechReader;
  /** Ids of its utterances, as the buddy has them. */
  readonly ids: string[];
  /** End of the audio whose places it knows. */
  renderedMs: number;
  /** How far it knows that audio was sent. */
  sentMs: number;
  /** Ends of words that were not sent then, rising. */
  readonly wordEndsMs: number[];
  /** Connections that it does not know, or not as they are, by token; null: that have gone. */
  readonly connections: Map<string, SavedConnection | null>;
  /** Length of each utterance's text. */
  readonly texts: Map<string, number>;
  /** It has all texts. */
  readonly isWhole: boolean;
}

/** What a new utterance takes in a message beside its text, generously. */
const UTTERANCE_CHARS = 500;
/**
 * A message is closed when it is this share of what the bus takes, in characters, or in bytes of records. The last session
 * may add as much again, and JSON has up to six bytes for a character.
 */
const MESSAGE_SHARE = 1 / 16;
/** One message has no more connections of a session. */
const MESSAGE_CONNECTIONS = 1000;
/** What a connection takes in a message, generously. */
const CONNECTION_CHARS = 150;
/** What many sessions were sent in this time is one message, ms. */
export const ROUND_MS = 40;
/** The buddy knows the places of so much more audio than was sent, ms: two batches, and a late wake. */
const TOLD_AHEAD_MS = 250;
/** A word counts as sent so long before its end is, ms: that is told before the frame leaves that ends it. */
const EARLY_MS = ROUND_MS;
/** The bus was full or lost: all is told again after so long. */
const RETRY_MS = 1000;

/** What one message may have of a session. */
interface Most {
  readonly connections: number;
  /** Of new text. */
  readonly chars: number;
}

export const replicaSubject = (incarnation: string): string => `replica.${incarnation}`;
/** The buddy has missed something, and asks for all of it again. */
export const replicaAgainSubject = (incarnation: string): string => `replica-again.${incarnation}`;

export class Replicator {
  readonly #options: ReplicatorOptions;
  /** Incarnation; null: there is none. */
  #buddy: string | null = null;
  readonly #told = new Map<string, Told>();
  readonly #changed = new Set<KeptSession>();
  /** For the next message, of sessions that have not changed. */
  readonly #records = new RecordWriter();
  readonly #ended = new Set<string>();
  #seq = 0;
  #nextNumber = 1;
  #flushing: NodeJS.Immediate | null = null;
  #round: Timer | null = null;
  #retry: Timer | null = null;
  #handles: BusHandle[] = [];
  #isClosed = false;

  private constructor(options: ReplicatorOptions) {
    this.#options = options;
  }

  /** Rejects as the bus does. */
  static async open(options: ReplicatorOptions): Promise<Replicator> {
    const replicator = new Replicator(options);
    const { bus, incarnation } = options;
    replicator.#handles = [
      await bus.subscribe(replicaAgainSubject(incarnation), (bytes) => {
        if (new TextDecoder().decode(bytes) === replicator.#buddy) replicator.#tellAll();
      }),
      bus.onState((state) => {
        if (state === "up") replicator.#tellAll();
      }),
    ];
    return replicator;
  }

  get buddy(): string | null {
    return this.#buddy;
  }

  /** From now on it is this process that is told; null: nobody. */
  choose(buddy: string | null): void {
    if (buddy === this.#buddy) return;
    this.#buddy = buddy;
    this.#tellAll();
  }

  /** It has accepted something. */
  changed(session: KeptSession): void {
    if (this.#buddy === null) return;
    this.#changed.add(session);
    this.#flushSoon();
  }

  /** It has come, or has begun or ended a text. */
  connected(session: KeptSession, connection: SavedConnection): void {
    this.#told.get(session.id)?.connections.set(connection.token, connection);
    this.changed(session);
  }

  disconnected(session: KeptSession, token: string): void {
    this.#told.get(session.id)?.connections.set(token, null);
    this.changed(session);
  }

  /** The playhead has passed an utterance. */
  passed(session: KeptSession, utteranceId: string): void {
    const told = this.#told.get(session.id);
    if (told === undefined || this.#changed.has(session)) return;
    const at = told.ids.indexOf(utteranceId);
    if (at < 0) return;
    told.ids.splice(at, 1);
    told.texts.delete(utteranceId);
    this.#records.over(told.number, at);
    this.#flushInRound();
  }

  /** Called before each batch of frames leaves: most of them end no word. */
  sending(session: KeptSession): void {
    if (this.#buddy === null || this.#changed.has(session)) return;
    const told = this.#told.get(session.id);
    if (told === undefined) {
      this.#changed.add(session);
      this.#flushInRound();
      return;
    }
    // Nobody goes on inside a word: how far in it listeners are is told to nobody.
    const earlyMs = session.sentMs + EARLY_MS;
    if (told.renderedMs < session.renderedMs && earlyMs + TOLD_AHEAD_MS >= told.renderedMs)
      this.#tellPlaces(session, told);
    if ((told.wordEndsMs[0] ?? Number.POSITIVE_INFINITY) > earlyMs) return;
    this.#records.sent(told.number, earlyMs);
    told.sentMs = earlyMs;
    while ((told.wordEndsMs[0] ?? Number.POSITIVE_INFINITY) <= earlyMs) told.wordEndsMs.shift();
    this.#flushInRound();
  }

  /** What would be told at the end of the turn, or of the round. */
  tellNow(): void {
    this.#flush();
  }

  /** All that there is to tell of a session, as of one of which nothing was told. */
  wholeOf(session: KeptSession): SessionUpdate {
    this.#told.delete(session.id);
    return this.#updateOf(session, { connections: MAX_GIVEN_CONNECTIONS, chars: Number.POSITIVE_INFINITY });
  }

  ended(sessionId: string): void {
    if (!this.#told.delete(sessionId)) return;
    this.#ended.add(sessionId);
    this.#flushSoon();
  }

  /** Idempotent. */
  close(): void {
    if (!this.#isClosed) this.#flush();
    this.#isClosed = true;
    if (this.#flushing !== null) clearImmediate(this.#flushing);
    this.#round?.cancel();
    this.#retry?.cancel();
    for (const handle of this.#handles) handle.close();
  }

  #tellPlaces(session: KeptSession, told: Told): void {
    const { sentMs } = session;
    told.renderedMs = session.renderedMs;
    let isLate = false;
    for (const { id, startMs, heard } of told.speech.readPlaces()) {
      const utterance = told.ids.indexOf(id);
      if (utterance < 0) this.#changed.add(session);
      else this.#records.places(told.number, utterance, { startMs, heard });
      addEnds(told, heard);
      isLate ||= heard.some(({ ms }) => ms > 0 && ms <= sentMs);
    }
    // Audio that is sent as it is rendered, or late: whoever comes back after a kill would hear the word again.
    if (isLate || this.#records.length >= this.#messageChars) this.#flush();
    else this.#flushInRound();
  }

  #flushSoon(): void {
    if (this.#flushing !== null || this.#isClosed) return;
    this.#flushing = setImmediate(() => {
      this.#flushing = null;
      this.#flush();
    });
  }

  #flushInRound(): void {
    if (this.#flushing !== null || this.#round !== null || this.#isClosed) return;
    const { clock } = this.#options;
    this.#round = clock.at(clock.nowMs() + ROUND_MS, () => {
      this.#round = null;
      this.#flush();
    });
  }

  /** As to somebody who knows nothing. */
  #tellAll(): void {
    this.#told.clear();
    this.#changed.clear();
    this.#records.take();
    this.#ended.clear();
    this.#seq = 0;
    if (this.#buddy === null) return;
    for (const session of this.#options.sessions()) this.#changed.add(session);
    this.#flushSoon();
  }

  #flush(): void {
    const [changed, ended] = [[...this.#changed], [...this.#ended]];
    this.#changed.clear();
    this.#ended.clear();
    if (this.#buddy === null || this.#isClosed) {
      this.#records.take();
      return;
    }
    if (changed.length + ended.length + this.#records.length === 0 && this.#seq > 0) return;
    try {
      this.#publish({ sessions: this.#updatesOf(changed), ended });
    } catch (thrown) {
      const { code } = toGatewayError(thrown);
      this.#options.log.debug({ code }, "The buddy was not told of sessions: tried again");
      this.#tellAllLater();
    }
  }

  /** The last ones; those before, where they are many, have been published. */
  #updatesOf(sessions: Iterable<KeptSession>): SessionUpdate[] {
    const updates: SessionUpdate[] = [];
    const most = { connections: MESSAGE_CONNECTIONS, chars: this.#messageChars };
    let chars = 0;
    for (const session of sessions) {
      if (session.isClosed) continue;
      do {
        const update = this.#updateOf(session, most);
        updates.push(update);
        chars += charsOf(update);
        if (chars < most.chars) continue;
        this.#publish({ sessions: updates.splice(0), ended: [] });
        chars = 0;
      } while (this.#hasMore(session));
    }
    return updates;
  }

  #hasMore({ id }: KeptSession): boolean {
    const told = this.#told.get(id);
    return told !== undefined && (told.connections.size > 0 || !told.isWhole);
  }

  get #messageChars(): number {
    return Math.floor(this.#options.bus.maxMessageBytes * MESSAGE_SHARE);
  }

  #tellAllLater(): void {
    const { clock } = this.#options;
    this.#retry ??= clock.at(clock.nowMs() + RETRY_MS, () => {
      this.#retry = null;
      this.#tellAll();
    });
  }

  #publish(what: Pick<ReplicaParts, "sessions" | "ended">): void {
    if (this.#buddy === null) return;
    const { bus, incarnation } = this.#options;
    const seq = this.#seq;
    this.#seq += 1;
    const records = this.#records.take();
    bus.publish(replicaSubject(this.#buddy), encodeReplica({ from: incarnation, seq, records, ...what }));
  }

  #updateOf(session: KeptSession, most: Most): SessionUpdate {
    const told = this.#told.get(session.id);
    const speech = told?.speech ?? session.speechReader();
    const saved = speech.readAll();
    const connections = told?.connections ?? byToken(session.save().connections);
    const now = Array.from(connections).slice(0, most.connections);
    for (const [token] of now) connections.delete(token);
    const sentMs = Math.max(saved.sentMs, told?.sentMs ?? 0);
    const number = told?.number ?? this.#nextNumber++;
    const { utterances, isWhole } = newTexts(saved.utterances, told?.texts, most.chars);
    this.#told.set(session.id, {
      number,
      speech,
      ids: utterances.map(({ id }) => id),
      renderedMs: session.renderedMs,
      sentMs,
      wordEndsMs: utterances.flatMap(({ heard }) => endsBehind(sentMs, heard)),
      connections,
      texts: new Map(utterances.map(({ id, from, text }) => [id, from + text.length])),
      isWhole,
    });
    const { id, epoch } = session;
    return {
      id,
      number,
      epoch,
      sentMs,
      utterances,
      connections: now.flatMap(([, connection]) => connection ?? []),
      disconnected: now.flatMap(([token, connection]) => (connection === null ? token : [])),
    };
  }
}

function byToken(connections: readonly SavedConnection[]): Told["connections"] {
  return new Map(connections.map((connection) => [connection.token, connection]));
}

function charsOf({ utterances, connections, disconnected }: SessionUpdate): number {
  const texts = utterances.reduce((sum, { text }) => sum + text.length + UTTERANCE_CHARS, UTTERANCE_CHARS);
  return texts + CONNECTION_CHARS * (connections.length + disconnected.length);
}

function endsBehind(sentMs: number, heard: readonly HeardUpTo[]): number[] {
  return heard.map(({ ms }) => ms).filter((ms) => ms > sentMs);
}

/** Ends mostly come in their order, one at a time. */
function addEnds({ sentMs, wordEndsMs }: Told, heard: readonly HeardUpTo[]): void {
  let lastMs = wordEndsMs.at(-1) ?? 0;
  let isRising = true;
  for (const { ms } of heard) {
    if (ms <= sentMs) continue;
    isRising &&= ms >= lastMs;
    lastMs = ms;
    wordEndsMs.push(ms);
  }
  if (!isRising) wordEndsMs.sort((a, b) => a - b);
}

/** Up to the first utterance that has no room, or not all of it; `told`: how much of each text was told before. */
function newTexts(
  saved: readonly SavedUtterance[],
  told: ReadonlyMap<string, number> | undefined,
  maxChars: number,
): { readonly utterances: readonly UtteranceUpdate[]; readonly isWhole: boolean } {
  const utterances: UtteranceUpdate[] = [];
  let room = maxChars;
  for (const { command, text: whole, ...rest } of saved) {
    const known = told?.get(rest.id);
    const from = known ?? 0;
    if (room <= 0 && known !== whole.length) return { utterances, isWhole: false };
    const text = whole.slice(from, from + room);
    utterances.push(known === undefined ? { ...rest, command, from, text } : { ...rest, from, text });
    room -= text.length + (known === undefined ? UTTERANCE_CHARS : 0);
    if (from + text.length < whole.length) return { utterances, isWhole: false };
  }
  return { utterances, isWhole: true };
}
