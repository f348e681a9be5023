/**
 * What one connection has sent and is not handled yet. A message is handled in the call that brings it, and nothing is
 * copied, unless many come at once: see fair-scheduler.ts. Their order is kept, and the end of the connection comes behind them.
 */
import { GatewayError } from "../../errors.ts";
import { Backlog, type Bytes } from "./backlog.ts";
import type { FairScheduler, Waiting } from "./fair-scheduler.ts";

/** How far back it counts what a connection has taken of the event loop, ms. */
const WINDOW_MS = 20;
/** Between so many that are only kept, what is due to others leaves: a look at the clock costs a tenth of keeping one. */
const KEPT_IN_A_ROW = 32;
/** So many waiting messages are handled before what is due to others leaves, and their answers leave together. */
const HANDLED_TOGETHER = 16;
/** An inbox holds so many of the longest messages. */
const MESSAGES_HELD = 16;
/** A text of the longest kind may come letter by letter, each of them in JSON with its ids. */
const BYTES_A_LETTER = 128;

/** What one read brings, and as much again. */
const MIN_INBOX_BYTES = 1_048_576;

/** The bound of an inbox, bytes. */
export function inboxBytes(limits: {
  readonly maxMessageBytes: number;
  readonly maxTextChars: number;
}): number {
  const { maxMessageBytes, maxTextChars } = limits;
  return Math.max(MIN_INBOX_BYTES, MESSAGES_HELD * maxMessageBytes, BYTES_A_LETTER * maxTextChars);
}

/** What is done with the messages of one kind of connections. `C`: such a connection. Nothing here may throw. */
export interface Receiver<C> {
  /** See inboxBytes. */
  readonly maxInboxBytes: number;
  /** Called before each message: it may hold the inbox, and the message waits. Default: none does. */
  beforeMessage?(connection: C): void;
  /** Calls `work` at once; what is answered in it leaves together. Default: each answer leaves by itself. */
  corked?(connection: C, work: () => void): void;
  /** Its bytes are lent for the call. Also once the client has closed: then it can't be answered any more. */
  handle(connection: C, message: Bytes, isBinary: boolean): void;
  /** It sends faster than it is handled: it gets the error (inbox_full) and is closed. What waited is gone. */
  refuse(connection: C, error: GatewayError): void;
  /** Behind its last message. `code`: the library's. */
  closed(connection: C, code: number): void;
}

export interface InboxOptions<C> {
  readonly scheduler: FairScheduler;
  readonly receiver: Receiver<C>;
  readonly connection: C;
}

export class Inbox<C> implements Waiting {
  readonly #scheduler: FairScheduler;
  readonly #receiver: Receiver<C>;
  readonly #connection: C;
  /** null: all that came is handled. */
  #backlog: Backlog | null = null;
  #fromMs = Number.NEGATIVE_INFINITY;
  /** Time of the event loop that it has used since then, without the first message. */
  #usedMs = 0;
  /** Of its turn: when that is over, and when its last message was handled. */
  #endMs = 0;
  #workedToMs = 0;
  /** It is closed, and the receiver does not know. */
  #closeCode: number | null = null;
  /** What has come waits until it is said where it goes. */
  #isHeld = false;
  /** Called once nothing waits any more, behind the end of the connection. */
  #followers: (() => void)[] = [];

  constructor({ scheduler, receiver, connection }: InboxOptions<C>) {
    this.#scheduler = scheduler;
    this.#receiver = receiver;
    this.#connection = connection;
  }

  get isWaiting(): boolean {
    return this.#backlog !== null;
  }

  get isDue(): boolean {
    return this.isWaiting && !this.#isHeld;
  }

