/** What a listener writes to: one client socket, without the server library behind it. */

export interface Message {
  readonly bytes: Uint8Array;
  /** A frame of audio (binary), else an event (text). */
  readonly isFrame: boolean;
}

/** `buffered`: all accepted, but the socket is behind; `dropped`: a message was not accepted, nor were those after it. */
export type SendResult = "sent" | "buffered" | "dropped";

export interface Sink {
  /** Sends the messages in order in one system call. The loop over a batch is the sink's: it is the hottest of all. */
  sendAll(messages: readonly Message[]): SendResult;
  sendText(text: string): SendResult;
  /** Bytes accepted but not yet taken by the operating system. */
  bufferedBytes(): number;
  /** Ends the connection; the owner hears of it through its own close handler. */
  end(closeCode: number, reason: string): void;
}
