/** WebSockets that take JSON text, each with a state behind it (contexts/ports.ts): how they are opened, driven and closed. */
import type { HttpRequest, HttpResponse, WebSocketBehavior } from "uWebSockets.js";
import type { SocketPort, VendorSocket } from "../contexts/ports.ts";
import { ERRORS } from "../errors.ts";
import { UwsPort } from "./uws-port.ts";
import { acceptUpgrade, HARD_MESSAGE_FACTOR, socketLimits, textReader } from "./websocket.ts";

export interface MessageSocketsOptions {
  /** Before each message: one socket may bring thousands in a row. */
  readonly onMessage?: (() => void) | undefined;
  /** A longer message is refused by the state. */
  readonly maxMessageBytes: number;
  /** See SocketLimits. */
  readonly maxBackpressureBytes: number;
  readonly idleSeconds: number;
}

/** `R`: what a request asks for. */
export interface MessageSocketHandlers<R> {
  /** null: it may not connect, and has been answered. */
  readonly accept: (res: HttpResponse, req: HttpRequest) => R | null;
  readonly open: (request: R, port: UwsPort<unknown>) => VendorSocket;
}

/** What the server library keeps for each socket. */
interface SocketData<R> {
  readonly request: R;
  port: UwsPort<SocketData<R>> | null;
  socket: VendorSocket | null;
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

  /** Of one address. */
  behavior<R>({ accept, open }: MessageSocketHandlers<R>): WebSocketBehavior<SocketData<R>> {
    const { maxMessageBytes } = this.#options;
    const textOf = textReader(maxMessageBytes);
    return {
      ...socketLimits({ ...this.#options, hardMessageBytes: maxMessageBytes * HARD_MESSAGE_FACTOR }),
      upgrade: (res, req, context) => {
        const request = accept(res, req);
        if (request === null) return;
        acceptUpgrade<SocketData<R>>(res, req, { context, data: { request, port: null, socket: null } });
      },
      open: (ws) => {
        const data = ws.getUserData();
        const port = new UwsPort(ws);
        data.port = port;
        this.#ports.add(port);
        data.socket = open(data.request, port);
      },
      message: (ws, message, isBinary) => {
        this.#options.onMessage?.();
        const { socket } = ws.getUserData();
        let text: string;
        try {
          text = textOf(message, isBinary);
        } catch (thrown) {
          socket?.refuse(thrown);
          return;
        }
        socket?.receive(text);
      },
      drain: (ws) => ws.getUserData().socket?.drained(),
      close: (ws) => {
        const { port, socket } = ws.getUserData();
        if (port !== null) {
          port.markClosed();
          this.#ports.delete(port);
        }
        socket?.closed();
      },
    };
  }
}
