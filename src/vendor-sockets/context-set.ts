/**
 * The contexts of one vendor socket: who is open, what each has to say, what is said when one is over, and the end of
 * the socket, which is one error message at most and one close.
 */
import { type GatewayError, toGatewayError } from "../errors.ts";
import type { Timer } from "../kit/clock.ts";
import { NORMAL_CLOSURE } from "../kit/close-codes.ts";
import { MAX_IGNORED, shownName } from "../kit/ignored-names.ts";
import { Semaphore } from "../kit/semaphore.ts";
import { type Dialect, withIgnored } from "../protocol/elevenlabs/server-messages.ts";
import { closeReason, fault, faultOf, type SocketFault } from "../protocol/elevenlabs/socket-faults.ts";
import { ContextSpeech } from "./context-speech.ts";
import type { SocketOptions } from "./ports.ts";

/** A context, or the socket while it has none. */
interface Idler {
  /** When something came for it last, clock ms. */
  lastMs: number;
}

/** What a socket keeps for each context besides. */
export interface Context<T> extends Idler {
  /** "" = the only one, or the default one. */
  readonly id: string;
  readonly speech: ContextSpeech;
  readonly own: T;
  /** Nothing more may be said in it; it is gone when all has been sent. */
  isClosing: boolean;
}

export interface ContextSetOptions<T> extends SocketOptions {
  readonly dialect: Dialect;
  /** With which voices a context speaks: named where the upstream does not know one. */
  readonly voicesOf: (own: T) => readonly string[];
  /** Whether those that are closing count as open. */
  readonly countsClosing: boolean;
  /** A context has been idle too long: it may close itself (multi). */
  readonly onIdle: (context: Context<T>) => void;
  /** All of a context has been sent, its final message too. */
  readonly onOver: (context: Context<T>) => void;
}

/** Contexts that are closing, and don't count as open, are bounded too: so many for each that may be open. */
const CLOSING_FACTOR = 4;
/** How soon a context is looked at again that is due to end and still speaks, ms. */
const LOOK_AGAIN_MS = 1000;

export class ContextSet<T> {
  readonly #options: ContextSetOptions<T>;
  /** Upstream requests of the socket. */
  readonly #slots: Semaphore;
  readonly #contexts = new Set<Context<T>>();
  #idleTimer: Timer | null = null;
  /** Watched while there is no context. */
  readonly #socket: Idler;
  /** Which context goes first. */
  #turn = 0;
  /** Set when the socket takes no more; null: it closes as clients ask it to. */
  #ending: { readonly error: GatewayError | null } | null = null;
  #isClosed = false;
  /** Names of what clients sent and nothing is done of; those that no message has named yet. */
  readonly #ignored = new Set<string>();
  #unnamed: string[] = [];

  constructor(options: ContextSetOptions<T>) {
    this.#options = options;
    const { clock, limits } = options.deps;
    this.#slots = new Semaphore({ limit: limits.maxRequests, onFree: () => this.pump() });
    this.#socket = { lastMs: clock.nowMs() };
    this.#endIdle();
  }

  /** The socket takes nothing more. */
  get isEnding(): boolean {
    return this.#ending !== null || this.#isClosed;
  }

