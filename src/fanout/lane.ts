/**
 * The listeners of one session that get the very same messages at the same time: same rendition, pace, lead and
 * choice of events. A release puts the due frames and events in order once and hands the batch to each of them.
 *
 * Order on the socket: events by `seq`; an event leaves before the frame that contains its position, so that it is
 * never later than the sound it tells of.
 */
import { GatewayError } from "../errors.ts";
import type { EventKind, Pace } from "../protocol/vocabulary.ts";
import type { EventLog } from "./event-log.ts";
import type { Delivery } from "./listener.ts";
import type { LoggedEvent } from "./logged-event.ts";
import type { Behind, Outbox } from "./outbox.ts";
import type { Rendition } from "./rendition.ts";

export interface LaneShape {
  readonly pace: Pace;
  readonly leadMs: number;
  readonly events: readonly EventKind[];
  /** Which form its listeners chose of what comes in several; without it they get none of them. */
  readonly variant?: string;
}

export interface LaneOptions extends LaneShape {
  /** null = events only. */
  readonly rendition: Rendition | null;
  readonly log: EventLog;
  /** Where the lane starts: frame and event index. */
  readonly frame: number;
  readonly event: number;
}

/** A `gap` told to one listener that was told the events before `event`; the session writes it. */
export type GapTeller = (outbox: Outbox, gap: { frames: number; ms: number }, event: number) => void;

/** Frames sent to a listener that catches up before its socket is looked at again. */
const CATCH_UP_FRAMES = 64;
/** Events sent to it before its socket is looked at again. */
const CATCH_UP_EVENTS = 64;

export class Lane {
  readonly rendition: Rendition | null;
  readonly pace: Pace;
  readonly leadMs: number;
  /** Apart, so that what is done for laggards costs nothing where there are none. */
  readonly #inStep = new Set<Outbox>();
  readonly #behind = new Set<Outbox>();
  readonly wantsTiming: boolean;
  readonly #kinds: ReadonlySet<EventKind>;
  readonly #variant: string | null;
  readonly #log: EventLog;
  #frame: number;
  #event: number;
  #batch: Delivery[] = [];
  /** First event of the batch. */
  #batchEvent = 0;
  /** Packets that cuts took from those in step here, and that others with a longer lead had been sent. */
  #packetsLeftOut = 0;

  constructor(options: LaneOptions) {
    this.rendition = options.rendition;
    this.pace = options.pace;
    this.leadMs = options.leadMs;
    this.#kinds = new Set(options.events);
    this.wantsTiming = options.events.some((kind) => kind !== "marks" && kind !== "presence");
    this.#variant = options.variant ?? null;
    this.#log = options.log;
    this.#frame = options.frame;
    this.#event = options.event;
  }

  /** Next frame and event of the listeners in step. */
  get frame(): number {
    return this.#frame;
  }
  get event(): number {
    return this.#event;
  }

