/**
 * Runs a recorded session again: the same classes, entered at the same times with the same values. What it tells others is held
 * against what it told them then; others are not there, and answer what they answered then. All of it is synchronous.
 */
import type { Delivery, Listener } from "../delivery/listener.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import { BlockPool } from "../kit/block-pool.ts";
import { ByteRoom } from "../kit/byte-room.ts";
import { silentLog } from "../kit/log.ts";
import { type Counters, createCounters } from "../metrics/counters.ts";
import type { Event } from "../protocol/events.ts";
import type { OffsetUnit } from "../protocol/vocabulary.ts";
import { endTexts, handleCommand, type SessionCommand, speak } from "../session/carry-out.ts";
import type { Joining } from "../session/connections/connection-registry.ts";
import type { Participant } from "../session/connections/participant.ts";
import type { Payer } from "../session/payer.ts";
import type { SavedSession } from "../session/saved-session.ts";
import type { Session } from "../session/session.ts";
import type { SessionDeps, SessionSettings } from "../session/session-deps.ts";
import { openSession } from "../session/sessions.ts";
import type { Tape } from "../session/tape/tape.ts";
import { VoiceLoudness } from "../session/voice-loudness.ts";
import { Deliveries, deliveredJson } from "./deliveries.ts";
import { firstDifference } from "./difference.ts";
import { decode, Encoder } from "./encode.ts";
import { type Entry, type Recording, unreadable } from "./format.ts";
import { isList, type Json } from "./json.ts";

/** Where what it does is first unlike what it did. */
export interface Difference {
  readonly line: number;
  /** Since the recording began, ms. */
  readonly atMs: number;
  /** What it did: `deliver`, `ask`, ... */
  readonly what: string;
  /** Which of the session's connections; null: none. */
  readonly connection: number | null;
  /** Which of that connection's messages, from 1. */
  readonly message: number | null;
  readonly field: string;
  readonly recorded: string;
  readonly replayed: string;
}

export interface Replayed {
  /** null: all was as it was. */
  readonly difference: Difference | null;
  readonly entries: number;
  /** Messages that were as they were. */
  readonly messages: number;
  /** When speech ran dry, ms since the recording began. */
  readonly underrunsMs: readonly number[];
}

export interface ReplayHandlers {
  /** Frames that a connection gets, as they are made; good for the call only. */
  frames?(connection: number, frames: readonly Uint8Array[], atMs: number): void;
}

/** Throws recording_unreadable where the recording can't be carried out. */
export function replay(recording: Recording, handlers: ReplayHandlers = {}): Replayed {
  return new Player(recording, handlers).run();
}

class Diverged extends Error {
  readonly difference: Difference;

  constructor(difference: Difference) {
    super("The replay is unlike the recording");
    this.difference = difference;
  }
}

/** What is recorded of the entry that runs. */
interface Frame {
  readonly entry: Entry;
  readonly items: readonly Json[];
  next: number;
}

const FREE: Payer = {
  budget: {
    begin: () => ({
      end: () => undefined,
      undo: () => undefined,
      text: { add: () => undefined, takeBack: () => undefined },
    }),
    add: () => undefined,
  },
};

class Player implements Tape {
  readonly #recording: Recording;
  readonly #handlers: ReplayHandlers;
  readonly #encoder = new Encoder({ isRedacted: false, isReplayed: true });
  readonly #deliveries = new Deliveries();
  readonly #callbacks = new Map<string, (args: readonly unknown[]) => void>();
  readonly #participants = new Map<string, Participant>();
  readonly #messages = new Map<number, number>();
  readonly #counters: Counters = createCounters();
  readonly #underrunsMs: number[] = [];
  #session: Session | null = null;
  #count = 0;
  #nowMs: number;
  #frame: Frame | null = null;

  constructor(recording: Recording, handlers: ReplayHandlers) {
    this.#recording = recording;
    this.#handlers = handlers;
    this.#nowMs = recording.head.at_ms;
  }