  find(id: string): Context<T> | undefined {
    for (const context of this.#contexts) if (context.id === id) return context;
    return undefined;
  }

  /** null: there are too many, and the socket was closed for it. */
  open(id: string, own: T): Context<T> | null {
    const { settings, deps, countsClosing } = this.#options;
    const { maxContexts } = deps.limits;
    const open = [...this.#contexts].filter((context) => countsClosing || !context.isClosing).length;
    if (open >= maxContexts || this.#contexts.size >= maxContexts * CLOSING_FACTOR) {
      const message = `Maximum simultaneous contexts exceeded (${maxContexts})`;
      this.fail(fault("max_active_conversations", message), id);
      return null;
    }
    const { outputFormat: format, isSynced, isAbsolute } = settings;
    const slots = this.#slots;
    const output = this.#outputOf(id, () => context);
    const speech = new ContextSpeech({ deps, slots, format, isSynced, isAbsolute, output });
    const context: Context<T> = { id, speech, own, isClosing: false, lastMs: deps.clock.nowMs() };
    this.#contexts.add(context);
    this.#endIdle();
    return context;
  }

  /** Something came: of a context, or of none. */
  touch(context: Context<T> | undefined): void {
    const nowMs = this.#options.deps.clock.nowMs();
    this.#socket.lastMs = nowMs;
    if (context !== undefined) context.lastMs = nowMs;
  }

  /** No more text comes in it: its final message follows once all has been sent. */
  close(context: Context<T>): void {
    if (context.isClosing) return;
    context.isClosing = true;
    context.speech.end();
  }

  /** The socket takes no more; it closes when every context is over, with the error or as asked. Close each one after it. */
  endSocket(error: GatewayError | null = null): void {
    this.#ending ??= { error };
    this.#closeIfDone();
  }

  [Symbol.iterator](): IterableIterator<Context<T>> {
    return [...this.#contexts][Symbol.iterator]();
  }

  /** There is room: each time another context goes first, since the first may take all of it. */
  pump(): void {
    // Those that end give their places back: nobody asks for anything with them then.
    if (this.#isClosed) return;
    const contexts = [...this.#contexts];
    this.#turn = (this.#turn + 1) % Math.max(1, contexts.length);
    for (const context of [...contexts.slice(this.#turn), ...contexts.slice(0, this.#turn)]) {
      context.speech.pump();
    }
  }

  /** The next message names them; each is named once. */
  noteIgnored(names: readonly string[]): void {
    for (const name of names.map(shownName)) {
      if (this.#ignored.size >= MAX_IGNORED) return;
      if (this.#ignored.has(name)) continue;
      this.#ignored.add(name);
      this.#unnamed.push(name);
    }
  }

  failWith(thrown: unknown, contextId: string): void {
    const { deps, voicesOf } = this.#options;
    const context = this.find(contextId);
    const error = toGatewayError(thrown);
    if (!this.#isClosed) deps.counters.refusals.sent(error);
    if (error.code === "internal") {
      deps.log.error({ err: error.cause ?? error }, "Fault on a vendor socket");
    }
    this.fail(faultOf(error, context === undefined ? [] : voicesOf(context.own)), contextId);
  }

  /** An error message and the close that follows it; every request ends. */
  fail(socketFault: SocketFault, contextId: string): void {
    if (this.#isClosed) return;
    const { port, dialect, deps } = this.#options;
    deps.log.info({ error: socketFault.error }, "Vendor socket is closed for an error");
    this.abort();
    this.#send(dialect.fault(socketFault, contextId));
    port.end(socketFault.code, closeReason(socketFault));
  }

  /** The client has gone, or must: nothing is sent any more. Idempotent. */
  abort(): void {
    this.#isClosed = true;
    this.#idleTimer?.cancel();
    for (const { speech } of this.#contexts) speech.abort();
    this.#contexts.clear();
  }

  #outputOf(id: string, context: () => Context<T>): ConstructorParameters<typeof ContextSpeech>[0]["output"] {
    const { port, dialect, deps } = this.#options;
    return {
      hasRoom: () => port.bufferedBytes() < deps.limits.maxOutboxBytes,
      audio: (message) => this.#send(dialect.audio(message, id)),
      flushed: () => {
        const message = dialect.flushed(id);
        if (message !== null) this.#send(message);
      },
      over: () => {
        this.#send(dialect.final(id));
        this.#contexts.delete(context());
        this.#socket.lastMs = deps.clock.nowMs();
        this.#options.onOver(context());
        this.#closeIfDone();
        this.#endIdle();
      },
      failed: (error: GatewayError) => this.failWith(error, id),
    };
  }

  #send(json: string): void {
    const { port, dialect } = this.#options;
    port.send(withIgnored(json, this.#unnamed, dialect));
    this.#unnamed = [];
  }

  #closeIfDone(): void {
    if (this.#ending === null || this.#isClosed || this.#contexts.size > 0) return;
    const { error } = this.#ending;
    if (error !== null) {
      this.failWith(error, "");
      return;
    }
    this.abort();
    this.#options.port.end(NORMAL_CLOSURE, "");
  }

  *#watched(): Iterable<Idler> {
    for (const context of this.#contexts) if (!context.isClosing) yield context;
    if (this.#contexts.size === 0) yield this.#socket;
  }

  /** Ends those that are idle too long, and waits for the next: call it when there is somebody new to watch. */
  #endIdle(): void {
    const { deps, settings } = this.#options;
    const { clock } = deps;
    const nowMs = clock.nowMs();
    for (const idler of [...this.#watched()]) {
      if (!this.#isClosed && nowMs - idler.lastMs >= settings.idleMs) this.#onIdle(idler);
    }
    this.#idleTimer?.cancel();
    if (this.#isClosed) return;
    const nextMs = Math.min(...[...this.#watched()].map(({ lastMs }) => lastMs + settings.idleMs));
    // Never at once: who stays idle after `#onIdle` would turn this into a loop.
    if (Number.isFinite(nextMs)) {
      this.#idleTimer = clock.at(Math.max(nextMs, nowMs + 1), () => this.#endIdle());
    }
  }

  #onIdle(idler: Idler): void {
    const { isMulti, settings, onIdle, deps } = this.#options;
    const context = [...this.#contexts].find((one) => one === idler);
    if (context !== undefined && isMulti) {
      onIdle(context);
      return;
    }
    if (context?.speech.isBusy === true) {
      context.lastMs = deps.clock.nowMs() - settings.idleMs + LOOK_AGAIN_MS;
      return;
    }
    const seconds = (settings.idleMs / 1000).toFixed(1);
    const message = `The connection timed out: no text came within the timeout of ${seconds} seconds.`;
    this.fail(fault("input_timeout_exceeded", message), "");
  }
}
