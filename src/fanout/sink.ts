/** What a listener writes to: one client socket, without the server library behind it. */

/** `buffered`: accepted, but the socket is behind; `dropped`: not accepted. */
export type SendResult = "sent" | "buffered" | "dropped";

export interface Sink {
  send(message: Uint8Array | string, isBinary: boolean): SendResult;
  /** Runs `write` so that everything it sends leaves in one system call. */
  cork(write: () => void): void;
  /** Bytes accepted but not yet taken by the operating system. */
  bufferedBytes(): number;
  /** Ends the connection; the owner hears of it through its own close handler. */
  end(closeCode: number, reason: string): void;
}
