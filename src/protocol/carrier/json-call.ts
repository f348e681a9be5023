/**
 * The carriers that speak JSON with audio in base64 (Twilio and those who took after it): one state for all, a table of
 * words for each. Media before start, a second start and messages of wrong shapes end the call; what is unknown is odd.
 */
import type { AudioFormat } from "../vocabulary.ts";
import {
  type CallStart,
  type CarrierCodec,
  type CarrierDialect,
  type CarrierEvent,
  type CarrierHello,
  type CarrierName,
  digitEvent,
  knownName,
  NO_EVENTS,
  odd,
  type Wire,
} from "./carrier.ts";
import { bytesPerMs } from "./carrier-format.ts";
import { type Fields, protocolError, readFields } from "./fields.ts";
import { MediaOrder } from "./media-order.ts";
import { decodePayload, PieceCutter, type PieceRule } from "./payload.ts";
import { PendingMarks } from "./pending-marks.ts";

/** What one carrier calls things. */
export interface JsonWords {
  readonly carrier: CarrierName;
  /** Where messages carry the id of their stream. */
  readonly streamIdField: string;
  /** The event that answers a mark, and where it has the mark's name. */
  readonly playedEvent: string;
  playedName(message: Fields): string;
  /** The event that answers a clear, where there is one. */
  readonly clearedEvent?: string;
  /** Media may come in any order. */
  readonly isUnordered?: boolean;
  start(message: Fields, hello: CarrierHello): JsonStart;
}

export interface JsonStart {
  readonly call: CallStart;
  /** The message of audio around its base64, prepared once for a call. */
  readonly mediaHead: string;
  readonly mediaTail: string;
  /** The message of a mark around its name. */
  readonly markHead: string;
  readonly markTail: string;
  readonly clear: string;
  /** null: every frame is a message of its own. */
  readonly pieces: PieceRule | null;
  /** 16-bit samples go, and come, with their high byte first; default false. */
  readonly isBigEndian?: boolean;
  readonly isCallerBigEndian?: boolean;
}

/** A frame or several of them, at most 200 ms: few messages, and little is lost of one. */
const MAX_MESSAGE_MS = 200;

/** Whatever has come, up to MAX_MESSAGE_MS, is a message. */
export function anyPieces(format: AudioFormat): PieceRule {
  return { minBytes: 0, stepBytes: 1, maxBytes: bytesPerMs(format) * MAX_MESSAGE_MS };
}

/** The dialect of these words: half a second ahead of playout and a mark each 200 ms, unless the carrier wants it otherwise. */
export function jsonDialect(words: JsonWords, { leadMs = 500, markMs = 200 } = {}): CarrierDialect {
  const { carrier: name } = words;
  return { name, subprotocols: [], leadMs, markMs, open: (hello) => new JsonCall(words, hello) };
}

interface Open extends JsonStart {
  readonly cutter: PieceCutter | null;
}

class JsonCall implements CarrierCodec {
  readonly #words: JsonWords;
  readonly #hello: CarrierHello;
  readonly #marks = new PendingMarks();
  readonly #order = new MediaOrder();
  #open: Open | null = null;
  #isOver = false;
  /** Marks that stand behind audio which is held back. */
  #heldMarks: string[] = [];

  constructor(words: JsonWords, hello: CarrierHello) {
    this.#words = words;
    this.#hello = hello;
  }