  run(): Replayed {
    const { entries } = this.#recording;
    let done = 0;
    let difference: Difference | null = null;
    try {
      for (const entry of entries) {
        this.#nowMs = entry.atMs;
        const underruns = this.#counters.underruns;
        this.#play(entry);
        if (this.#counters.underruns > underruns) this.#underrunsMs.push(this.#sinceMs(entry));
        done += 1;
      }
    } catch (thrown) {
      if (!(thrown instanceof Diverged)) throw thrown;
      difference = thrown.difference;
    }
    const messages = [...this.#messages.values()].reduce((sum, count) => sum + count, 0);
    return { difference, entries: done, messages, underrunsMs: this.#underrunsMs };
  }

  // ---- the session's side ----------------------------------------------------------------------------------------

  nowMs(): number {
    return this.#nowMs;
  }

  enter<T>(_name: string, _says: readonly unknown[], run: () => T): T {
    return run();
  }

  /** It is called where the recording says so, and nowhere else. */
  callback<A extends readonly unknown[]>(name: string, run: (...args: A) => void): (...args: A) => void {
    this.#count += 1;
    this.#callbacks.set(`${name}#${this.#count}`, (args) => run(...(args as unknown as A)));
    return () => undefined;
  }

  tell<T>(name: string, says: readonly unknown[]): T {
    const frame = this.#mustBeIn();
    const connection = typeof says[0] === "number" && LISTENERS.has(name) ? says[0] : null;
    if (connection !== null) this.#messages.set(connection, (this.#messages.get(connection) ?? 0) + 1);
    const own = this.#saysOf(name, says);
    const item = frame.items[frame.next];
    const [recordedName, recorded = null, answer] = item !== undefined && isList(item) ? item : [];
    const where = { what: name, connection };
    if (recordedName !== name)
      throw this.#diverged(frame, {
        ...where,
        field: "what it does",
        recorded: nameOf(item),
        replayed: name,
      });
    const unlike = firstDifference(recorded, own);
    if (unlike !== null) throw this.#diverged(frame, { ...where, ...named(name, unlike) });
    frame.next += 1;
    this.#playInner(frame);
    return this.#answer(answer, LISTENERS.has(name) ? "sent" : undefined) as T;
  }

  read<T>(name: string, usual: T): T {
    const frame = this.#mustBeIn();
    const item = frame.items[frame.next];
    const [recordedName, , answer] = item !== undefined && isList(item) ? item : [];
    if (recordedName !== name) return usual;
    frame.next += 1;
    this.#playInner(frame);
    return this.#answer(answer, usual) as T;
  }

  #answer(answer: Json | undefined, usual: unknown): unknown {
    if (answer === undefined) return usual;
    if (answer !== null && typeof answer === "object" && !isList(answer) && answer.thrown !== undefined)
      throw decode(answer.thrown);
    return decode(answer);
  }

