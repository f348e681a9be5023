/**
 * What all carriers have in common: a call's audio and marks one way, the caller's voice and keys the other. Each dialect
 * is pure: messages in, events out; frames and marks in, messages out. One codec serves one connection.
 */
import type { AudioFormat } from "../vocabulary.ts";

export const CARRIERS = [
  "twilio",
  "signalwire",
  "telnyx",
  "plivo",
  "vonage",
  "exotel",
  "jambonz",
  "asterisk",
] as const;
/** Carriers that call over a WebSocket. */
export type CarrierName = (typeof CARRIERS)[number];
/** Every way in which a call may come. */
export type CallVia = CarrierName | "audiosocket" | "rtp";

/** A message of the socket: text, or binary where it is bytes. */
export type Wire = string | Uint8Array;

/** How a call begins, as far as its carrier says. */
export interface CallStart {
  /** The carrier's id of the call; its stream's where it has none for the call. */
  readonly callId: string;
  readonly streamId: string;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** What the application has handed to the carrier to be passed on, e.g. `session`. */
  readonly parameters: Readonly<Record<string, string>>;
  /** The caller's voice, mono; null where its format is not known here: no `media` comes then. */
  readonly callerFormat: AudioFormat | null;
  /** What the carrier wants to be sent. */
  readonly format: AudioFormat;
  /** Length of the frames it wants, ms. */
  readonly frameMs: number;
}

export type CarrierEvent =
  | { readonly kind: "started"; readonly call: CallStart }
  /** A piece of the caller's voice in `callerFormat`; good until the next message is read. */
  | { readonly kind: "media"; readonly audio: Uint8Array }
  /** One of 0-9, *, #, A-D. */
  | { readonly kind: "dtmf"; readonly digit: string; readonly durationMs?: number }
  /** The mark came back: all that was sent before it has been played. Never of marks that a clear has taken away. */
  | { readonly kind: "played"; readonly name: string }
  /** The carrier's buffer is full; nothing is to be sent until `goOn`. */
  | { readonly kind: "hold" }
  | { readonly kind: "goOn" }
  | { readonly kind: "stopped"; readonly reason?: string }
  /** Something that does not fit and is survived; `what` holds none of the caller's words or digits. */
  | { readonly kind: "odd"; readonly what: string };

/** What is known of a connection before its first message. */
export interface CarrierHello {
  readonly query: ReadonlyMap<string, string>;
  readonly headers: ReadonlyMap<string, string>;
}

/**
 * One connection. `read` throws GatewayError `carrier_protocol` where the call can't go on: media before start, a second
 * start, a message that is not of the dialect's shape or too long. An event whose name is not known is `odd`: carriers
 * add some. `audio` and `mark` are for after `started`; what they return may be views of `frames`, which are never
 * changed.
 */
export interface CarrierCodec {
  read(message: Wire): readonly CarrierEvent[];
  /** The messages that carry these frames, each of the length that was asked for, after `started`. */
  audio(frames: readonly Uint8Array[]): readonly Wire[];
  /**
   * Asks for `played` with this name (1 to 32 letters and digits, no name twice in a call: RangeError). null: nothing is
   * to be sent now. As many marks wait as may, and `played` will not come; or the mark stands behind audio that is held
   * back (Exotel): it leaves with that, and `played` comes.
   */
  mark(name: string): Wire | null;
  /** Throws away what the carrier has not played; marks that wait are forgotten. */
  clear(): readonly Wire[];
  /** At the end of an utterance: what completes a piece that is too short for the carrier. */
  flush(): readonly Wire[];
  /** Says that we hang up, where the dialect has words for it. */
  hangUp(): readonly Wire[];
}

export interface CarrierDialect {
  readonly name: CallVia;
  /** WebSocket subprotocols, the best first; empty: none. */
  readonly subprotocols: readonly string[];
  /** How far ahead of playout the carrier may be sent, ms. */
  readonly leadMs: number;
  /** How often a mark is asked for, ms of audio; 0: the carrier has none. */
  readonly markMs: number;
  open(hello: CarrierHello): CarrierCodec;
}

// ---- events that several dialects make ----

export const NO_EVENTS: readonly CarrierEvent[] = [];

export function odd(what: string): readonly CarrierEvent[] {
  return [{ kind: "odd", what }];
}

/** A key that the caller has pressed; a digit that phones do not have is odd. */
export function digitEvent(digit: string, durationMs: number | undefined): readonly CarrierEvent[] {
  if (!/^[0-9*#A-Da-d]$/.test(digit)) return odd("a key that phones do not have");
  return [{ kind: "dtmf", digit: digit.toUpperCase(), ...(durationMs === undefined ? {} : { durationMs }) }];
}

/** The name of an event that is not known, fit for a log: nothing that could be a caller's words. */
export function knownName(event: string): string {
  return /^[A-Za-z][A-Za-z_:.]{0,31}$/.test(event) ? event : "(no name)";
}
