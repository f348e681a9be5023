/** The part of a WebSocket that the client uses: the browser's own class fits it, and so does `ws` under Node. */

export interface SocketMessage {
  /** A string for a text message, an ArrayBuffer for a binary one (`binaryType` is set to that). */
  readonly data: unknown;
}

export interface SocketEnd {
  readonly code: number;
  readonly reason: string;
}

export interface WebSocketLike {
  binaryType: string;
  /** 0 connecting, 1 open, 2 closing, 3 closed. */
  readonly readyState: number;
  send(data: string): void;
  close(code?: number, reason?: string): void;
  addEventListener(type: "open" | "error", listener: (event: object) => void): void;
  addEventListener(type: "message", listener: (event: SocketMessage) => void): void;
  addEventListener(type: "close", listener: (event: SocketEnd) => void): void;
}

export type WebSocketConstructor = new (url: string, protocols?: string[]) => WebSocketLike;

export const SOCKET_OPEN = 1;
