/** WebSockets that take JSON text, each with a state behind it (vendor-sockets/ports.ts): how they are opened, driven and closed. */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { ERRORS } from "../../errors.ts";
import type { SocketPort, VendorSocket } from "../../vendor-sockets/ports.ts";
import type { SocketBehavior } from "../routes.ts";
import type { FairScheduler } from "./fair-scheduler.ts";
import { Inbox, type Receiver } from "./inbox.ts";
import { UwsPort } from "./uws-sockets.ts";
import { acceptUpgrade, HARD_MESSAGE_FACTOR, type Headers, socketLimits, textReader } from "./websocket.ts";

export interface MessageSocketsOptions {
  /** Shares out time between connections that bring many messages at once. */
  readonly scheduler: FairScheduler;
  /** See inboxBytes. */
  readonly maxInboxBytes: number;
  /** A longer message is refused by the state. */
  readonly maxMessageBytes: number;
  /** See SocketLimits. */
  readonly maxBackpressureBytes: number;
  readonly idleSeconds: number;
}

/** `R`: what a request asks for. */
interface MessageSocketHandlers<R> {
  /** null: it may not connect, and has been answered. */
  readonly accept: (res: HttpResponse, req: HttpRequest) => R | null;
  /** null: it may not stay, and was ended. */
  readonly open: (request: R, port: UwsPort<unknown>, hold: HoldMessages) => VendorSocket | null;
  /** Gives further headers for the answer to the handshake; default: none. */
  readonly headers?: (request: R) => Headers;
}

/** What comes waits until the function that this gives is called, with what is to be done first. See Inbox.hold. */
export type HoldMessages = () => (ready: () => void) => void;

/** What the server library keeps for each socket. */
interface SocketData<R> {
  readonly request: R;
  port: UwsPort<SocketData<R>> | null;
  socket: VendorSocket | null;
  inbox: Inbox<SocketData<R>> | null;
}

/** All sockets of one surface, of any of its addresses. */
export class MessageSockets {
  readonly #options: MessageSocketsOptions;
  readonly #ports = new Set<SocketPort>();
  #isClosed = false;

  constructor(options: MessageSocketsOptions) {
    this.#options = options;
  }

  /** Sockets that are open. */
  get count(): number {
    return this.#ports.size;
  }
  /** Nobody may be accepted any more. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Ends every socket and what it has asked of the upstream: close 1001. Idempotent. */
  close(): void {
    this.#isClosed = true;
    const { closeCode, meaning } = ERRORS.draining;
    for (const port of [...this.#ports]) port.end(closeCode, meaning);
  }

  /** The route of one path. */
  behavior<R>({ accept, open, headers }: MessageSocketHandlers<R>): SocketBehavior<SocketData<R>> {
    const { maxMessageBytes } = this.#options;
    const receiver = this.#receiver<R>();
    return {
      ...socketLimits({ ...this.#options, hardMessageBytes: maxMessageBytes * HARD_MESSAGE_FACTOR }),
      upgrade: (res, req, context) => {
        const request = accept(res, req);
        if (request === null) return;
        const data: SocketData<R> = { request, port: null, socket: null, inbox: null };
        acceptUpgrade(res, req, { context, data, headers: headers?.(request) ?? [] });
      },
      open: (ws) => {
        const data = ws.getUserData();
        const port = new UwsPort(ws);
        data.port = port;
        this.#ports.add(port);
        const inbox = new Inbox({ scheduler: this.#options.scheduler, receiver, connection: data });
        data.inbox = inbox;
        data.socket = open(data.request, port, () => inbox.hold());
      },
      message: (ws, message, isBinary) => ws.getUserData().inbox?.take(message, isBinary),
      drain: (ws) => ws.getUserData().socket?.drained(),
      close: (ws, code) => {
        const { port, inbox } = ws.getUserData();
        if (port !== null) {
          port.markClosed();
          this.#ports.delete(port);
        }
        // Nobody else hears what is said here: it would be asked of the upstream only to be ended at once.
        inbox?.close(code, { wantsRest: false });
      },
    };
  }

  #receiver<R>(): Receiver<SocketData<R>> {
    const { maxMessageBytes, maxInboxBytes } = this.#options;
    const textOf = textReader(maxMessageBytes);
    return {
      maxInboxBytes,
      handle: ({ socket }, message, isBinary) => {
        let text: string;
        try {
          text = textOf(message, isBinary);
        } catch (thrown) {
          socket?.refuse(thrown);
          return;
        }
        socket?.receive(text);
      },
      refuse: ({ socket }, error) => socket?.refuse(error),
      closed: ({ socket }) => socket?.closed(),
    };
  }
}
