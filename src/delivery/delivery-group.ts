/**
 * Listeners of one session in lockstep: they share a rendition, a pace, a lead and a choice of events, and get the same
 * frames and events at the same time. `collect` orders the due frames and events once; `send` hands that batch to each of them.
 *
 * The order: events by `seq`; an event leaves before the frame that contains its position, so it is never later than
 * its sound.
 */
import { GatewayError } from "../errors.ts";
import type { SentAudio } from "../metrics/audio-sent.ts";
import type { EventKind, Pace } from "../protocol/vocabulary.ts";
import type { EventLog, LoggedEvent } from "./event-log.ts";
import type { Delivery } from "./listener.ts";
import type { Behind, ListenerCursor } from "./listener-cursor.ts";
import type { Rendition } from "./rendition.ts";

interface DeliveryShape {
  readonly pace: Pace;
  readonly leadMs: number;
  readonly events: readonly EventKind[];
  /** The style of cues that its listeners chose; without it they get none. */
  readonly cueStyle?: string;
}

export interface DeliveryGroupOptions extends DeliveryShape {
  /** null = events only. */
  readonly rendition: Rendition | null;
  readonly log: EventLog;
  /** Counts the frames that it sends; null = events only. */
  readonly sent: SentAudio | null;
  /** Where the group starts: index of its first frame and event. */
  readonly frame: number;
  readonly event: number;
}

/** Sends a `gap` to one listener that has the events before `event`; the session makes it. */
export type EmitGap = (cursor: ListenerCursor, gap: { frames: number; ms: number }, event: number) => void;

/** Frames sent to a listener that catches up before its socket is looked at again. */
const CATCH_UP_FRAMES = 64;
/** Events sent to it before its socket is looked at again. */
const CATCH_UP_EVENTS = 64;

export class DeliveryGroup {
  readonly rendition: Rendition | null;
  readonly pace: Pace;
  readonly leadMs: number;
  /** Apart, so that what is done for laggards costs nothing where there are none. */
  readonly #inLockstep = new Set<ListenerCursor>();
  readonly #behind = new Set<ListenerCursor>();
  readonly wantsTiming: boolean;
  readonly #kinds: ReadonlySet<EventKind>;
  readonly #cueStyle: string | null;
  readonly #log: EventLog;
  readonly #sent: SentAudio | null;
  #nextFrameIndex: number;
  #nextEventIndex: number;
  #batch: Delivery[] = [];
  /** First event of the batch. */
  #batchEvent = 0;

  constructor(options: DeliveryGroupOptions) {
    this.rendition = options.rendition;
    this.pace = options.pace;
    this.leadMs = options.leadMs;
    this.#kinds = new Set(options.events);
    // With calls, too: their receipts are true to the word then.
    this.wantsTiming = options.events.some((kind) => kind !== "marks" && kind !== "presence");
    this.#cueStyle = options.cueStyle ?? null;
    this.#log = options.log;
    this.#sent = options.sent;
    this.#nextFrameIndex = options.frame;
    this.#nextEventIndex = options.event;
  }

  /** Next frame and event of the listeners in lockstep. */
  get frame(): number {
    return this.#nextFrameIndex;
  }
  get event(): number {
    return this.#nextEventIndex;
  }

