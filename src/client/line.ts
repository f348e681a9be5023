/**
 * The sockets of one connection, one after the other: gives each event and frame to its owner once and in order, and
 * comes back when a socket breaks, where the caller wants that.
 */
import type { Command } from "../protocol/commands.ts";
import type {
  AudioDescription,
  ErrorEvent,
  Event,
  HelloEvent,
  InterruptedEvent,
} from "../protocol/events.ts";
import type { ListenerSettings } from "../protocol/vocabulary.ts";
import { returnUrl } from "./address.ts";
import { clientError, VoicewireError } from "./client-error.ts";
import { parseEvent } from "./events.ts";
import { FrameClock, type FramePosition } from "./frame-clock.ts";
import type { ReconnectedEvent } from "./listeners.ts";
import type { Opening } from "./open-socket.ts";
import { isWorthATry, type ReconnectOptions, Reconnector, type Waiting } from "./reconnector.ts";
import { ReturnPoint } from "./return-point.ts";
import { SOCKET_OPEN, type SocketEnd, type WebSocketLike } from "./socket.ts";

/** How the connection was opened, and how it comes back. */
export interface Way {
  readonly opening: Opening;
  /** null: it ends with its socket. */
  readonly policy: ReconnectOptions | null;
}

export interface LineHandlers {
  event(event: Event): void;
  frame(frame: Uint8Array, position: FramePosition): void;
  /** A socket is gone, and with it every answer that was to come on it. */
  broken(end: SocketEnd): void;
  /** Another one will be tried. */
  waiting(how: Waiting): void;
  rejoined(how: Omit<ReconnectedEvent, "type">): void;
  /** It is over, once. */
  ended(end: SocketEnd): void;
}

const LEFT: SocketEnd = { code: 1000, reason: "client closed" };

export class Line {
  readonly #handlers: LineHandlers;
  readonly #clock = new FrameClock();
  readonly #returnPoint: ReturnPoint;
  readonly #reconnector: Reconnector | null;
  readonly #opening: Opening;
  #socket: WebSocketLike;
  #hello: HelloEvent;
  #audio: AudioDescription | null;
  /** What `configure` made of the settings that the address asked for; null = nothing yet. */
  #settings: ListenerSettings | null = null;
  /** What came before the caller could attach its handlers; null once it is handed out. */
  #held: unknown[] | null = [];
  /** Why the gateway is about to close the socket. It answers no command, and where we come back it is no error. */
  #farewell: ErrorEvent | null = null;
  #isClosing = false;
  #isOver = false;

  /** `socket` is open and has just delivered `hello`. */
  constructor(socket: WebSocketLike, joined: { hello: HelloEvent; way: Way; handlers: LineHandlers }) {
    const { hello, way, handlers } = joined;
    this.#handlers = {
      ...handlers,
      ended: (end) => {
        this.#isOver = true;
        handlers.ended(end);
      },
    };
    this.#socket = socket;
    this.#hello = hello;
    this.#audio = hello.audio;
    this.#clock.restart(hello.audio);
    this.#returnPoint = new ReturnPoint(hello);
    this.#opening = way.opening;
    this.#reconnector = way.policy === null ? null : this.#newReconnector(way.policy);
    this.#attach(socket);
    // A joiner gets frames in the same packet as `hello`: they wait one turn of the loop for its handlers.
    setTimeout(() => this.#release(), 0);
  }

  /** What the gateway said when we joined last. */
  get hello(): HelloEvent {
    return this.#hello;
  }

  get audio(): AudioDescription | null {
    return this.#audio;
  }

  get isOpen(): boolean {
    return this.#socket.readyState === SOCKET_OPEN;
  }

  /** Its socket is gone, and another one is to come. */
  get isAway(): boolean {
    return this.#reconnector !== null && !this.isOpen && !this.#isClosing && !this.#isOver;
  }

  /** Throws not_connected. */
  send(command: Command): void {
    if (!this.isOpen) throw clientError("not_connected", `Command ${command.type}: the connection is closed`);
    this.#socket.send(JSON.stringify(command));
  }

