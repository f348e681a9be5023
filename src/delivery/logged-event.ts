/**
 * One event of a session's log: what it says, and its JSON once a listener wants that. The JSON is made once in each unit
 * of offsets and shared by all listeners.
 */
import { type Event, mapOffsets } from "../protocol/events.ts";
import type { EventKind, OffsetUnit } from "../protocol/vocabulary.ts";
import { CodePointOffsets } from "../text/offsets.ts";
import type { EventBytes } from "./event-bytes.ts";

export interface EventPlace {
  /** Timeline position the event belongs to; it leaves with the frame that contains it. */
  readonly positionTicks: number;
  /** Which `events=` name selects it; null: everybody gets it. */
  readonly kind: EventKind | null;
  /** A cue's style, as `styleKey` names it; it goes to those that chose it. */
  readonly cueStyle?: string;
  /** The utterance it is about, with its text as it is now, for offsets in code points. */
  readonly utterance: { readonly id: string; readonly text: string } | null;
  /** An interruption's: where on the timeline the next frame stands. */
  readonly nextTicks?: number | null;
}

const HIGH_HALF = /[\ud800-\udbff]/;

/** Thousands are kept at a time: one object each. */
export class LoggedEvent {
  readonly seq: number;
  readonly type: Event["type"];
  /** Timeline position this event belongs to; it leaves with the frame that contains it. */
  readonly positionTicks: number;
  /** Which `events=` name selects it; null goes to everybody. */
  readonly kind: EventKind | null;
  /** A cue's style, as `styleKey` names it; it goes to those that chose it. */
  readonly cueStyle: string | null;
  readonly utteranceId: string | null;
  /** An interruption's: where on the timeline the next frame stands. */
  readonly nextTicks: number | null;
  /** Set when an interruption made the event untrue before it was sent. */
  isWithdrawn = false;
  readonly #text: string;
  readonly #store: EventBytes;
  #event: Event | null;
  #utf16: Uint8Array | null = null;
  #codePoints: Uint8Array | null = null;

  /** `event` has offsets in UTF-16 code units; its JSON is kept in `store`. */
  constructor(event: Event, place: EventPlace, store: EventBytes) {
    this.seq = event.seq;
    this.type = event.type;
    this.positionTicks = place.positionTicks;
    this.kind = place.kind;
    this.cueStyle = place.cueStyle ?? null;
    this.utteranceId = place.utterance?.id ?? null;
    this.nextTicks = place.nextTicks ?? null;
    this.#text = place.utterance?.text ?? "";
    this.#store = store;
    this.#event = event;
  }

  /**
   * What it says, with offsets in UTF-16 code units. Always there of events that everybody gets; of the kinds that a listener
   * chooses only until their JSON is made, because a thousand sessions keep seconds of words, which take less as JSON.
   */
  get event(): Event | null {
    return this.#event;
  }

  /** As UTF-8 JSON, with offsets in the unit given. */
  json(offsets: OffsetUnit): Uint8Array {
    return (offsets === "utf16" ? this.#utf16 : this.#codePoints) ?? this.#encode(offsets);
  }

  #encode(offsets: OffsetUnit): Uint8Array {
    const event = this.#event;
    if (event === null) throw new TypeError("Event is gone: its JSON was made in both units");
    // Without surrogate pairs both units are the same.
    const isSame = this.#text === "" || !HIGH_HALF.test(this.#text);
    const bytes = this.#store.write(JSON.stringify(isSame ? event : inOffsets(offsets, event, this.#text)));
    if (isSame || offsets === "utf16") this.#utf16 = bytes;
    if (isSame || offsets === "cp") this.#codePoints = bytes;
    if (this.kind !== null && this.#utf16 !== null && this.#codePoints !== null) this.#event = null;
    return bytes;
  }
}

/** An event about `text`, whose offsets count UTF-16 code units, in the unit that a listener asked for. */
export function inOffsets(unit: OffsetUnit, event: Event, text: string): Event {
  if (unit === "utf16") return event;
  const offsets = new CodePointOffsets(text);
  return mapOffsets(event, (utf16) => offsets.codePointsOf(utf16));
}
