/** The events of one session that some listener may still have to get, oldest first, bounded in number. */
import { type Event, mapOffsets } from "../protocol/events.ts";
import type { EventKind, OffsetUnit } from "../protocol/vocabulary.ts";
import { CodePointOffsets } from "../text/code-points.ts";
import { EventBytes } from "./event-bytes.ts";

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

/** So many are freed at a time: each time the rest is copied, and each that is kept is copied by the collector. */
const TRIMMED_TOGETHER = 32;

const HIGH_HALF = /[\ud800-\udbff]/;

export class EventLog {
  readonly #maxEntries: number;
  readonly #bytes = new EventBytes();
  #entries: LoggedEvent[] = [];
  /** Index of `#entries[0]`. */
  #first = 0;
  #lastSeq = 0;
  /** The furthest place of all entries that are not withdrawn. */
  #furthestTicks = 0;
  #lastBack = -1;

  /** `maxEntries`: bound; a listener further behind than this has lost events and must be closed. */
  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  get first(): number {
    return this.#first;
  }

  get next(): number {
    return this.#first + this.#entries.length;
  }

  /** The last entry that belongs before one that was written earlier: what happens now, while audio is made ahead. */
  get lastBack(): number {
    return this.#lastBack;
  }

  append(event: Event, place: EventPlace): LoggedEvent {
    const entry = new LoggedEvent(event, place, this.#bytes);
    if (entry.positionTicks < this.#furthestTicks) this.#lastBack = this.next;
    else this.#furthestTicks = entry.positionTicks;
    this.#entries.push(entry);
    this.#lastSeq = entry.seq;
    // Dropping one at a time from the front of an array is linear: wait until a quarter more has gathered.
    if (this.#entries.length > this.#maxEntries * 1.25) {
      const excess = this.#entries.length - this.#maxEntries;
      this.#entries = this.#entries.slice(excess);
      this.#first += excess;
    }
    return entry;
  }

  entry(index: number): LoggedEvent | undefined {
    return this.#entries[index - this.#first];
  }

  /** Frees every entry before `index`. */
  trim(index: number): void {
    const count = Math.min(index - this.#first, this.#entries.length);
    if (count < TRIMMED_TOGETHER && count < this.#entries.length) return;
    if (count <= 0) return;
    this.#entries = this.#entries.slice(count);
    this.#first += count;
  }

  /** Marks entries that an interruption has made untrue: whoever has not got them never does. */
  withdraw(isUntrue: (entry: LoggedEvent) => boolean): void {
    this.#furthestTicks = 0;
    for (const entry of this.#entries) {
      if (isUntrue(entry)) entry.isWithdrawn = true;
      if (!entry.isWithdrawn) this.#furthestTicks = Math.max(this.#furthestTicks, entry.positionTicks);
    }
  }

  /** The first entry that `isWanted`, or the end. */
  indexWhere(isWanted: (entry: LoggedEvent) => boolean): number {
    const offset = this.#entries.findIndex(isWanted);
    return offset < 0 ? this.next : this.#first + offset;
  }

  /** Whether any entry from `index` on `isMeant`. */
  hasBehind(index: number, isMeant: (entry: LoggedEvent) => boolean): boolean {
    return this.#entries.slice(Math.max(0, index - this.#first)).some(isMeant);
  }

  /** Where a listener goes on that has had everything up to `seq`; how many events it missed are gone. */
  after(seq: number): { readonly index: number; readonly lost: number } {
    const index = this.indexWhere((entry) => entry.seq > seq);
    return { index, lost: index === this.#first ? Math.max(0, this.seqBefore(index) - seq) : 0 };
  }

  /** The number of the event before `index`, whether it is kept or not. */
  seqBefore(index: number): number {
    const entry = this.entry(index);
    return entry === undefined ? this.#lastSeq : entry.seq - 1;
  }

  /**
   * The first event from `index` on that does not belong before a place of the timeline, and where the last interruption
   * before that event has moved the frames to.
   */
  before(index: number, ticks: number): { readonly end: number; readonly nextTicks: number | null } {
    let nextTicks: number | null = null;
    for (let end = index; ; end += 1) {
      const entry = this.entry(end);
      if (entry === undefined || (!entry.isWithdrawn && entry.positionTicks > ticks))
        return { end, nextTicks };
      if (!entry.isWithdrawn) nextTicks = entry.nextTicks ?? nextTicks;
    }
  }

  /** The place of the event with this number, where it is kept. */
  positionOf(seq: number): number | undefined {
    return this.#entries.find((entry) => entry.seq === seq)?.positionTicks;
  }

  /** The first entry at or after a timeline position. */
  indexAt(positionTicks: number): number {
    return this.indexWhere((entry) => entry.positionTicks >= positionTicks);
  }
}

/**
 * One event of the log: what it says, and its JSON once a listener wants that. The JSON is made once in each unit of offsets and
 * shared by all listeners. Thousands are kept at a time: one object each.
 */
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
  /** Set when an interruption made the event untrue: whoever has not got it never does. */
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
