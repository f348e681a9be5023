/** How a service is spoken with that is asked over a socket of its own kind. */

/** One for each kind of socket. */
export interface SocketLine {
  /** Connects. Calls nothing before it returns. */
  open(request: LineRequest, events: LineEvents): OpenLine;
}

export interface LineRequest {
  readonly url: URL;
  /** Names and values in a row. */
  readonly headers: readonly string[];
  /** Sent once it is connected; none: it is only asked whether it answers. */
  readonly messages: readonly string[];
  /** Longest wait until it is connected, ms. */
  readonly connectTimeoutMs: number;
}

/** Called in order: `opened`, `answered`, `message`*, then one of `ended` and `failed`, which may come at any time. */
export interface LineEvents {
  /** It is connected, and nothing is sent yet. Returns whether anybody still wants it; else the line is destroyed already. */
  opened(): boolean;
  /** The service has said its first word: 200, or the status of a refusal, whose text the messages are then. */
  answered(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void;
  /** The bytes are the receiver's from here on. */
  message(bytes: Buffer): void;
  /** The service has closed it. */
  ended(): void;
  /** With the system's code, or a GatewayError. */
  failed(error: Error): void;
}

/** `events` hear nothing after `end` and `destroy`. All are idempotent. */
export interface OpenLine {
  /** Reads no more but what was read already. */
  hold(): void;
  release(): void;
  /** It is over on both sides. */
  end(): void;
  destroy(): void;
}

/** An error that is known by its code, as the system's are. */
export function lineError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