  read(message: Wire): readonly CarrierEvent[] {
    const { carrier, streamIdField } = this.#words;
    if (typeof message !== "string") throw protocolError(carrier, "a binary message, expected JSON");
    const fields = readFields(carrier, message);
    const event = fields.text("event");
    if (event === "start") return this.#start(fields);
    if (event === "connected") return this.#open === null ? NO_EVENTS : odd("connected after start");
    if (event === "error") return odd("the carrier reports an error");
    if (this.#isOver) return odd("a message after stop");
    const streamId = fields.optionalText(streamIdField);
    if (this.#open !== null && streamId !== undefined && streamId !== this.#open.call.streamId) {
      return odd("a message of another stream");
    }
    return this.#readInCall(event, fields);
  }

  audio(frames: readonly Uint8Array[]): readonly Wire[] {
    const open = this.#opened();
    if (open.cutter === null) return frames.map((frame) => packetMessage(open, frame));
    const messages: Wire[] = [];
    open.cutter.push(frames, (buffer, bytes) => messages.push(mediaMessage(open, buffer, bytes)));
    if (messages.length > 0) messages.push(...this.#releaseMarks(open));
    return messages;
  }

  mark(name: string): Wire | null {
    const open = this.#opened();
    if (!this.#marks.ask(name)) return null;
    if (open.cutter === null || open.cutter.heldBytes === 0) return markMessage(open, name);
    this.#heldMarks.push(name);
    return null;
  }

  clear(): readonly Wire[] {
    const open = this.#open;
    if (open === null) return [];
    open.cutter?.drop();
    this.#heldMarks = [];
    this.#marks.clear();
    return [open.clear];
  }

  flush(): readonly Wire[] {
    const open = this.#open;
    if (open === null) return [];
    const messages: Wire[] = [];
    open.cutter?.flush((buffer, bytes) => messages.push(mediaMessage(open, buffer, bytes)));
    messages.push(...this.#releaseMarks(open));
    return messages;
  }

  /** None of these carriers has a word for it: closing the socket is how it is said. */
  hangUp(): readonly Wire[] {
    return [];
  }

  #start(message: Fields): readonly CarrierEvent[] {
    if (this.#open !== null) throw protocolError(this.#words.carrier, "a second start");
    const start = this.#words.start(message, this.#hello);
    const cutter = start.pieces === null ? null : new PieceCutter(start.pieces, start.call.format);
    this.#open = { ...start, cutter };
    return [{ kind: "started", call: start.call }];
  }

  #readInCall(event: string, message: Fields): readonly CarrierEvent[] {
    const words = this.#words;
    if (event === words.playedEvent) {
      return this.#needsStart(event).#marks.answerEvents(words.playedName(message));
    }
    if (event === words.clearedEvent) {
      this.#needsStart(event).#marks.confirmClear();
      return NO_EVENTS;
    }
    switch (event) {
      case "media":
        return this.#needsStart(event).#takeMedia(message.object("media"));
      case "dtmf": {
        const dtmf = this.#needsStart(event) && message.object("dtmf");
        return digitEvent(dtmf.text("digit"), dtmf.optionalCount("duration"));
      }
      case "stop":
        return this.#needsStart(event).#stop(message);
      default:
        return odd(`an event that is not known: ${knownName(event)}`);
    }
  }

  #takeMedia(media: Fields): readonly CarrierEvent[] {
    const payload = media.text("payload");
    const track = media.optionalText("track");
    // What the callee hears, where the carrier sends that too: not the caller's voice.
    if (track !== undefined && track !== "inbound") return NO_EVENTS;
    const audio = decodePayload(this.#words.carrier, payload);
    if (this.#open?.isCallerBigEndian) {
      if (audio.length % 2 === 1) throw protocolError(this.#words.carrier, "media.payload has half a sample");
      audio.swap16();
    }
    const chunk = media.optionalCount("chunk");
    if (this.#words.isUnordered && chunk !== undefined) {
      const { audio: pieces, odd: what } = this.#order.push(chunk, audio);
      return [...(what === null ? NO_EVENTS : odd(what)), ...this.#mediaEvents(pieces)];
    }
    return this.#mediaEvents([audio]);
  }

  #mediaEvents(pieces: readonly Uint8Array[]): readonly CarrierEvent[] {
    if (this.#open?.call.callerFormat === null) return NO_EVENTS;
    return pieces.filter((audio) => audio.length > 0).map((audio) => ({ kind: "media", audio }));
  }

  #stop(message: Fields): readonly CarrierEvent[] {
    this.#isOver = true;
    const reason = message.optionalObject("stop")?.optionalText("reason") ?? message.optionalText("reason");
    const rest = this.#mediaEvents(this.#order.flush());
    return [...rest, { kind: "stopped", ...(reason === undefined ? {} : { reason: reason.slice(0, 64) }) }];
  }

  #needsStart(event: string): this {
    if (this.#open === null) throw protocolError(this.#words.carrier, `${event} before start`);
    return this;
  }

  #opened(): Open {
    if (this.#open === null) throw new Error(`Cannot send to ${this.#words.carrier}: no start has come`);
    return this.#open;
  }

  /** The marks whose audio has just left. */
  #releaseMarks(open: Open): readonly Wire[] {
    const messages = this.#heldMarks.map((name) => markMessage(open, name));
    this.#heldMarks = [];
    return messages;
  }
}

/** Copied into a buffer of ours first: quicker than a Buffer around each frame, and free to be turned round. */
function mediaMessage(open: Open, buffer: Buffer, bytes: number): string {
  if (open.isBigEndian) buffer.subarray(0, bytes).swap16();
  return open.mediaHead + buffer.toString("base64", 0, bytes) + open.mediaTail;
}

function packetMessage(open: Open, packet: Uint8Array): string {
  const buffer = Buffer.from(packet.buffer, packet.byteOffset, packet.byteLength);
  return open.mediaHead + buffer.toString("base64") + open.mediaTail;
}

function markMessage(open: Open, name: string): string {
  return open.markHead + name + open.markTail;
}
