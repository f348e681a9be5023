/**
 * Routes a session's audio and events to its listeners, by renditions (encoded once), delivery groups (listeners in
 * lockstep) and the event log. The session pushes audio and events in; `collect` puts what is due in order and `send` sends it.
 */

import type { OpusPool } from "../../audio/codecs/opus-pool.ts";
import { AUDIO_FORMATS } from "../../audio/formats.ts";
import { DeliveryGroup, type EmitGap } from "../../delivery/delivery-group.ts";
import { EventLog } from "../../delivery/event-log.ts";
import type { ListenerCursor } from "../../delivery/listener-cursor.ts";
import type { Rendition } from "../../delivery/rendition.ts";
import type { GatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Counters } from "../../metrics/counters.ts";
import type { EventKind, ListenerSettings } from "../../protocol/vocabulary.ts";
import { type CueStyle, styleKey } from "../../timing/cues/cue-profiles.ts";
import { TICKS_PER_MS, TICKS_PER_SECOND } from "../../timing/ticks.ts";
import { styleOf } from "../captions/cue-tracks.ts";
import type { OpusAccount } from "../payer.ts";
import { isPassThrough, type Need } from "../route.ts";
import type { Slice } from "../source.ts";
import { OpusListeners } from "./opus-listeners.ts";
import { demandOf, type OutputDemand } from "./output-demand.ts";
import { type RenderedAudio, renditionFrom } from "./rendered-audio.ts";
import { type SentRange, sentIndexOf, sentRangeOf } from "./sent-range.ts";

/** Events that a listener may be behind before it is too slow for this session. */
const MAX_LOGGED_EVENTS = 1024;
/** Frame ring of one rendition: PCM at 48 kHz for its longest keep and lead stays under this. */
const MAX_RING_BYTES = 4 * 1024 * 1024;

export interface OutputRouterOptions {
  readonly clock: Clock;
  /** For the headers of RTP; default: fresh ones. */
  readonly randomWords?: () => readonly number[];
  readonly opusPool: OpusPool;
  readonly counters: Counters;
  readonly aheadMs: number;
  readonly keepMs: number;
  readonly onEncodedFrame: () => void;
  /** This rendition's encoder has failed. */
  readonly onError: (error: GatewayError, rendition: Rendition) => void;
  readonly emitGap: EmitGap;
}

export interface SubscriptionStart {
  /** Where its audio begins, if that is kept. */
  readonly fromTicks: number;
  /** What a new rendition is made from. */
  readonly rendered: RenderedAudio;
  /** First entry of the log that the listener gets. */
  readonly event: number;
  /** What it was sent already before this place and may not get twice; `frames`: both. */
  readonly has: "nothing" | "events" | "frames";
}

export interface Subscription {
  readonly group: DeliveryGroup;
  readonly cursor: ListenerCursor;
  /** It does not count any more. Idempotent. */
  readonly letGo: () => void;
}

/** A rendition with nobody left: whoever comes back soon finds its frames. */
interface Idle {
  readonly rendition: Rendition;
  readonly sinceTicks: number;
}

export class OutputRouter {
  readonly #options: OutputRouterOptions;
  readonly #renditions = new Map<string, Rendition>();
  readonly #groups = new Map<string, DeliveryGroup>();
  readonly #idle = new Map<string, Idle>();
  readonly log = new EventLog(MAX_LOGGED_EVENTS);
  readonly #opusListeners = new OpusListeners();
  /** How far listeners that have gone were sent audio: they keep it, and may come back. */
  #leftTicks = 0;
  #ownGroups = 0;
  readonly #wantedKinds = new Set<EventKind>();
  /** Styles of cues that a group wants, by group. */
  readonly #groupStyles = new Map<DeliveryGroup, CueStyle>();
  /** Styles of cues that are made in any case: they are kept for files. */
  readonly #keptStyles = new Map<string, CueStyle>();
  /** null: to be worked out again. */
  #demand: OutputDemand | null = null;

  constructor(options: OutputRouterOptions) {
    this.#options = options;
  }