  /** Does not wait any longer for the next try. */
  tryNow(): void {
    this.#reconnector?.tryNow();
  }

  /** Idempotent; `ended` follows. */
  close(): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    if (this.isOpen) {
      this.send({ type: "close" });
      this.#socket.close(LEFT.code, LEFT.reason);
    } else if (this.#reconnector?.isTrying === true) {
      this.#reconnector.cancel();
      this.#handlers.ended(LEFT);
    }
  }

  #newReconnector(policy: ReconnectOptions): Reconnector {
    const opening = this.#opening;
    return new Reconnector(policy, {
      opening: () => {
        const resume = this.#returnPoint.value(this.#audio === null ? null : this.#clock.endMs);
        return { ...opening, url: returnUrl(opening.url, { resume, settings: this.#settings ?? {} }) };
      },
      waiting: (how) => this.#handlers.waiting(how),
      joined: (socket, hello) => this.#rejoin(socket, hello),
      givenUp: (end) => this.#handlers.ended(end),
    });
  }

  #attach(socket: WebSocketLike): void {
    socket.addEventListener("message", ({ data }) => {
      if (this.#held === null) this.#socketOnMessage(data);
      else this.#held.push(data);
    });
    socket.addEventListener("close", ({ code, reason }) => this.#socketOnClose({ code, reason }));
  }

  #release(): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const data of held) this.#socketOnMessage(data);
  }

  #socketOnClose(end: SocketEnd): void {
    this.#release();
    const farewell = this.#farewell;
    this.#farewell = null;
    if (this.#reconnector === null || this.#isClosing || !this.#isWorthATry(end)) {
      if (farewell !== null) this.#handlers.event(farewell);
      this.#handlers.broken(end);
      this.#handlers.ended(end);
    } else {
      this.#handlers.broken(end);
      this.#reconnector.start(end, farewell === null ? null : new VoicewireError(farewell));
    }
  }

  /** With a new token, after the end of the one before, too. */
  #isWorthATry({ code, reason }: SocketEnd): boolean {
    return isWorthATry(code) || (reason === "token_expired" && this.#opening.tokens?.isRenewable === true);
  }

  #rejoin(socket: WebSocketLike, hello: HelloEvent): void {
    this.#socket = socket;
    const takenOver = hello.former_epoch === this.#hello.epoch;
    this.#hello = hello;
    this.#audio = hello.audio;
    const isSameTimeline = this.#returnPoint.rejoin(hello);
    if (!isSameTimeline) this.#clock.forget();
    const gapMs = this.#clock.rejoin(hello.audio);
    this.#attach(socket);
    const resumed = isSameTimeline && hello.resumed === true;
    this.#handlers.rejoined({ resumed, takenOver, gapMs: isSameTimeline ? gapMs : null, hello });
  }

  #socketOnMessage(data: unknown): void {
    if (data instanceof ArrayBuffer) {
      const position = this.#clock.next();
      if (position !== null) this.#handlers.frame(new Uint8Array(data), position);
      return;
    }
    const event = parseEvent(data);
    if (event === null) this.#socket.close(4400, "malformed event");
    else this.#take(event);
  }

  #take(event: Event): void {
    if (event.type === "error" && event.closing === true) {
      this.#farewell = event;
      return;
    }
    if (!this.#returnPoint.take(event)) return;
    // The clock first: handlers may ask for `audio`, and the next frame is already judged by it.
    if (event.type === "gap") this.#clock.skip(event);
    if (event.type === "interrupted") this.#cut(event);
    if (event.type === "configured") {
      this.#audio = event.audio;
      this.#settings = event.settings;
      this.#clock.restart(event.audio);
    }
    this.#handlers.event(event);
  }

  #cut(event: InterruptedEvent): void {
    if (event.next_ms === null) return;
    // From before we came back, with the audio after it gone, too: `hello` has said where our frames stand.
    if (this.#returnPoint.isReplayed(event) && this.#clock.hasSkipped) return;
    this.#clock.moveTo(event.next_ms);
  }
}