  /**
   * Puts everything due in order, to be sent by `send`: frames that start at or before `limitTicks`, and events up to
   * them. The frames are views into the rendition's ring: nothing may be pushed to it before they are sent.
   */
  collect(limitTicks: number): void {
    if (this.#batch.length === 0) this.#batchEvent = this.#nextEventIndex;
    const reached = this.#collect(
      { frame: this.#nextFrameIndex, event: this.#nextEventIndex },
      limitTicks,
      this.#batch,
    );
    this.#nextFrameIndex = reached.frame;
    this.#nextEventIndex = reached.event;
  }

  /** Sends what was collected to every listener in lockstep; returns how many frames left for how many listeners in all. */
  send(): number {
    const batch = this.#batch;
    if (batch.length === 0) return 0;
    // A socket that closes while it is sent to comes back here: it must find nothing to send twice.
    this.#batch = [];
    for (const cursor of this.#behind) {
      if (cursor.behind !== null && cursor.behind.event < this.#log.first) cursor.end(tooSlow());
    }
    const frames = framesOf(batch);
    let listeners = this.#inLockstep.size;
    for (const cursor of this.#inLockstep) {
      if (cursor.isAudioLeftOut) {
        this.#sendEvents(cursor, batch, frames);
        listeners -= 1;
      } else if (cursor.sendBatch(batch, frames) === "full") {
        this.fallBehind(cursor, {
          frame: this.#nextFrameIndex,
          event: this.#nextEventIndex,
          isJoining: false,
        });
      }
    }
    this.#count(batch, frames, listeners);
    return frames * listeners;
  }

  #count(batch: readonly Delivery[], frames: number, listeners: number): void {
    if (frames === 0 || this.#sent === null) return;
    this.#sent.bytes += bytesOf(batch) * listeners;
    this.#sent.ms += frames * (this.rendition?.frameMs ?? 0) * listeners;
  }

  /** First frame that this listener was not sent yet. */
  nextFrame(cursor: ListenerCursor): number {
    return cursor.behind?.frame ?? this.#nextFrameIndex;
  }

  /** The number of the last event that this listener was sent. */
  sentSeq(cursor: ListenerCursor): number {
    return this.#log.seqBefore(this.unsentEvent(cursor));
  }

  /** First event that this listener was not sent yet. */
  unsentEvent(cursor: ListenerCursor): number {
    return cursor.behind?.event ?? (this.#batch.length > 0 ? this.#batchEvent : this.#nextEventIndex);
  }

  /** Whether its listeners asked for this kind of event. */
  wants(kind: EventKind): boolean {
    return this.#kinds.has(kind);
  }

  get size(): number {
    return this.#inLockstep.size + this.#behind.size;
  }

  /** Takes a listener in, in lockstep or behind. */
  add(cursor: ListenerCursor): void {
    if (cursor.behind === null) this.#inLockstep.add(cursor);
    else this.#behind.add(cursor);
  }

  delete(cursor: ListenerCursor): void {
    this.#inLockstep.delete(cursor);
    this.#behind.delete(cursor);
  }

  /** The listener leaves the lockstep, and goes on at its own place in frames and events. */
  fallBehind(cursor: ListenerCursor, behind: Behind): void {
    cursor.behind = behind;
    // It may have left while it was sent to.
    if (this.#inLockstep.delete(cursor)) this.#behind.add(cursor);
  }

  /** Policy `captions`: audio is dropped, so that the socket has room for events. */
  #sendEvents(cursor: ListenerCursor, batch: readonly Delivery[], frames: number): void {
    const events = batch.filter((item) => !(item instanceof Uint8Array));
    cursor.leaveOut(frames);
    if (events.length > 0 && cursor.sendBatch(events, 0) === "full") {
      this.fallBehind(cursor, { frame: this.#nextFrameIndex, event: this.#nextEventIndex, isJoining: false });
    }
  }

  /** A listener's socket has drained: send what it missed, or say what it lost. */
  catchUp(cursor: ListenerCursor, emitGap: EmitGap): void {
    this.#emitDropped(cursor, emitGap);
    const behind = cursor.behind;
    if (behind === null) return;
    if (behind.event < this.#log.first) {
      cursor.end(tooSlow());
      return;
    }
    const mayWait = cursor.policy === "lossless" || behind.isJoining;
    if (mayWait && this.rendition !== null && this.rendition.first > behind.frame) {
      this.sendEventsBefore(cursor, this.rendition.startTicksOf(this.rendition.first));
      this.#skip(cursor, { behind, toFrame: this.rendition.first, emitGap });
    }
    while (cursor.behind === behind && cursor.hasRoom()) {
      if (mayWait) this.#catchUpStep(cursor, behind);
      else this.#catchUpEvents(cursor, behind, emitGap);
    }
  }

  /** The oldest frame that a lossless listener still needs. */
  oldestNeededFrame(): number {
    let oldest = this.#nextFrameIndex;
    for (const cursor of this.#behind) {
      if (cursor.policy === "lossless" && cursor.behind !== null)
        oldest = Math.min(oldest, cursor.behind.frame);
    }
    return oldest;
  }

  /** The oldest event that anybody here still needs. */
  oldestNeededEvent(): number {
    let oldest = this.#nextEventIndex;
    for (const cursor of this.#behind) {
      if (cursor.behind !== null) oldest = Math.min(oldest, cursor.behind.event);
    }
    return oldest;
  }

  /** After an interruption: everybody goes on with the first frame behind the cut. */
  jumpTo(frame: number, emitGap: EmitGap): void {
    this.#nextFrameIndex = frame;
    // The gap comes before the cut: from the cut on, frames are counted from another place.
    for (const cursor of this.#inLockstep) this.#emitDropped(cursor, emitGap);
    for (const cursor of this.#behind) {
      this.#emitDropped(cursor, emitGap);
      if (cursor.behind !== null) cursor.behind.frame = frame;
    }
  }

  /** Reports the frames that were left out for the sake of events. */
  #emitDropped(cursor: ListenerCursor, emitGap: EmitGap): void {
    const frames = cursor.takeLeftOut();
    if (frames === 0) return;
    emitGap(cursor, { frames, ms: frames * (this.rendition?.frameMs ?? 0) }, this.unsentEvent(cursor));
  }

  /** Gives up the frames before `toFrame` and says so. */
  #skip(cursor: ListenerCursor, skip: { behind: Behind; toFrame: number; emitGap: EmitGap }): void {
    const frames = skip.toFrame - skip.behind.frame;
    if (frames <= 0 || this.rendition === null) return;
    skip.behind.frame = skip.toFrame;
    skip.emitGap(cursor, { frames, ms: frames * this.rendition.frameMs }, skip.behind.event);
  }

  /**
   * Sends a listener that is on its own the events before a place of the timeline, ahead of the gap that ends there: a cut
   * among them moves the count of frames, and the gap counts on from it.
   */
  sendEventsBefore(cursor: ListenerCursor, ticks: number): void {
    const { behind } = cursor;
    if (behind === null && this.size > 1) return;
    const from = behind?.event ?? this.#nextEventIndex;
    const { end } = this.#log.before(from, ticks);
    const batch: Delivery[] = [];
    for (let event = from; event < end; event += 1) {
      const entry = this.#log.entry(event);
      if (entry !== undefined && this.#wants(entry)) batch.push(entry);
    }
    if (behind === null) this.#nextEventIndex = end;
    else behind.event = end;
    cursor.sendBatch(batch, 0);
  }

  /** Every event that it missed, and only then the gap: a cut among them has moved the count of frames itself. */
  #catchUpEvents(cursor: ListenerCursor, behind: Behind, emitGap: EmitGap): void {
    const batch: Delivery[] = [];
    const stop = Math.min(this.#nextEventIndex, behind.event + CATCH_UP_EVENTS);
    for (; behind.event < stop; behind.event += 1) {
      const entry = this.#log.entry(behind.event);
      if (entry !== undefined && this.#wants(entry)) batch.push(entry);
    }
    if (cursor.sendBatch(batch, 0) === "full" || behind.event < this.#nextEventIndex) return;
    this.#skip(cursor, { behind, toFrame: this.#nextFrameIndex, emitGap });
    this.#rejoin(cursor);
  }

  #rejoin(cursor: ListenerCursor): void {
    cursor.behind = null;
    if (this.#behind.delete(cursor)) this.#inLockstep.add(cursor);
  }

  #catchUpStep(cursor: ListenerCursor, behind: Behind): void {
    const batch: Delivery[] = [];
    const stopFrame = Math.min(this.#nextFrameIndex, behind.frame + this.#stepFrames(cursor, behind.frame));
    const reached = this.#collect(behind, Number.POSITIVE_INFINITY, batch, {
      frame: stopFrame,
      event: this.#nextEventIndex,
    });
    const isDone = reached.frame >= this.#nextFrameIndex;
    // The group has sent these already, so nothing is left to wait for.
    for (; isDone && reached.event < this.#nextEventIndex; reached.event += 1) {
      const entry = this.#log.entry(reached.event);
      if (entry !== undefined && this.#wants(entry)) batch.push(entry);
    }
    behind.frame = reached.frame;
    behind.event = reached.event;
    const frames = framesOf(batch);
    this.#count(batch, frames, 1);
    const isFull = cursor.sendBatch(batch, frames) === "full";
    if (isDone && !isFull) this.#rejoin(cursor);
  }

  /** Frames that fit into a quarter of the send queue. */
  #stepFrames(cursor: ListenerCursor, frame: number): number {
    const bytes = this.rendition?.frame(frame)?.byteLength ?? 1;
    return Math.max(1, Math.min(CATCH_UP_FRAMES, Math.floor(cursor.stepBytes / bytes)));
  }

  /** Puts due frames and events in order into `batch`; returns the next frame and event. */
  #collect(
    from: { frame: number; event: number },
    limitTicks: number,
    batch: Delivery[],
    stop: { frame: number; event: number } = { frame: Number.POSITIVE_INFINITY, event: this.#log.next },
  ): { frame: number; event: number } {
    let { frame, event } = from;
    for (;;) {
      const bytes = this.#dueFrame(frame, limitTicks, stop.frame);
      const entry = event < stop.event ? this.#log.entry(event) : undefined;
      const isFrameDue = bytes !== undefined;
      if (
        entry !== undefined &&
        (this.#isDueEvent(entry, frame, isFrameDue, limitTicks) ||
          (event < this.#log.lastBack &&
            this.#hasDueBehind({ event, frame, isFrameDue, limitTicks, stopEvent: stop.event })))
      ) {
        if (this.#wants(entry)) batch.push(entry);
        event += 1;
      } else if (bytes !== undefined) {
        // The view lives until the ring's next append; everything is sent before that.
        batch.push(bytes);
        frame += 1;
      } else {
        return { frame, event };
      }
    }
  }

  /**
   * An event that is not due leaves early if one behind it is due. Events are numbered when rendered, far ahead for the longest
   * lead; a mark or an end must not wait for that. Who catches up gets frames and events as they were.
   */
  #hasDueBehind(at: {
    readonly event: number;
    readonly frame: number;
    readonly isFrameDue: boolean;
    readonly limitTicks: number;
    readonly stopEvent: number;
  }): boolean {
    if (at.limitTicks === Number.POSITIVE_INFINITY) return false;
    for (let event = Math.min(this.#log.lastBack, at.stopEvent - 1); event > at.event; event -= 1) {
      const entry = this.#log.entry(event);
      if (entry === undefined || !this.#wants(entry)) continue;
      if (this.#isDueEvent(entry, at.frame, at.isFrameDue, at.limitTicks)) return true;
    }
    return false;
  }

  #dueFrame(index: number, limitTicks: number, stopIndex: number): Uint8Array | undefined {
    if (this.rendition === null || index >= stopIndex) return undefined;
    return this.rendition.startTicksOf(index) <= limitTicks ? this.rendition.frame(index) : undefined;
  }

  #isDueEvent(entry: LoggedEvent, frame: number, isFrameDue: boolean, limitTicks: number): boolean {
    if (entry.isWithdrawn) return true;
    if (this.rendition === null) return entry.positionTicks <= limitTicks;
    const start = this.rendition.startTicksOf(frame);
    if (isFrameDue) return entry.positionTicks < start + this.rendition.frameTicks;
    if (entry.positionTicks > limitTicks) return false;
    // Where the audio ended, or ran out, in other frames' middle: nothing stands before it that is still to come.
    return entry.positionTicks <= start || this.rendition.endTicks <= start;
  }

  #wants(entry: LoggedEvent): boolean {
    if (entry.isWithdrawn) return false;
    if (entry.kind === null) return true;
    return this.#kinds.has(entry.kind) && (entry.cueStyle === null || entry.cueStyle === this.#cueStyle);
  }
}

function framesOf(batch: readonly Delivery[]): number {
  let frames = 0;
  for (const item of batch) if (item instanceof Uint8Array) frames += 1;
  return frames;
}

/** Bytes of the frames in it. */
function bytesOf(batch: readonly Delivery[]): number {
  let bytes = 0;
  for (const item of batch) if (item instanceof Uint8Array) bytes += item.byteLength;
  return bytes;
}

function tooSlow(): GatewayError {
  return new GatewayError("slow_consumer", "Listener reads too slowly: events it needs are gone");
}
