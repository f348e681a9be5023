/**
 * Who gets a session's audio and events: a client's socket, a response, a phone call. What each makes of them (messages,
 * pages of Ogg, a carrier's JSON) is its own affair.
 *
 * Frames and events come in one call: an event belongs before the frame that follows it, so their order is part of what
 * they say.
 */
import type { Event } from "../protocol/events.ts";
import type { Surface } from "../protocol/live-view.ts";
import type { OffsetUnit } from "../protocol/vocabulary.ts";
import type { LoggedEvent } from "./event-log.ts";

/** A frame of audio, or an event. A frame is a view that is good for the call only. */
export type Delivery = Uint8Array | LoggedEvent;

/** `buffered`: all accepted, but some of it waits in the socket; `dropped`: a delivery was not accepted, nor were those after it. */
export type SendResult = "sent" | "buffered" | "dropped";

export interface Listener {
  /** What it comes by, for operators. Default: a socket. */
  readonly surface?: Surface;
  /** Its last answer to a ping, ms. Default: nobody has asked. */
  readonly roundTripMs?: number | null;
  /**
   * Frames and events in their order; a socket sends them in one system call. `offsets`: the unit in which this listener
   * wants the offsets of events. The loop over a batch is the listener's: it is the hottest of all.
   */
  deliver(batch: readonly Delivery[], offsets: OffsetUnit): SendResult;
  /** An event to this listener alone, outside of the session's order (hello, error, pong, gap). */
  notify(event: Event): SendResult;
  /** Bytes accepted but not yet taken by the operating system. */
  bufferedBytes(): number;
  /** Ends the connection; the owner hears of it through its own close handler. */
  end(closeCode: number, reason: string): void;
}