  /**
   * Puts everything due in order, to be sent by `send`: frames that start at or before `limitTicks`, and events up to
   * them. The frames are views into the rendition's ring: nothing may be pushed to it before they are sent.
   */
  collect(limitTicks: number): void {
    if (this.#batch.length === 0) this.#batchEvent = this.#event;
    const reached = this.#collect({ frame: this.#frame, event: this.#event }, limitTicks, this.#batch);
    this.#frame = reached.frame;
    this.#event = reached.event;
  }

  /** Sends what was collected to every listener in step; returns how many frames left for how many listeners in all. */
  send(): number {
    const batch = this.#batch;
    if (batch.length === 0) return 0;
    // A socket that closes while it is sent to comes back here: it must find nothing to send twice.
    this.#batch = [];
    for (const outbox of this.#behind) {
      if (outbox.behind !== null && outbox.behind.event < this.#log.first) outbox.end(tooSlow());
    }
    const frames = framesOf(batch);
    let sent = this.#inStep.size * frames;
    for (const outbox of this.#inStep) {
      if (outbox.isShort) {
        this.#sendEvents(outbox, batch, frames);
        sent -= frames;
      } else if (outbox.sendBatch(batch, frames)) {
        this.fallBehind(outbox, { frame: this.#frame, event: this.#event, isJoining: false });
      }
    }
    return sent;
  }

  /** First event that was not handed to this listener yet. */
  untoldEvent(outbox: Outbox): number {
    return outbox.behind?.event ?? (this.#batch.length > 0 ? this.#batchEvent : this.#event);
  }

  /** Whether its listeners asked for this kind of event. */
  wants(kind: EventKind): boolean {
    return this.#kinds.has(kind);
  }

  get size(): number {
    return this.#inStep.size + this.#behind.size;
  }

  /** Takes a listener in, in step or behind. */
  add(outbox: Outbox): void {
    if (outbox.behind === null) this.#inStep.add(outbox);
    else this.#behind.add(outbox);
  }

  delete(outbox: Outbox): void {
    this.#inStep.delete(outbox);
    this.#behind.delete(outbox);
  }

  /** The listener goes on by cursors of its own. */
  fallBehind(outbox: Outbox, behind: Behind): void {
    outbox.behind = behind;
    // It may have left while it was sent to.
    if (this.#inStep.delete(outbox)) this.#behind.add(outbox);
  }

  /** Audio goes first where captions matter more: the socket is left for events until it has room again. */
  #sendEvents(outbox: Outbox, batch: readonly Delivery[], frames: number): void {
    const events = batch.filter((item) => !(item instanceof Uint8Array));
    outbox.dropFrames(frames);
    if (events.length > 0 && outbox.sendBatch(events, 0)) {
      this.fallBehind(outbox, { frame: this.#frame, event: this.#event, isJoining: false });
    }
  }

  /** A listener's socket has drained: send what it missed, or say what it lost. */
  catchUp(outbox: Outbox, tellGap: GapTeller): void {
    this.#tellDropped(outbox, tellGap);
    const behind = outbox.behind;
    if (behind === null) return;
    if (behind.event < this.#log.first) {
      outbox.end(tooSlow());
      return;
    }
    const mayWait = outbox.policy === "lossless" || behind.isJoining;
    if (mayWait && this.rendition !== null && this.rendition.first > behind.frame) {
      this.replay(outbox, this.rendition.startTicksOf(this.rendition.first));
      this.#skip(outbox, { behind, toFrame: this.rendition.first, tellGap });
    }
    while (outbox.behind === behind && outbox.hasRoom()) {
      if (mayWait) this.#catchUpStep(outbox, behind);
      else this.#catchUpEvents(outbox, behind, tellGap);
    }
  }

  /** The oldest frame that a lossless listener still needs. */
  oldestNeededFrame(): number {
    let oldest = this.#frame;
    for (const outbox of this.#behind) {
      if (outbox.policy === "lossless" && outbox.behind !== null)
        oldest = Math.min(oldest, outbox.behind.frame);
    }
    return oldest;
  }

  /** The oldest event that anybody here still needs. */
  oldestNeededEvent(): number {
    let oldest = this.#event;
    for (const outbox of this.#behind) {
      if (outbox.behind !== null) oldest = Math.min(oldest, outbox.behind.event);
    }
    return oldest;
  }

  /**
   * After an interruption: everybody goes on with the first frame behind the cut. `packetsLeftOut`: so many were sent to others
   * and not here; they are no loss.
   */
  jumpTo(frame: number, packetsLeftOut: number, tellGap: GapTeller): void {
    this.#packetsLeftOut += packetsLeftOut;
    this.#frame = frame;
    // What was left out is told before the cut is: from there on the frames are counted anew.
    for (const outbox of this.#inStep) this.#tellDropped(outbox, tellGap);
    for (const outbox of this.#behind) {
      this.#tellDropped(outbox, tellGap);
      if (outbox.behind !== null) outbox.behind.frame = frame;
    }
  }

  /** What was left out for the sake of events. */
  #tellDropped(outbox: Outbox, tellGap: GapTeller): void {
    const frames = outbox.takeDropped();
    if (frames === 0) return;
    tellGap(outbox, { frames, ms: frames * (this.rendition?.frameMs ?? 0) }, this.untoldEvent(outbox));
  }

  /** Gives up the frames before `toFrame` and says so. */
  #skip(outbox: Outbox, skip: { behind: Behind; toFrame: number; tellGap: GapTeller }): void {
    const frames = skip.toFrame - skip.behind.frame;
    if (frames <= 0 || this.rendition === null) return;
    outbox.framesDropped += frames;
    skip.behind.frame = skip.toFrame;
    skip.tellGap(outbox, { frames, ms: frames * this.rendition.frameMs }, skip.behind.event);
  }

  /**
   * Sends a listener that is on its own the events before a place of the timeline, ahead of the gap that ends there: a cut
   * among them moves the count of frames, and the gap counts on from it.
   */
  replay(outbox: Outbox, ticks: number): void {
    const { behind } = outbox;
    if (behind === null && this.size > 1) return;
    const from = behind?.event ?? this.#event;
    const { end } = this.#log.before(from, ticks);
    const batch: Delivery[] = [];
    for (let event = from; event < end; event += 1) {
      const entry = this.#log.entry(event);
      if (entry !== undefined && this.#wants(entry)) batch.push(entry);
    }
    if (behind === null) this.#event = end;
    else behind.event = end;
    outbox.sendBatch(batch, 0);
  }

  /** Every event that it missed, and only then the gap: a cut among them has moved the count of frames itself. */
  #catchUpEvents(outbox: Outbox, behind: Behind, tellGap: GapTeller): void {
    const batch: Delivery[] = [];
    const stop = Math.min(this.#event, behind.event + CATCH_UP_EVENTS);
    for (; behind.event < stop; behind.event += 1) {
      const entry = this.#log.entry(behind.event);
      if (entry !== undefined && this.#wants(entry)) batch.push(entry);
    }
    if (outbox.sendBatch(batch, 0) || behind.event < this.#event) return;
    this.#skip(outbox, { behind, toFrame: this.#frame, tellGap });
    this.#rejoin(outbox);
  }

  #rejoin(outbox: Outbox): void {
    outbox.behind = null;
    if (this.#behind.delete(outbox)) this.#inStep.add(outbox);
  }

  #catchUpStep(outbox: Outbox, behind: Behind): void {
    const batch: Delivery[] = [];
    const stopFrame = Math.min(this.#frame, behind.frame + this.#stepFrames(outbox, behind.frame));
    const reached = this.#collect(behind, Number.POSITIVE_INFINITY, batch, {
      frame: stopFrame,
      event: this.#event,
    });
    const isDone = reached.frame >= this.#frame;
    // The lane has sent these already, so nothing is left to wait for.
    for (; isDone && reached.event < this.#event; reached.event += 1) {
      const entry = this.#log.entry(reached.event);
      if (entry !== undefined && this.#wants(entry)) batch.push(entry);
    }
    behind.frame = reached.frame;
    behind.event = reached.event;
    const isFull = outbox.sendBatch(batch, framesOf(batch));
    if (isDone && !isFull) this.#rejoin(outbox);
  }

  /** Frames that fit into a quarter of the outbox. */
  #stepFrames(outbox: Outbox, frame: number): number {
    const bytes = this.rendition?.frame(frame)?.byteLength ?? 1;
    return Math.max(1, Math.min(CATCH_UP_FRAMES, Math.floor(outbox.stepBytes / bytes)));
  }

  /** Puts due frames and events in order into `batch`; returns the cursors behind them. */
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
        batch.push(this.rendition?.renumbered(bytes, this.#packetsLeftOut) ?? bytes);
        frame += 1;
      } else {
        return { frame, event };
      }
    }
  }

  /**
   * Whether what is due stands behind this event, which is not: audio is made ahead for whoever has the longest lead, and its
   * events are numbered then. A mark, or the end of an utterance, must not come as late to everybody else: it takes along what
   * stands before it. Who catches up gets frames and events as they were.
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
    // Where the audio ended, or ran dry, in other frames' middle: nothing stands before it that is still to come.
    return entry.positionTicks <= start || this.rendition.endTicks <= start;
  }

  #wants(entry: LoggedEvent): boolean {
    if (entry.isWithdrawn) return false;
    if (entry.kind === null) return true;
    return this.#kinds.has(entry.kind) && (entry.variant === null || entry.variant === this.#variant);
  }
}

function framesOf(batch: readonly Delivery[]): number {
  let frames = 0;
  for (const item of batch) if (item instanceof Uint8Array) frames += 1;
  return frames;
}

function tooSlow(): GatewayError {
  return new GatewayError("slow_consumer", "Listener reads too slowly: events it needs are gone");
}