  /** A message has come: it is handled now, or waits. */
  take(message: Bytes, isBinary: boolean): void {
    const scheduler = this.#scheduler;
    if (this.#backlog === null) this.#receiver.beforeMessage?.(this.#connection);
    if (this.#backlog !== null) {
      if (scheduler.counters.messagesWaited % KEPT_IN_A_ROW === 0) scheduler.between();
      this.#keep(this.#backlog, message, isBinary);
      return;
    }
    scheduler.between();
    const nowMs = scheduler.nowMs();
    // One message now and then costs one look at the clock, and is not counted.
    const isFirst = nowMs - this.#fromMs >= WINDOW_MS;
    if (isFirst) {
      this.#fromMs = nowMs;
      this.#usedMs = 0;
    } else if (this.#usedMs >= scheduler.directMs) {
      this.#backlog = new Backlog();
      this.#keep(this.#backlog, message, isBinary);
      if (this.isWaiting) scheduler.add(this);
      return;
    }
    this.#receiver.handle(this.#connection, message, isBinary);
    if (!isFirst) this.#usedMs += scheduler.nowMs() - nowMs;
  }

  /**
   * Its messages come behind those of `former`, which wait: until these are handled, and its end
   * if it has ended, all of its own wait. Then `ready` is called, unless this one has gone by then without a word.
   */
  follow(former: Inbox<C>, ready: () => void): void {
    former.#followers.push(() => goOn(ready));
    const goOn = this.hold();
  }

  /**
   * Messages wait until the returned function is called; it calls `ready` first, unless the client has closed and left nothing
   * to handle.
   */
  hold(): (ready: () => void) => void {
    this.#backlog ??= new Backlog();
    this.#isHeld = true;
    return (ready) => {
      this.#isHeld = false;
      if (this.#backlog === null) return;
      const isOfUse = this.#closeCode === null || this.#backlog.bytes > 0;
      if (isOfUse) ready();
      // Getting ready may have ended the connection, and with it the backlog; or it holds again.
      if (this.#isHeld) return;
      if (this.#backlog?.bytes === 0) this.drop();
      else if (this.isWaiting) this.#scheduler.add(this);
    };
  }

  /** The socket is gone. `wantsRest` false: nobody wants what waits, it is dropped; else it is handled, and then the end. */
  close(code: number, { wantsRest }: { readonly wantsRest: boolean }): void {
    this.#closeCode = code;
    if (this.#backlog === null) this.#reportClosed();
    else if (!wantsRest) this.drop();
  }

  work(endMs: number): number {
    const scheduler = this.#scheduler;
    const receiver = this.#receiver;
    this.#endMs = endMs;
    do {
      // Outside of the cork: one socket is corked at a time, and frames for others would leave one by one.
      scheduler.between();
      if (receiver.corked === undefined) this.#handleSome();
      else receiver.corked(this.#connection, this.#handleSome);
    } while (this.isDue && this.#workedToMs < endMs);
    return this.#workedToMs;
  }

  /** Made once, as it is called thousands of times a second. */
  readonly #handleSome = (): void => {
    const scheduler = this.#scheduler;
    for (let handled = 0; handled < HANDLED_TOGETHER; handled += 1) {
      this.#receiver.beforeMessage?.(this.#connection);
      const message = this.#isHeld ? null : this.#backlog?.shift();
      if (message !== undefined && message !== null) {
        scheduler.waits(-Backlog.sizeOf(message.bytes));
        this.#receiver.handle(this.#connection, message.bytes, message.isBinary);
      }
      this.#workedToMs = scheduler.nowMs();
      // Handling it may have ended the connection, and with it the backlog; or what follows has to wait.
      if (this.#backlog?.bytes === 0 && !this.#isHeld) this.drop();
      if (!this.isDue || this.#workedToMs >= this.#endMs) return;
    }
  };

  drop(): void {
    if (this.#backlog !== null) this.#scheduler.waits(-this.#backlog.bytes);
    this.#backlog = null;
    this.#scheduler.remove(this);
    this.#reportClosed();
    for (const goOn of this.#followers.splice(0)) goOn();
  }

  #keep(backlog: Backlog, message: Bytes, isBinary: boolean): void {
    const { counters } = this.#scheduler;
    const { maxInboxBytes } = this.#receiver;
    const bytes = Backlog.sizeOf(message);
    const isOwn = backlog.bytes + bytes > maxInboxBytes;
    if (!isOwn && this.#scheduler.hasRoomFor(bytes)) {
      backlog.push(message, isBinary);
      this.#scheduler.waits(bytes);
      counters.messagesWaited += 1;
      return;
    }
    counters.inboxesFull += 1;
    this.drop();
    const error = inboxFull(isOwn ? `${maxInboxBytes} bytes of it` : "the gateway holds of all connections");
    counters.refusals.sent(error);
    this.#receiver.refuse(this.#connection, error);
  }

  #reportClosed(): void {
    const code = this.#closeCode;
    if (code === null) return;
    this.#closeCode = null;
    this.#receiver.closed(this.#connection, code);
  }
}

function inboxFull(held: string): GatewayError {
  return new GatewayError(
    "inbox_full",
    `Connection is closed: it sends faster than it is handled, and more than ${held} wait; wait for the answers, and for \`resumed\` after \`paused\``,
    { retryAfterMs: 1000 },
  );
}