  /** What the audio of an utterance has to be made into. */
  renditionsInUse(): Need[] {
    return [...this.#renditions].flatMap(([key, rendition]) => (this.#idle.has(key) ? [] : [rendition]));
  }

  /** Whether any listener asked for this kind of event. */
  wants(kind: EventKind): boolean {
    for (const group of this.#groups.values()) if (group.wants(kind)) return true;
    return false;
  }

  /** As `wants`, or whether any listener did before: it may come back for what it missed. */
  wasWanted(kind: EventKind): boolean {
    return this.#wantedKinds.has(kind);
  }

  /** Every style in which cues are to be made. */
  get cueStyles(): readonly CueStyle[] {
    if (this.#groupStyles.size + this.#keptStyles.size === 0) return [];
    const styles = new Map(this.#keptStyles);
    for (const style of this.#groupStyles.values()) styles.set(styleKey(style), style);
    return [...styles.values()];
  }

  /** Cues of this style are made from now on, whoever listens. */
  keepCues(style: CueStyle): void {
    this.#keptStyles.set(styleKey(style), style);
  }

  get isEmpty(): boolean {
    return this.#groups.size === 0;
  }

  get wantsTiming(): boolean {
    if (this.#keptStyles.size > 0) return true;
    for (const group of this.#groups.values()) if (group.wantsTiming) return true;
    return false;
  }

  /** What all listeners ask for together. */
  get demand(): OutputDemand {
    this.#demand ??= demandOf(this.#groups.values(), this.#renditions.values(), this.#options.aheadMs);
    return this.#demand;
  }

  /** Before `subscribe`: what it hears counts for the account. Gives what ends that (idempotent). Throws listener_limit. */
  countOpus(settings: ListenerSettings, account: OpusAccount | null): () => void {
    const { format } = settings;
    const isOpus = format !== "none" && AUDIO_FORMATS[format].codec === "opus";
    if (!isOpus || account === null) return () => undefined;
    return this.#opusListeners.enter(renditionKey(settings), account);
  }

  /**
   * Subscribes a listener: in lockstep with others of its kind, or in a group of its own. Where the group is ahead of where it
   * is to begin, it catches up.
   */
  subscribe(cursor: ListenerCursor, settings: ListenerSettings, at: SubscriptionStart): DeliveryGroup {
    const rendition = settings.format === "none" ? null : this.#rendition(settings, at);
    for (const kind of settings.events) this.#wantedKinds.add(kind);
    let key = groupKey(settings);
    let group = this.#groups.get(key);
    const frame = rendition?.indexAt(at.fromTicks) ?? 0;
    const { event } = at;
    const isAhead =
      group !== undefined &&
      ((at.has !== "nothing" && event > group.event) ||
        (at.has === "frames" && rendition !== null && frame > group.frame));
    if (isAhead) {
      // It comes with more than the others of its kind have been sent: in their group it would get that twice.
      this.#ownGroups += 1;
      key = `${key}|${this.#ownGroups}`;
      group = undefined;
    }
    if (group === undefined) {
      group = new DeliveryGroup({
        rendition,
        log: this.log,
        sent: rendition === null ? null : this.#options.counters.audioSent.of(rendition.format),
        pace: settings.pace,
        leadMs: settings.lead_ms,
        events: settings.events,
        ...(settings.events.includes("cues") ? { cueStyle: styleKey(styleOf(settings)) } : {}),
        frame,
        event,
      });
      this.#groups.set(key, group);
      if (settings.events.includes("cues")) this.#groupStyles.set(group, styleOf(settings));
      this.#demand = null;
    } else if (frame < group.frame || event < group.event) {
      cursor.behind = {
        frame: Math.min(frame, group.frame),
        event: Math.min(event, group.event),
        isJoining: true,
      };
    }
    group.add(cursor);
    return group;
  }

  /**
   * The listener has gone; a group that served only it goes with it. A rendition that served only it goes too, or is kept
   * for a while where it may come back for the frames that it missed (`keptFromTicks`, the playhead).
   */
  unsubscribe(subscription: Subscription, keptFromTicks: number | null): void {
    const { group: left } = subscription;
    subscription.letGo();
    if (left.rendition !== null) {
      this.#leftTicks = Math.max(this.#leftTicks, left.rendition.startTicksOf(left.frame));
    }
    left.delete(subscription.cursor);
    if (left.size > 0) return;
    for (const [key, group] of this.#groups) if (group === subscription.group) this.#groups.delete(key);
    this.#groupStyles.delete(left);
    this.#demand = null;
    for (const [key, rendition] of this.#renditions) {
      if (rendition !== subscription.group.rendition) continue;
      if ([...this.#groups.values()].some((group) => group.rendition === rendition)) continue;
      if (keptFromTicks === null) this.#closeRendition(key, rendition);
      else {
        this.#idle.set(key, { rendition, sinceTicks: keptFromTicks });
        // Its encoder is somebody else's meanwhile: where speech waits for the listener, that may be long.
        rendition.releaseEncoder();
      }
    }
  }

  #closeRendition(key: string, rendition: Rendition): void {
    rendition.close();
    this.#renditions.delete(key);
    this.#idle.delete(key);
    this.#demand = null;
  }

  catchUp(subscription: Subscription): void {
    const sentBefore = subscription.cursor.framesSent;
    subscription.group.catchUp(subscription.cursor, this.#options.emitGap);
    this.#options.counters.framesSent += subscription.cursor.framesSent - sentBefore;
  }

  // ---- audio in ------------------------------------------------------------------------------------------------

  push(slice: Slice): void {
    this.#options.counters.audioMadeSeconds += slice.ticks / TICKS_PER_SECOND;
    for (const rendition of this.#renditions.values()) {
      const before = rendition.framesMade;
      if (isPassThrough(rendition, slice.format))
        for (const bytes of slice.raw()) rendition.pushPassThrough(bytes);
      else rendition.pushPcm(slice.pcm(), slice.pcmRate);
      this.#options.counters.framesMade += rendition.framesMade - before;
    }
  }

  /** Fills everybody's audio with silence up to where an utterance starts; returns that position. */
  padToCommonStart(writeTicks: number): number {
    let startTicks = writeTicks;
    for (const rendition of this.#renditions.values()) startTicks = Math.max(startTicks, rendition.endTicks);
    for (const rendition of this.#renditions.values()) {
      rendition.padTo(startTicks);
      rendition.startTalkspurt();
    }
    return startTicks;
  }

  /** Where everybody's frame has ended that holds what stands before `ticks`. */
  frameEnd(ticks: number): number {
    let endTicks = ticks;
    for (const { endTicks: lastTicks, frameTicks } of this.#renditions.values()) {
      const frames = Math.max(0, Math.ceil((ticks - lastTicks) / frameTicks));
      endTicks = Math.max(endTicks, lastTicks + frames * frameTicks);
    }
    return endTicks;
  }

  /** Whether a frame of everybody's ends there. */
  endsFramesAt(ticks: number): boolean {
    for (const { endTicks, frameTicks } of this.#renditions.values()) {
      if ((ticks - endTicks) % frameTicks !== 0) return false;
    }
    return true;
  }

  /** Pads every rendition's last frame; returns the position behind the longest of them. */
  flush(writeTicks: number): number {
    let endTicks = writeTicks;
    for (const rendition of this.#renditions.values()) {
      rendition.flush();
      endTicks = Math.max(endTicks, rendition.endTicks);
    }
    return endTicks;
  }

  /**
   * Drops from the renditions what begins at `startTicks` and was not heard by `heardTicks`: nobody who comes back gets it.
   * Returns where the next frame stands for all: behind the furthest frame sent to anybody.
   */
  cut(place: {
    readonly writeTicks: number;
    readonly startTicks: number;
    readonly heardTicks: number;
  }): number {
    const { writeTicks, startTicks, heardTicks } = place;
    const sent = sentRangeOf(this.#groups.values());
    const sentTicks = sent === null ? writeTicks : Math.max(sent.mostTicks, this.#leftTicks);
    // Frames before the cut may still be with an encoder: they are sent when they come.
    const nextTicks = Math.max(sentTicks, startTicks);
    for (const rendition of this.#renditions.values()) {
      const sentIndex = sentIndexOf(rendition, this.#groups.values(), this.#leftTicks);
      rendition.cut({ startTicks, heardTicks, nextTicks, sentIndex });
      for (const group of this.#groups.values()) {
        if (group.rendition === rendition) group.jumpTo(rendition.next, this.#options.emitGap);
      }
    }
    return nextTicks;
  }

  // ---- out -----------------------------------------------------------------------------------------------------

  /** Puts in order what is due at `playheadTicks` with audio rendered up to `writeTicks`; `send` has to follow. */
  collect(playheadTicks: number, writeTicks: number): void {
    for (const group of this.#groups.values()) {
      group.collect(group.pace === "burst" ? writeTicks : playheadTicks + group.leadMs * TICKS_PER_MS);
    }
  }

  /** Puts in order what stands before `ticks`, due or not; `send` has to follow. */
  collectBefore(ticks: number): void {
    for (const group of this.#groups.values()) group.collect(ticks - 1);
  }

  /** Sends what was collected; returns the frames sent. */
  send(): number {
    let sent = 0;
    for (const group of this.#groups.values()) sent += group.send();
    this.#options.counters.framesSent += sent;
    return sent;
  }

  /** How far the listener that is furthest has been sent audio. */
  get sentTicks(): number {
    return sentRangeOf(this.#groups.values())?.mostTicks ?? 0;
  }

  /** How far the listener of frames from an encoder's thread that is furthest behind has been sent them. */
  get encodedSentTicks(): number {
    return sentRangeOf(this.#groups.values(), (rendition) => rendition.isEncodedElsewhere)?.leastTicks ?? 0;
  }

  /** What the groups with frames were sent of them; `writeTicks`, the end of the audio rendered, where nobody gets frames. */
  sentRange(writeTicks: number): SentRange {
    return sentRangeOf(this.#groups.values()) ?? { leastTicks: writeTicks, mostTicks: writeTicks };
  }

  /** How far audio may be rendered before a lossless listener that is behind loses some. */
  losslessLimitTicks(): number {
    let limit = Number.POSITIVE_INFINITY;
    const windowTicks = (this.#options.aheadMs + this.#options.keepMs) * TICKS_PER_MS;
    for (const group of this.#groups.values()) {
      if (group.rendition === null) continue;
      const oldest = group.oldestNeededFrame();
      if (oldest < group.frame) limit = Math.min(limit, group.rendition.startTicksOf(oldest) + windowTicks);
    }
    return limit;
  }

  close(): void {
    this.#opusListeners.close();
    for (const rendition of this.#renditions.values()) rendition.close();
    this.#renditions.clear();
    this.#idle.clear();
    this.#groups.clear();
    this.#groupStyles.clear();
    this.#demand = null;
  }

  #rendition(settings: ListenerSettings, { rendered, fromTicks }: SubscriptionStart): Rendition | null {
    if (settings.format === "none") return null;
    const { format, frame_ms: frameMs, framing, band } = settings;
    const shape = { format, frameMs, framing, band };
    const key = renditionKey(settings);
    let rendition = this.#renditions.get(key);
    if (rendition === undefined) {
      const { clock, randomWords, opusPool, onEncodedFrame, onError, counters } = this.#options;
      const opened: Rendition = renditionFrom(rendered, fromTicks, {
        ...shape,
        maxRingBytes: MAX_RING_BYTES,
        clock,
        ...(randomWords === undefined ? {} : { randomWords }),
        opusPool,
        onEncodedFrame,
        onError: (error) => onError(error, opened),
      });
      counters.framesMade += opened.framesMade;
      rendition = opened;
      this.#renditions.set(key, rendition);
      this.#demand = null;
    }
    this.#idle.delete(key);
    return rendition;
  }

  /** Frees frames and events that nobody needs any more. */
  trim(playheadTicks: number): void {
    const keptTicks = playheadTicks - this.#options.keepMs * TICKS_PER_MS;
    for (const [key, { rendition, sinceTicks }] of this.#idle) {
      if (sinceTicks < keptTicks) this.#closeRendition(key, rendition);
    }
    for (const rendition of this.#renditions.values()) {
      let oldest = rendition.indexAt(keptTicks);
      for (const group of this.#groups.values()) {
        if (group.rendition === rendition) oldest = Math.min(oldest, group.oldestNeededFrame());
      }
      rendition.trim(oldest);
    }
    let oldestEvent = this.log.indexAt(keptTicks);
    for (const group of this.#groups.values()) oldestEvent = Math.min(oldestEvent, group.oldestNeededEvent());
    this.log.trim(oldestEvent);
  }
}

/** Listeners with the same one share a rendition. */
function renditionKey(settings: ListenerSettings): string {
  const { format, frame_ms, framing, band } = settings;
  const shape = `${format}/${frame_ms}/${framing}/${band}`;
  // Packets are numbered: who is sent less before a cut would see a hole where others were sent more.
  return framing === "rtp" ? `${shape}/${paceKey(settings)}` : shape;
}

/** Listeners with the same one are in lockstep. */
function groupKey(settings: ListenerSettings): string {
  const events = [...settings.events].sort().join(",");
  const audio = settings.format === "none" ? "none" : renditionKey(settings);
  const style = settings.events.includes("cues") ? styleKey(styleOf(settings)) : "";
  return `${audio}|${paceKey(settings)}|${events}|${style}`;
}

function paceKey({ pace, lead_ms }: ListenerSettings): string {
  return pace === "burst" ? pace : `${pace}/${lead_ms}`;
}
