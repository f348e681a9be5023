/** What vendor sockets need from outside: handed in by `server/`, small enough that a test can write a literal. */
import type { GatewayError } from "../errors.ts";
import type { Clock } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import type { Counters } from "../metrics/counters.ts";
import type { SocketSettings } from "../protocol/elevenlabs/socket-settings.ts";
import type { Traced } from "../tracing/tracer.ts";
import type { Subject, Upstream } from "../upstream/types.ts";

/** The client's socket. After `end`, or once it is closed, it does nothing. */
export interface SocketPort {
  send(json: string): void;
  /** Bytes accepted but not yet taken by the operating system. */
  bufferedBytes(): number;
  /** May call the socket's `closed` before it returns. */
  end(closeCode: number, reason: string): void;
}

export interface SocketLimits {
  /** Contexts open at once on a socket (the vendor takes 5). */
  readonly maxContexts: number;
  /** Text of a context that no request has taken yet, UTF-16 code units. */
  readonly maxTextChars: number;
  /** Bytes that may wait for a slow client before its upstream requests are held. */
  readonly maxOutboxBytes: number;
  /** Upstream requests of a socket that are open at once; of a context two. */
  readonly maxRequests: number;
  /**
   * Without `sync_alignment` the first message of a generation carries the timing of all of it. How long, from its first
   * audio, it waits for that; then each message carries its own, ms.
   */
  readonly timingHoldMs: number;
  /** Longest wait for the first audio of a request before it is tried again, ms; 0: no limit. */
  readonly firstAudioMs: number;
}

/** A text that waits to be spoken, among those of all clients (access/limits/queued-text.ts). */
export interface WaitingText {
  /** Throws queue_full. */
  add(characters: number): void;
  takeBack(characters: number): void;
  /** It waits no more. Idempotent. */
  end(): void;
}

export interface SocketDeps {
  readonly upstream: Upstream;
  readonly clock: Clock;
  readonly counters: Counters;
  readonly log: Logger;
  readonly limits: SocketLimits;
  /** Pays for characters before they are asked of the upstream. Throws rate_limited, budget_exhausted, text_too_long. */
  readonly spend?: (characters: number) => void;
  /** Counts the text of one context; without it nobody does. */
  readonly waitingText?: () => WaitingText;
  /** For whom the upstream is asked. */
  readonly subject?: Subject;
  /** Default: nothing is traced. */
  readonly traced?: Traced | undefined;
}

export interface SocketOptions {
  readonly deps: SocketDeps;
  readonly port: SocketPort;
  readonly settings: SocketSettings;
  readonly isMulti: boolean;
  readonly voices: VoiceRule;
}

/** Which voices the client may speak with, where its messages name them. */
export interface VoiceRule {
  /** Speaks whatever the client asks for; null: the client's own. */
  readonly pinned: string | null;
  /** Throws forbidden. */
  check(voiceIds: readonly string[]): void;
}

/** The state of one vendor socket, as `server/` drives it. */
export interface VendorSocket {
  /** A text message. */
  receive(json: string): void;
  /** A message that can't be read at all. */
  refuse(thrown: unknown): void;
  /** The client has taken what waited. */
  drained(): void;
  /** The client has gone: every upstream request ends now. Idempotent. */
  closed(): void;
}

/** A vendor socket that its client has a right to for so long. */
export interface SpeakingSocket extends VendorSocket {
  /** It takes nothing more, and closes with the error when all that it took has been said. Idempotent. */
  expire(error: GatewayError): void;
}