  /** What the others did when they were told something. */
  #playInner(frame: Frame): void {
    for (;;) {
      const item = frame.items[frame.next];
      if (item === undefined || item === null || typeof item !== "object" || isList(item)) return;
      frame.next += 1;
      const [name, says, items, error = null] = item.in !== undefined && isList(item.in) ? item.in : [];
      const { line, atMs } = frame.entry;
      if (typeof name !== "string" || !says || !isList(says) || !items || !isList(items))
        throw unreadable(line, "it is no entry");
      this.#play({ line, atMs, name, says, items, error: typeof error === "string" ? error : null });
      this.#frame = frame;
    }
  }

  #saysOf(name: string, says: readonly unknown[]): readonly Json[] {
    if (name !== "deliver") return this.#encoder.parts(says);
    const [connection, batch, offsets] = says as readonly [number, readonly Delivery[], OffsetUnit];
    const frames = batch.filter((item) => item instanceof Uint8Array);
    if (frames.length > 0)
      this.#handlers.frames?.(connection, frames, this.#nowMs - this.#recording.head.at_ms);
    return deliveredJson(connection, this.#deliveries.of(batch, offsets));
  }

  // ---- the recording's side --------------------------------------------------------------------------------------

  #play(entry: Entry): void {
    const frame: Frame = { entry, items: entry.items, next: 0 };
    this.#frame = frame;
    let error: string | null = null;
    try {
      this.#carryOut(entry);
    } catch (thrown) {
      if (thrown instanceof Diverged || isUnreadable(thrown)) throw thrown;
      error = toGatewayError(thrown).code;
      if (error === "internal" && entry.error !== "internal")
        throw unreadable(entry.line, "it can't be carried out", thrown);
    }
    if (error !== entry.error) {
      const facts = { what: entry.name, connection: null, field: "error" };
      throw this.#diverged(frame, { ...facts, recorded: entry.error ?? "none", replayed: error ?? "none" });
    }
    const left = frame.items[frame.next];
    if (left === undefined) return;
    const facts = { what: nameOf(left), connection: null, field: "what it does" };
    throw this.#diverged(frame, { ...facts, recorded: nameOf(left), replayed: "nothing more" });
  }

  #carryOut(entry: Entry): void {
    const says = entry.says.map(decode);
    const callback = this.#callbacks.get(entry.name);
    if (callback !== undefined) {
      callback(says);
      return;
    }
    const carryOut = Object.hasOwn(ENTRIES, entry.name) ? ENTRIES[entry.name] : undefined;
    if (carryOut === undefined) throw unreadable(entry.line, "it calls what is not there");
    const participantOf = (id: unknown): Participant => {
      const participant = typeof id === "string" ? this.#participants.get(id) : undefined;
      if (participant === undefined) throw unreadable(entry.line, "its connection is not there");
      return participant;
    };
    const sessionOf = (): Session => {
      if (this.#session === null) throw unreadable(entry.line, "the session is not open");
      return this.#session;
    };
    carryOut(says, {
      open: () => {
        this.#session = this.#open();
      },
      joined: (participant) => {
        this.#participants.set(participant.id, participant);
      },
      participantOf,
      get session() {
        return sessionOf();
      },
    });
  }

  #open(): Session {
    const { head } = this.#recording;
    const deps: SessionDeps = {
      ...nobody(),
      counters: this.#counters,
      settings: settingsOf(head.settings),
      server: head.server,
    };
    return openSession(deps, this, { id: head.session, epoch: head.epoch, onClose: () => undefined });
  }

  #mustBeIn(): Frame {
    if (this.#frame === null) throw new TypeError("Nothing of the recording runs");
    return this.#frame;
  }

  #sinceMs({ atMs }: Entry): number {
    return atMs - this.#recording.head.at_ms;
  }

  #diverged(
    { entry }: Frame,
    facts: Pick<Difference, "what" | "connection" | "field" | "recorded" | "replayed">,
  ): Diverged {
    const message = facts.connection === null ? null : (this.#messages.get(facts.connection) ?? 0);
    return new Diverged({ line: entry.line, atMs: this.#sinceMs(entry), message, ...facts });
  }
}

const LISTENERS: ReadonlySet<string> = new Set(["deliver", "notify"]);
const DELIVERED = ["connection", "frames", "bytes", "events", "audio and events", "new events"];

/** A part of what was delivered by its name. */
function named<T extends { readonly field: string }>(name: string, unlike: T): T {
  if (name !== "deliver") return unlike;
  const [at = "", ...rest] = unlike.field.split(".");
  return { ...unlike, field: [DELIVERED[Number(at)] ?? at, ...rest].join(".") };
}

function nameOf(item: Json | undefined): string {
  if (item === undefined) return "nothing more";
  return item !== null && isList(item) ? String(item[0]) : "a call from outside";
}

function isUnreadable(thrown: unknown): boolean {
  return thrown instanceof GatewayError && thrown.code === "recording_unreadable";
}

interface Stage {
  open(): void;
  joined(participant: Participant): void;
  participantOf(id: unknown): Participant;
  readonly session: Session;
}

/** Calls of a session by their names. Whoever edited a file may have put anything into them: what that throws is reported. */
const ENTRIES: Readonly<Record<string, (says: readonly unknown[], stage: Stage) => void>> = {
  open: (_says, stage) => stage.open(),
  join: ([, joining], stage) => {
    const { account, ...asked } = joining as Joining & { readonly account: string | null };
    const opusAccount =
      account === null ? {} : { opusAccount: { id: account, begin: () => () => undefined } };
    const whole: Joining = { ...asked, mayInterrupt: () => false, ...opusAccount };
    stage.joined(stage.session.join(NOBODY_LISTENS, whole));
  },
  leave: ([id, how], stage) =>
    stage.session.leave(stage.participantOf(id), how as { readonly isFinal?: boolean }),
  drained: ([id], stage) => stage.session.drained(stage.participantOf(id)),
  command: ([id, command], stage) => {
    const connection = { ...FREE, session: stage.session, participant: stage.participantOf(id) };
    handleCommand(connection, command as SessionCommand);
  },
  speak: ([command], stage) => void speak(stage.session, command as Parameters<typeof speak>[1], FREE),
  interrupt: ([id, keepMs], stage) =>
    void stage.session.interruptions.interrupt(typeof id === "string" ? id : undefined, Number(keepMs)),
  textChanged: (_says, stage) => stage.session.textChanged(),
  captions: ([style], stage) => void stage.session.captionsOf(style as Parameters<Session["captionsOf"]>[0]),
  send: ([id, event], stage) =>
    stage.participantOf(id).send(({ seq, at_ms }) => ({ ...(event as Event), seq, at_ms })),
  acknowledge: ([id, atMs, source], stage) =>
    stage.participantOf(id).acknowledge(Number(atMs), source === "mark" ? "mark" : "ack"),
  endTexts: ([id], stage) => endTexts({ session: stage.session, participant: stage.participantOf(id) }),
  drain: (_says, stage) => stage.session.utteranceCommands.drain(),
  noise: ([dbfs], stage) => stage.session.utteranceCommands.setNoise(typeof dbfs === "number" ? dbfs : null),
  restore: ([saved, epoch], stage) => stage.session.restore(saved as SavedSession, String(epoch)),
  close: ([error], stage) => stage.session.close(toGatewayError(error)),
};

function settingsOf(json: Json): SessionSettings {
  const { languageVoices, ownVoices, ...settings } = decode(json) as Record<string, unknown>;
  return {
    ...settings,
    languageVoices: new Map(languageVoices as [string, string][]),
    ...(ownVoices === undefined ? {} : { ownVoices: new Set(ownVoices as string[]) }),
  } as unknown as SessionSettings;
}

const NOBODY_LISTENS: Listener = {
  deliver: () => "sent",
  notify: () => "sent",
  bufferedBytes: () => 0,
  end: () => undefined,
};

/** Nobody is there: whoever is called has answered when it was recorded. */
function nobody(): Omit<SessionDeps, "counters" | "settings" | "server"> {
  return {
    clock: { nowMs: () => 0, at: () => ({ cancel: () => undefined }) },
    pacer: {
      isHeld: () => false,
      register: () => ({ wakeAt: () => undefined, cancel: () => undefined }),
    },
    upstream: { open: () => ({ pause: () => undefined, resume: () => undefined, abort: () => undefined }) },
    opusPool: {
      acquire: () => ({ framesInFlight: 0, push: () => undefined, release: () => undefined }),
      close: () => Promise.resolve(),
    },
    aligner: { open: () => null },
    blocks: new BlockPool(),
    sounds: new ByteRoom(Number.POSITIVE_INFINITY),
    loudness: new VoiceLoudness(),
    log: silentLog,
    defaultVoice: () => new Promise(() => undefined),
  };
}
