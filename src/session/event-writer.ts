/** Numbers the session's events and turns them into log entries that are serialized once, when first sent. */
import type { LogEntry } from "../fanout/event-log.ts";
import type { Event } from "../protocol/events.ts";
import { encodeEvent } from "../protocol/native.ts";
import type { EventKind, OffsetUnit } from "../protocol/vocabulary.ts";
import { CodePointOffsets } from "../text/offsets.ts";
import { msOfTicks } from "../timing/ticks.ts";
import { EventBytes } from "./event-bytes.ts";

const NO_BYTES = new Uint8Array(0);

export interface EventPlace {
  readonly positionTicks: number;
  /** Which `events=` name selects it; null = everybody gets it. */
  readonly kind: EventKind | null;
  /** Of a kind that comes in several forms: which one. */
  readonly variant?: string;
  /** The utterance it tells of, with its text for offsets in code points. */
  readonly utterance: { readonly id: string; readonly text: string } | null;
  /** Where it moves the frames to that follow. */
  readonly nextTicks?: number | null;
}

/** Makes the event once its number is known; `offset` turns UTF-16 offsets into what the listener asked for. */
export type EventBuilder = (
  base: { readonly seq: number; readonly at_ms: number },
  offset: (utf16: number) => number,
) => Event;

export class EventWriter {
  readonly #append: (entry: LogEntry) => void;
  readonly #bytes = new EventBytes();
  #seq = 0;

  constructor(append: (entry: LogEntry) => void) {
    this.#append = append;
  }

  /** The number of the latest event. */
  get seq(): number {
    return this.#seq;
  }

  write(place: EventPlace, build: EventBuilder): void {
    this.#seq += 1;
    this.#append(new WrittenEvent(this.#seq, place, { build, store: this.#bytes }));
  }
}

/** Thousands are kept at a time: one object each. */
class WrittenEvent implements LogEntry {
  readonly seq: number;
  readonly positionTicks: number;
  readonly kind: EventKind | null;
  readonly variant: string | null;
  readonly utteranceId: string | null;
  readonly nextTicks: number | null;
  isWithdrawn = false;
  readonly #store: EventBytes;
  readonly #text: string;
  /** Let go with the first bytes: it holds more than they do, for as long as they are kept. */
  #build: EventBuilder | null;
  #utf16: Uint8Array = NO_BYTES;
  #cp: Uint8Array | null = null;

  constructor(
    seq: number,
    place: EventPlace,
    { build, store }: { readonly build: EventBuilder; readonly store: EventBytes },
  ) {
    this.seq = seq;
    this.positionTicks = place.positionTicks;
    this.kind = place.kind;
    this.variant = place.variant ?? null;
    this.utteranceId = place.utterance?.id ?? null;
    this.nextTicks = place.nextTicks ?? null;
    // As it is now: it may still grow, and offsets in code points are those of what had come.
    this.#text = place.utterance?.text ?? "";
    this.#build = build;
    this.#store = store;
  }

  bytes(offsets: OffsetUnit): Uint8Array {
    if (this.#build !== null) {
      const base = { seq: this.seq, at_ms: msOfTicks(this.positionTicks) };
      this.#utf16 = this.#store.write(encodeEvent(this.#build(base, offsetReader("utf16", this.#text))));
      this.#build = null;
    }
    if (offsets === "utf16") return this.#utf16;
    this.#cp ??= this.#store.write(encodeEvent(inCodePoints(this.#utf16, this.#text)));
    return this.#cp;
  }
}

const decoder = new TextDecoder();

/** The same event with its offsets counted in code points. `start`, `end` and `kept_end` are offsets wherever they stand; times end in `_ms`. */
function inCodePoints(bytes: Uint8Array, text: string): Event {
  const offset = offsetReader("cp", text);
  const isOffset = (key: string): boolean => key === "start" || key === "end" || key === "kept_end";
  const event: unknown = JSON.parse(decoder.decode(bytes), (key, value: unknown) =>
    isOffset(key) && typeof value === "number" ? offset(value) : value,
  );
  return event as Event;
}

/** Turns UTF-16 offsets of a text into the unit that a listener asked for. */
export function offsetReader(unit: OffsetUnit, text: string): (utf16: number) => number {
  if (unit === "utf16") return (utf16) => utf16;
  const offsets = new CodePointOffsets(text);
  return (utf16) => offsets.codePointsOf(utf16);
}
